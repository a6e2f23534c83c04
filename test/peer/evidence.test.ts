import fc from 'fast-check';
import { expect, it } from 'vitest';
import { evidenceOf, type Peerdoc, type SentVersion } from '../../src/peer/peerdoc.js';

const AT = Date.UTC(2026, 10, 21, 3, 26, 19, 700);
const PEER_AT = Date.UTC(2026, 10, 21, 4, 0, 10);
const MODIFIED = Date.UTC(2023, 10, 14, 22, 13, 20);
const DIGEST = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);
const URL = 'https://docs.example.org/a%20b.txt';

/** A push without an answer, which therefore does not show the peer's clock. */
const UNANSWERED: SentVersion = {
  size: 260,
  digest: DIGEST,
  url: URL,
  collection: 'inbox',
  at: AT,
};
const SENT: SentVersion = { ...UNANSWERED, peerAt: PEER_AT };
const DATED: SentVersion = { ...SENT, lastModified: MODIFIED };
const EMPTY: SentVersion = { ...SENT, size: 0 };
const SEVERAL: SentVersion = { ...SENT, collection: 'inbox, notes' };
/** A version whose URL has the words "https docs example org a b txt". */
const COUNTED: SentVersion = { ...SENT, words: 12 };
const LONG = 'https://docs.example.org/2026/11/meetingNotes/harbour-lights/final-version-2.txt';

const judge = (shown: Partial<Peerdoc>, sent = SENT) =>
  evidenceOf({ url: URL, at: AT + 60_000, fields: {}, ...shown }, sent);

const ALL = {
  size: 260,
  words: 26,
  collections: ['inbox'],
  loadDate: PEER_AT,
  lastModified: MODIFIED,
};
const NEW = { size: 260, loadDate: PEER_AT + 1_000 };
/** A look-up whose answer has a date one hour before or after our clock. */
const HOUR = 3_600_000;
const looked = (ahead: number, loaded: number) => ({
  at: AT + 60_000,
  peerAt: AT + 60_000 + ahead,
  loadDate: AT + ahead + loaded,
});

it.each<[string, Partial<Peerdoc>, object, SentVersion?]>([
  [
    'a digest, whatever else there is',
    { digest: DIGEST, size: 1, words: 0 },
    { text: `sha256 ${DIGEST}` },
  ],
  ['a URL escaped another way', { url: 'https://docs.example.org/a b.txt', digest: DIGEST }, {}],
  ['no URL', { url: undefined, digest: DIGEST }, { kind: 'digest' }],
  ['ours among several collections', { collections: ['x', 'inbox'], digest: DIGEST }, {}],
  ['all of our collections', { collections: ['notes', 'x', 'inbox'], digest: DIGEST }, {}, SEVERAL],
  ['an empty document that was pushed so', { size: 0, words: 0 }, { kind: 'size' }, EMPTY],
  ['a size that fits', { size: 260, words: 3 }, { kind: 'size', text: '260 bytes' }],
  ['a load date in its second', { loadDate: PEER_AT }, { text: '2026-11-21T04:00:10.000Z' }],
  [
    'without an answer: as clocks differ',
    { loadDate: AT - 2_000 },
    { kind: 'loadDate' },
    UNANSWERED,
  ],
  ['without an answer: an hour ahead', looked(HOUR, 500), { kind: 'loadDate' }, UNANSWERED],
  ['without an answer: an hour behind', looked(-HOUR, 500), { kind: 'loadDate' }, UNANSWERED],
  ['a last modification', ALL, { kind: 'lastModified', text: '2023-11-14T22:13:20.000Z' }, DATED],
  [
    'one in whole seconds',
    ALL,
    { kind: 'lastModified' },
    { ...DATED, lastModified: MODIFIED + 999 },
  ],
  [
    'an earlier one of the document itself',
    { ...ALL, lastModified: 5 },
    { kind: 'loadDate' },
    DATED,
  ],
  ['none though it was pushed', { ...ALL, lastModified: undefined }, { kind: 'loadDate' }, DATED],
  ['nothing of its version', { title: 'A', lastModified: 5 }, { kind: 'present', text: URL }],
  ['only a hash', { url: undefined, urlhash: 'abc' }, { kind: 'present', text: 'abc' }],
  ['more words than its URL gives', { ...NEW, words: 8 }, {}, COUNTED],
  [
    'no more words than its long URL',
    { ...NEW, url: LONG, words: 11 },
    {},
    { ...COUNTED, url: LONG },
  ],
  ['no words where they were counted', NEW, {}, COUNTED],
])('a document with %s is the version that was sent', (_, shown, expected, sent) => {
  expect(judge(shown, sent)).toMatchObject({ shown: true, ...expected });
});

it.each<[string, Partial<Peerdoc>, string | undefined, SentVersion?]>([
  ['other content', { ...ALL, digest: OTHER }, `the peer shows other content (sha256 ${OTHER})`],
  ['another URL', { url: 'https://docs.example.org/c.txt', digest: DIGEST }, undefined],
  ['a part of our collections', { collections: ['inbox'], digest: DIGEST }, undefined, SEVERAL],
  ['no bytes', { size: 0, words: 0, loadDate: PEER_AT }, 'the peer has an empty document'],
  ['without an answer: a load date long before', { loadDate: AT - 2_001 }, undefined, UNANSWERED],
  ['without an answer: before, by a clock ahead', looked(HOUR, -10_000), undefined, UNANSWERED],
  ['without an answer: before, by a clock behind', looked(-HOUR, -10_000), undefined, UNANSWERED],
  [
    'a later last modification',
    { ...ALL, lastModified: MODIFIED + 1_000 },
    'the peer shows another version, last modified 2023-11-14T22:13:21.000Z',
    DATED,
  ],
  [
    'an earlier one and no load date',
    { size: 260, lastModified: MODIFIED - 1_000 },
    undefined,
    DATED,
  ],
  [
    'an earlier one, loaded before',
    { lastModified: 5, loadDate: PEER_AT - 1_000 },
    undefined,
    DATED,
  ],
  ['the last modification, elsewhere', { ...ALL, collections: ['outbox'] }, undefined, DATED],
  ['the last modification, loaded before', { ...ALL, loadDate: PEER_AT - 1_000 }, undefined, DATED],
])('a document with %s is not the version that was sent', (_, shown, why, sent) => {
  const judged = judge(shown, sent);
  expect(judged).toMatchObject({ shown: false, ...(why === undefined ? {} : { why }) });
  expect(judged).not.toHaveProperty('isWithoutText');
});

it('a text is not in the index if the peer counts no more words than the URL has', () => {
  for (const words of [1, 7])
    expect(judge({ ...NEW, words }, COUNTED)).toMatchObject({ shown: false, isWithoutText: true });
  // The word count of another version says nothing about this one.
  expect(judge({ size: 3, words: 3 }, COUNTED)).not.toHaveProperty('isWithoutText');
});

it('a digest, size or load date that contradicts the version always means no', () => {
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
          ? (fields.size ?? 260) !== 260 ||
            fields.words === 0 ||
            (fields.loadDate ?? PEER_AT) < PEER_AT
          : fields.digest !== DIGEST);
      expect(judge(fields).shown).toBe(!contradicted);
    }),
  );
});
