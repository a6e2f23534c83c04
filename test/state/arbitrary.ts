import fc, { type Arbitrary } from 'fast-check';
import { ENCODINGS, type ExtractedBy, type FileStat } from '../../src/lib/file.js';
import type {
  AcceptedItem,
  ConfirmedItem,
  Entry,
  Evidence,
  Failure,
  GoneItem,
  HistoryEntry,
  PendingItem,
  QuarantinedItem,
  RemovedItem,
  RemovingItem,
  Sent,
  SkippedFile,
  Version,
} from '../../src/state/entry.js';

/** One arbitrary per field, so that a new field of a record cannot be forgotten here. */
type Fields<T> = { readonly [K in keyof T]-?: Arbitrary<Exclude<T[K], undefined>> };

/** Any T, with or without its optional fields. */
function any<T extends object>(
  fields: Fields<T>,
  optional: readonly (keyof T)[] = [],
): Arbitrary<T> {
  const requiredKeys = (Object.keys(fields) as (keyof T)[]).filter(
    (key) => !optional.includes(key),
  );
  return fc.record(fields as never, {
    requiredKeys: requiredKeys as never,
    noNullPrototype: true,
  }) as Arbitrary<T>;
}

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('\u2028', '\ud800', '"\\\n'),
);
/** Any name that a file may have on disk. */
const name = text
  .map((t) => t.replaceAll(/[/\0]/g, '_'))
  .filter((t) => t !== '' && t !== '.' && t !== '..');
const at = fc.integer({ min: 0, max: 4e12 });
/**
 * Any number that JSON can express. File systems report negative times for files from before 1970.
 */
const ms = fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (n === 0 ? 0 : n));
const bytes = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const hash = fc.stringMatching(/^[0-9a-f]{64}$/);
const statuses = [
  'pending',
  'accepted',
  'confirmed',
  'quarantined',
  'gone',
  'skipped',
  'removing',
  'removed',
] as const;
const status = fc.constantFrom(...statuses);

const stat: Fields<FileStat> = { size: bytes, mtimeMs: ms, ctimeMs: ms, ino: bytes };
const version: Arbitrary<Version> = any<Version>({
  ...stat,
  sha256: hash,
  encoding: fc.constantFrom(...ENCODINGS),
});
const document = { sha256: hash, size: bytes, digest: hash, url: text, collection: text };
const extracted = any<ExtractedBy>(
  {
    reader: text,
    words: bytes,
    ms: bytes,
    pages: bytes,
    ocrPages: bytes,
    confidence: fc.nat({ max: 100 }),
    unreadPages: text,
    leftOut: text,
  },
  ['ms', 'pages', 'ocrPages', 'confidence', 'unreadPages', 'leftOut'],
);
const sent: Arbitrary<Sent> = any<Sent>(
  {
    ...document,
    at,
    peerAt: at,
    lastModified: at,
    words: bytes,
    extracted,
    lacks: fc.uniqueArray(fc.constantFrom('ocr', 'ocr of pdf', '.doc'), { minLength: 1 }),
    isUncertain: fc.constant(true),
  },
  ['peerAt', 'lastModified', 'words', 'extracted', 'lacks', 'isUncertain'],
);
const date = at.map((ms) => new Date(ms).toISOString().replace('.000Z', 'Z'));
const kind = fc.constantFrom<Evidence['kind']>(
  'digest',
  'lastModified',
  'loadDate',
  'size',
  'present',
);
const evidence = any<Evidence>({ kind, at, shown: fc.oneof(text, date) });
const failure = any<Failure>({ code: text, message: text, hint: text });
const history = fc.array(any<HistoryEntry>({ status, at, note: text }, ['note']), { maxLength: 8 });
const folder = fc.constantFrom('inbox', 'other', 'ümläut 😀', '');
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('/'));

const core = { folder, path, since: at, history };
const item = { ...core, url: text, collection: text, sent, attempts: fc.nat(), failure };
const sameTimes = version.map((v) => ({ ...v, ctimeMs: v.mtimeMs }));
const eitherVersion = fc.oneof(version, sameTimes, any<FileStat>(stat));

const pending = {
  ...item,
  status: fc.constant('pending' as const),
  version,
  notBefore: at,
  inFlight: sent,
};
const removing = {
  ...item,
  status: fc.constant('removing' as const),
  version: eitherVersion,
  notBefore: at,
  requestedAt: at,
  keptOut: failure,
};
const skippedFile = {
  ...core,
  status: fc.constant('skipped' as const),
  version: any<FileStat>(stat),
  failure,
  sent,
};
const entries: readonly Arbitrary<Entry>[] = [
  any<PendingItem>(pending, ['sent', 'failure', 'inFlight']),
  any<AcceptedItem>({ ...item, status: fc.constant('accepted'), version }, ['failure']),
  any<ConfirmedItem>({ ...item, status: fc.constant('confirmed'), version, evidence }, ['failure']),
  any<QuarantinedItem>({ ...item, status: fc.constant('quarantined'), version: eitherVersion }, [
    'sent',
  ]),
  any<GoneItem>({ ...item, status: fc.constant('gone'), version: eitherVersion }, [
    'sent',
    'failure',
  ]),
  any<RemovingItem>(removing, ['sent', 'failure', 'requestedAt', 'keptOut']),
  any<RemovedItem>({ ...item, status: fc.constant('removed'), version: eitherVersion }, [
    'sent',
    'failure',
  ]),
  any<SkippedFile>(skippedFile, ['sent']),
];

/** Any record. Some repeat values, as real ones do. */
export const anyEntry: Arbitrary<Entry> = fc
  .tuple(fc.oneof(...entries), fc.boolean(), fc.boolean(), fc.boolean())
  .map(([entry, sameHash, sameDigest, samePlace]) => {
    if (!('sha256' in entry.version) || !('url' in entry) || entry.sent === undefined) return entry;
    const { sha256 } = entry.version;
    const { url, collection } = entry;
    const repeated = {
      ...(sameHash ? { sha256 } : {}),
      ...(sameDigest ? { digest: sameHash ? sha256 : entry.sent.sha256 } : {}),
      ...(samePlace ? { url, collection } : {}),
    };
    return { ...entry, sent: { ...entry.sent, ...repeated } } as Entry;
  });

export { folder as anyFolder, path as anyPath };
