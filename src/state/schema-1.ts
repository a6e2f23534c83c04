import { ENCODINGS } from '../lib/encodings.js';
import type { Entry, Sent } from './entry.js';
import { statusOfCode } from './line.js';

/** Stands for a value that is not there, or that is the same as the one the record has already. */
const NONE = 0;

type SentRow = readonly [
  sha256: string | 0,
  size: number,
  digest: string | 0,
  url: string | 0,
  collection: string | 0,
  at: number,
  peerAt?: number | null,
  lastModified?: number | null,
  words?: number,
];
/** `last` begins with the evidence of a confirmed item, or the `notBefore` and the doubt of a pending one. */
type EntryRow = readonly [
  code: string,
  folder: string,
  path: string,
  since: number,
  history: readonly (string | number)[],
  version: readonly [size: number, mtimeMs: number, ctimeMs: number | null, ino: number, string?, number?],
  sent: SentRow | 0,
  trouble: readonly [code: string, message: string, hint: string] | 0,
  url?: string,
  collection?: string,
  attempts?: number,
  ...last: (string | number | SentRow)[],
];

/** The record of a row of schema 1, as peersync wrote it until November 2026. */
export function entryOfSchema1(row: readonly unknown[]): Entry {
  const [code, folder, path, since, history, version, sent, trouble, url, collection, attempts, ...last] =
    row as EntryRow;
  const status = statusOfCode(code);
  const [size, mtimeMs, ctimeMs, ino, sha256, encoding] = version;
  const sentOf = (given: SentRow): Sent => {
    const hash = given[0] === NONE ? (sha256 ?? '') : given[0];
    const [, sentSize, digest, sentUrl, sentCollection, at, peerAt, lastModified, words] = given;
    return {
      sha256: hash,
      size: sentSize,
      digest: digest === NONE ? hash : digest,
      url: sentUrl === NONE ? (url ?? '') : sentUrl,
      collection: sentCollection === NONE ? (collection ?? '') : sentCollection,
      at: since + at,
      ...(typeof peerAt === 'number' ? { peerAt: since + peerAt } : {}),
      ...(typeof lastModified === 'number' ? { lastModified } : {}),
      ...(words === undefined ? {} : { words }),
    };
  };
  const [first, second, third] = last;
  const content = sha256 === undefined ? {} : { sha256, encoding: ENCODINGS[encoding ?? 0] };
  return {
    ...{ folder, path, status, since },
    version: { size, mtimeMs, ctimeMs: ctimeMs ?? mtimeMs, ino, ...content },
    history: Array.from({ length: history.length / 3 }, (_, i) => {
      const [was, after, note] = history.slice(3 * i);
      const change = { status: statusOfCode(was), at: since + Number(after) };
      return typeof note === 'string' ? { ...change, note } : change;
    }),
    ...(sent === NONE ? {} : { sent: sentOf(sent) }),
    ...(trouble === NONE ? {} : { trouble: { code: trouble[0], message: trouble[1], hint: trouble[2] } }),
    ...(status === 'passed' ? {} : { url, collection, attempts }),
    ...(status === 'pending' ? { notBefore: since + Number(first) } : {}),
    ...(status === 'pending' && Array.isArray(second) ? { doubt: sentOf(second as unknown as SentRow) } : {}),
    ...(status === 'confirmed'
      ? { evidence: { kind: first, at: since + Number(second), shown: third } }
      : {}),
  } as Entry;
}
