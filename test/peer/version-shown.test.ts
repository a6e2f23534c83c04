import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evidenceOf, type Peerdoc, type SentVersion } from '../../src/peer/peerdoc.js';

const AT = Date.UTC(2026, 10, 21, 3, 26, 19, 700);
const PEER_AT = Date.UTC(2026, 10, 21, 4, 0, 10);
const DIGEST = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);
const URL = 'https://docs.example.org/a%20b.txt';

const SENT: SentVersion = {
  size: 260,
  digest: DIGEST,
  url: URL,
  collection: 'inbox',
  at: AT,
  peerAt: PEER_AT,
};
/** A push that was never answered: the peer's clock is not known from it. */
const UNANSWERED: SentVersion = { size: 260, digest: DIGEST, url: URL, collection: 'inbox', at: AT };

const doc = (shown: Partial<Peerdoc>): Peerdoc => ({ url: URL, at: AT + 60_000, fields: {}, ...shown });
const judge = (shown: Partial<Peerdoc>, sent: SentVersion = SENT) => evidenceOf(doc(shown), sent);

describe('a digest', () => {
  it('shows the version, whatever else there is', () => {
    const rest = { size: 1, words: 0, loadDate: 0 };
    expect(judge({ digest: DIGEST, ...rest })).toEqual({
      shown: true,
      kind: 'digest',
      text: `sha256 ${DIGEST}`,
    });
  });

  it('of other content shows another version, whatever else there is', () => {
    const rest = { size: 260, words: 26, loadDate: PEER_AT + 5_000 };
    expect(judge({ digest: OTHER, ...rest })).toEqual({
      shown: false,
      why: `the peer shows other content (sha256 ${OTHER})`,
    });
  });
});

describe('a document elsewhere', () => {
  it('is not it: another URL', () => {
    expect(judge({ url: 'https://docs.example.org/c.txt', digest: DIGEST })).toMatchObject({ shown: false });
  });

  it('is it: the same URL, escaped another way, or none shown', () => {
    expect(judge({ url: 'https://docs.example.org/a b.txt', digest: DIGEST })).toMatchObject({ shown: true });
    expect(judge({ url: undefined, digest: DIGEST })).toMatchObject({ shown: true });
  });

  it('is not it: collections without ours, even with the same content', () => {
    expect(judge({ collections: ['outbox', 'x'], digest: DIGEST })).toEqual({
      shown: false,
      why: 'the peer shows it in [outbox, x], not in inbox',
    });
    expect(judge({ collections: [], size: 260 })).toMatchObject({ shown: false });
  });

  it('is it: ours among several collections, or all of ours', () => {
    expect(judge({ collections: ['x', 'inbox'], digest: DIGEST })).toMatchObject({ shown: true });
    const several = { ...SENT, collection: 'inbox, notes' };
    expect(judge({ collections: ['notes', 'inbox'], digest: DIGEST }, several)).toMatchObject({
      shown: true,
    });
    expect(judge({ collections: ['inbox'], digest: DIGEST }, several)).toMatchObject({ shown: false });
  });
});

describe('an empty document', () => {
  it('is not the one that was pushed', () => {
    expect(judge({ size: 0, words: 0, loadDate: PEER_AT })).toEqual({
      shown: false,
      why: 'the peer has an empty document',
    });
    expect(judge({ words: 0, loadDate: PEER_AT })).toEqual({
      shown: false,
      why: 'the peer has a document without words',
    });
  });

  it('is the one that was pushed, where that was empty', () => {
    expect(judge({ size: 0, words: 0 }, { ...SENT, size: 0 })).toMatchObject({ shown: true, kind: 'size' });
  });
});

describe('a size', () => {
  it('that differs shows another version, however new', () => {
    expect(judge({ size: 259, loadDate: PEER_AT + 1_000 })).toEqual({
      shown: false,
      why: 'the peer shows a version of 259 bytes, and 260 were pushed',
    });
  });

  it('that fits is evidence where there is nothing stronger', () => {
    expect(judge({ size: 260, words: 3 })).toEqual({ shown: true, kind: 'size', text: '260 bytes' });
  });
});

