import { describe, expect, it } from 'vitest';
import { otherThan, versionOf } from '../../src/mirror/share.js';

const NOW = Date.UTC(2026, 0, 15);
const DAY_MS = 86_400_000;
const OF = '["http://peer",null,"list.txt"]';

describe('a version of an object', () => {
  it('is known again by its tag, and by when it was changed last', () => {
    const answer = { etag: '"a"', lastModified: NOW - DAY_MS, peerAt: NOW };
    expect(versionOf(answer, OF, NOW)).toEqual({
      ...{ of: OF, at: NOW, etag: '"a"' },
      asOf: NOW - DAY_MS,
    });
  });

  it('that changed in the moment of the answer may change again in it: that is left to be asked for', () => {
    expect(versionOf({ lastModified: NOW, peerAt: NOW }, OF, NOW)).toMatchObject({ asOf: NOW - 2_000 });
  });

  it('is as old as the answer where the peer says no more, and as its last change where it has no clock', () => {
    expect(versionOf({ lastModified: undefined, peerAt: NOW }, OF, NOW)).toEqual({
      ...{ of: OF, at: NOW, asOf: NOW - 2_000 },
    });
    expect(versionOf({ lastModified: NOW }, OF, NOW)).toMatchObject({ asOf: NOW });
  });

  it('is none where the peer says nothing', () => {
    expect(versionOf({ lastModified: undefined }, OF, NOW)).toBeUndefined();
  });
});

describe('another version than one that is here', () => {
  const version = { of: OF, at: NOW, etag: '"a"', asOf: NOW - DAY_MS };

  it('is asked for by all that is known of that one', () => {
    expect(otherThan(version, OF, NOW)).toEqual({ ifNoneMatch: '"a"', ifModifiedSince: NOW - DAY_MS });
    expect(otherThan({ of: OF, at: NOW, etag: '"a"' }, OF, NOW)).toEqual({ ifNoneMatch: '"a"' });
    expect(otherThan({ of: OF, at: NOW, asOf: 5 }, OF, NOW)).toEqual({ ifModifiedSince: 5 });
  });

  it('is not asked for where what is known is another object', () => {
    expect(otherThan(version, '["http://other",null,"list.txt"]', NOW)).toEqual({});
  });

  it('is asked for whole once a week', () => {
    expect(otherThan(version, OF, NOW + 7 * DAY_MS)).toHaveProperty('ifNoneMatch');
    expect(otherThan(version, OF, NOW + 7 * DAY_MS + 1)).toEqual({});
  });
});
