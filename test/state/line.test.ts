import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode, encode, statusOf, type UrlBases } from '../../src/state/line.js';
import { anyEntry } from './arbitrary.js';
import { lifeOf, pendingRecord } from './records.js';

describe('a record as a line of text', () => {
  it('is read as it was written, to the last digit', () => {
    fc.assert(
      fc.property(anyEntry, (entry) => {
        const bases: UrlBases = [];
        const line = encode(entry, bases);
        expect(decode(line, entry.folder, entry.path, bases)).toStrictEqual(entry);
        expect(statusOf(line)).toBe(entry.status);
      }),
      { numRuns: 1_000 },
    );
  });

  it('takes at most 200 characters for a confirmed file, wherever that is', () => {
    const bases: UrlBases = [];
    const path = 'some/directory/with/ümläuten and other/things/a file.txt';
    const [, , confirmed] = lifeOf(pendingRecord(path));
    expect(encode(confirmed, bases).length).toBeLessThanOrEqual(200);
    expect(encode(confirmed, bases)).not.toContain('example.org');
    expect(bases).toHaveLength(1);
  });
});