describe('a load date, by the peer’s clock', () => {
  it.each([
    ['after the push', PEER_AT + 1_000, true],
    ['in the second of the push', PEER_AT, true],
    ['in the second of the push, told in milliseconds', PEER_AT + 999, true],
    ['a millisecond before that second', PEER_AT - 1, false],
    ['an hour before', PEER_AT - 3_600_000, false],
  ])('%s', (_, loadDate, shown) => {
    for (const size of [undefined, 260]) {
      const judged = judge({ loadDate, size });
      expect(judged).toMatchObject(shown ? { shown, kind: 'loadDate' } : { shown });
    }
  });

  it('is told', () => {
    expect(judge({ loadDate: PEER_AT })).toMatchObject({ text: '2026-11-21T04:00:10.000Z' });
    expect(judge({ loadDate: PEER_AT - 1_000, size: 260 })).toEqual({
      shown: false,
      why: 'the peer shows an older version, loaded 2026-11-21T04:00:09.000Z',
    });
  });

  it('is compared with the peer’s clock even where ours is far from it', () => {
    expect(judge({ loadDate: AT + 1_000 })).toMatchObject({ shown: false });
  });
});

describe('a load date, where the push was not answered', () => {
  it.each([
    ['after the push', AT + 1, true],
    ['as much before as clocks may differ', AT - 2_000, true],
    ['longer before', AT - 2_001, false],
  ])('is compared with our clock: %s', (_, loadDate, shown) => {
    expect(judge({ loadDate }, UNANSWERED)).toMatchObject({ shown });
  });

  it.each([
    ['ahead', 3_600_000],
    ['behind', -3_600_000],
  ])('is compared with the peer’s clock as this look-up shows it, an hour %s', (_, ahead) => {
    const now = { at: AT + 60_000, peerAt: AT + 60_000 + ahead };
    expect(judge({ ...now, loadDate: AT + ahead + 500 }, UNANSWERED)).toMatchObject({ kind: 'loadDate' });
    expect(judge({ ...now, loadDate: AT + ahead - 10_000 }, UNANSWERED)).toMatchObject({ shown: false });
  });
});

describe('a last modification that was pushed', () => {
  const lastModified = AT - 86_400_000;
  const dated = { ...SENT, lastModified };

  it('is the evidence when the peer shows it, in whole seconds', () => {
    const shown = Math.floor(lastModified / 1000) * 1000;
    expect(judge({ lastModified: shown, loadDate: PEER_AT }, dated)).toMatchObject({ kind: 'lastModified' });
    expect(judge({ lastModified: shown, loadDate: PEER_AT - 5_000 }, dated)).toMatchObject({ shown: false });
  });

  it('is another version’s when the peer shows a later one, or an earlier one and nothing else', () => {
    const [later, earlier] = [lastModified + 1_000, lastModified - 1_000];
    expect(judge({ lastModified: later, loadDate: PEER_AT }, dated)).toMatchObject({ shown: false });
    expect(judge({ lastModified: earlier, size: 260 }, dated)).toMatchObject({ shown: false });
  });

  it('may be earlier than pushed: a date in the document itself; then the load date tells', () => {
    const own = { lastModified: lastModified - 86_400_000 };
    expect(judge({ ...own, loadDate: PEER_AT }, dated)).toMatchObject({ kind: 'loadDate' });
    expect(judge({ ...own, loadDate: PEER_AT - 5_000 }, dated)).toMatchObject({ shown: false });
  });
});

describe('a document that says nothing of its version', () => {
  it('is present, which is the weakest evidence', () => {
    expect(judge({ title: 'A', lastModified: 5 })).toEqual({ shown: true, kind: 'present', text: URL });
    expect(judge({ url: undefined, urlhash: 'abc' })).toMatchObject({ kind: 'present', text: 'abc' });
  });
});

it('never shows a version against a digest, a size or a load date that contradicts', () => {
  const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
  const shown = fc.record({
    digest: maybe(fc.constantFrom(DIGEST, OTHER)),
    size: maybe(fc.constantFrom(0, 259, 260)),
    words: maybe(fc.constantFrom(0, 26)),
    loadDate: maybe(fc.integer({ min: PEER_AT - 5_000, max: PEER_AT + 5_000 })),
    collections: maybe(fc.constantFrom<readonly string[]>(['inbox'], ['x'], [])),
  });
  fc.assert(
    fc.property(shown, (fields) => {
      const contradicted =
        (fields.collections !== undefined && !fields.collections.includes('inbox')) ||
        (fields.digest === undefined
          ? (fields.size ?? 260) !== 260 || fields.words === 0 || (fields.loadDate ?? PEER_AT) < PEER_AT
          : fields.digest !== DIGEST);
      expect(judge(fields).shown).toBe(!contradicted);
    }),
  );
});

describe('a last modification', () => {
  const MODIFIED = Date.UTC(2023, 10, 14, 22, 13, 20);
  const pushed: SentVersion = { ...SENT, lastModified: MODIFIED };
  const shown = { size: 260, words: 26, collections: ['inbox'], loadDate: PEER_AT, lastModified: MODIFIED };

  it('that was pushed shows the version, in whole seconds', () => {
    expect(judge(shown, pushed)).toEqual({
      shown: true,
      kind: 'lastModified',
      text: '2023-11-14T22:13:20.000Z',
    });
    expect(judge(shown, { ...pushed, lastModified: MODIFIED + 999 })).toMatchObject({ kind: 'lastModified' });
  });

  it('that is later, or earlier without a load date, is another version', () => {
    expect(judge({ ...shown, lastModified: MODIFIED + 1_000 }, pushed)).toEqual({
      shown: false,
      why: 'the peer shows another version, last modified 2023-11-14T22:13:21.000Z',
    });
    const earlier = { ...shown, lastModified: MODIFIED - 1_000 };
    expect(judge({ ...earlier, loadDate: undefined }, pushed)).toMatchObject({ shown: false });
  });

  it('that is earlier may be a date in the document itself: then the load date decides', () => {
    const earlier = { ...shown, lastModified: MODIFIED - 1_000 };
    expect(judge(earlier, pushed)).toMatchObject({ shown: true, kind: 'loadDate' });
    expect(judge({ ...earlier, loadDate: PEER_AT - 1_000 }, pushed)).toMatchObject({ shown: false });
  });

  it.each<[string, Partial<Peerdoc>]>([
    ['another size', { size: 259 }],
    ['no content', { size: 0 }],
    ['no words', { words: 0 }],
    ['another collection', { collections: ['outbox'] }],
    ['a load date before the push', { loadDate: PEER_AT - 1_000 }],
  ])('does not outweigh %s', (_, contradiction) => {
    expect(judge({ ...shown, ...contradiction }, pushed)).toMatchObject({ shown: false });
  });

  it('is no evidence where none was pushed, or none is shown', () => {
    expect(judge({ ...shown, lastModified: 0 })).toMatchObject({ shown: true, kind: 'loadDate' });
    expect(judge({ ...shown, lastModified: undefined }, pushed)).toMatchObject({ kind: 'loadDate' });
  });
});

describe('the number of words', () => {
  /** The URL gives "https docs example org a b txt". */
  const counted = { ...SENT, words: 12 };
  const shown = { size: 260, loadDate: PEER_AT + 1_000 };

  it('of a document that has no more than its URL gives shows that its text is not in the index', () => {
    for (const words of [1, 6, 7])
      expect(judge({ ...shown, words }, counted)).toMatchObject({ shown: false, isWithoutText: true });
    expect(judge({ ...shown, words: 8 }, counted)).toMatchObject({ shown: true });
  });

  it('says nothing where the text has no more itself, or was not counted', () => {
    const path = 'https://docs.example.org/2026/11/meetingNotes/harbour-lights/final-version-2.txt';
    const long = { ...counted, url: path };
    expect(evidenceOf(doc({ ...shown, url: path, words: 11 }), long)).toMatchObject({ shown: true });
    expect(judge({ ...shown, words: 3 })).toMatchObject({ shown: true });
    expect(judge(shown, counted)).toMatchObject({ shown: true });
  });

  it('of another version says nothing of this one', () => {
    const answer = judge({ size: 3, words: 3 }, counted);
    expect(answer).toMatchObject({ shown: false });
    expect(answer).not.toHaveProperty('isWithoutText');
  });
});
