import { createHash } from 'node:crypto';
import { inTurns } from '../lib/slices.js';
import { compareByCodePoint } from '../lib/text.js';
import { MirrorError, quoted } from './errors.js';

/**
 * Names the state that mirrors into the directory in which it stands. Names of the peer never
 * become this one.
 */
export const MARKER = '.peersync-mirror.json';

/** Where a file stands below the root, and what had to be changed for that. */
export interface TargetPath {
  /** Relative, with "/" between its parts. */
  readonly path: string;
  /** Which names of the peer could not be file names as they are; for `status`. */
  readonly notes: readonly string[];
}

/**
 * Most bytes of one name of the peer in UTF-8; `.1000`, `.conflict-…` and what the template adds
 * still fit a file system.
 */
const LONGEST_NAME_BYTES = 200;
const LONGEST_PART_BYTES = 225;
/** Paths that are granted without giving way to other work. */
const GRANTED_A_TURN = 100;

/**
 * Control, bidirectional and other characters that make a name look like another, and those with a
 * meaning somewhere.
 */
const FORBIDDEN =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff/\\:*?"<>|]/gu;
/** At the front: hidden files, the home of a shell, blanks. */
const FORBIDDEN_FRONT = /^[.~\s]+/u;
/** At the end: what Windows cuts off, and what editors call their backups. */
const FORBIDDEN_END = /[.~\s]+$/u;
const RESERVED = /^(?:con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³]|conin\$|conout\$)(?=\.|$)/iu;
/** As names are that were made safe: no other name may look like one. */
const MADE_SAFE = /~[\da-f]{8}(?:\.[a-z][\da-z]{0,9})?$/iu;
const EXTENSION = /\.[a-z][\da-z]{0,9}$/iu;

/**
 * The name as a file name that is safe on every system: one part of a path, at most 200 bytes, in
 * NFC. What had to be changed gets "~" and the first 8 hex digits of the sha256 of the original,
 * before the extension if it has one, so that different names stay different.
 */
export function safeName(original: string): string {
  const cleaned = original
    .replace(FORBIDDEN, '_')
    .normalize('NFC')
    .replace(FORBIDDEN_FRONT, '_')
    .replace(FORBIDDEN_END, '_')
    .replace(RESERVED, '_$&');
  const safe = cleaned === original && cleaned !== '' && !MADE_SAFE.test(cleaned);
  if (safe && Buffer.byteLength(cleaned) <= LONGEST_NAME_BYTES) return cleaned;
  return withHash(cleaned, original, LONGEST_NAME_BYTES);
}

/**
 * Puts "~" and 8 hex digits that stand for `original` before the extension of `name`, cut to
 * `bytes`.
 */
function withHash(name: string, original: string, bytes = LONGEST_PART_BYTES): string {
  const hash = createHash('sha256').update(original).digest('hex').slice(0, 8);
  const extension = EXTENSION.exec(name)?.[0] ?? '';
  const stem = cut(
    name.slice(0, name.length - extension.length),
    bytes - extension.length - hash.length - 1,
  );
  return `${stem === '' ? '_' : stem}~${hash}${extension}`;
}

/** Cut at a character, never in the middle of one. */
function cut(text: string, bytes: number): string {
  const head = Buffer.from(text).subarray(0, bytes);
  return new TextDecoder().decode(head, { stream: true });
}

/**
 * Fills the names of the peer into a path template: `{table}` in `tables/{table}.csv`. What stands
 * in the template itself is the user's choice and stays; a value is one part of a path, made safe,
 * or, given as a list, that many parts.
 */
export function fillTemplate(
  template: string,
  variables: Readonly<Record<string, string | readonly string[]>>,
): TargetPath {
  const notes: string[] = [];
  const replaced = (from: string, to: string): string => {
    if (to !== from) notes.push(noteOf(from, to));
    return to;
  };
  const filled = template.replace(/\{(\w+)\}/g, (braces, name: string) => {
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (value === undefined) return braces;
    return [value]
      .flat()
      .map((part) => replaced(part, safeName(part)))
      .join('/');
  });
  const parts = filled
    .split('/')
    .map((part) =>
      Buffer.byteLength(part) <= LONGEST_PART_BYTES ? part : replaced(part, withHash(part, part)),
    );
  return { path: parts.join('/'), notes };
}

function noteOf(from: string, to: string): string {
  return `${quoted(from)} cannot be a file name as it is; it is called ${to}.`;
}

/** A mirror that wants a file below the root. */
export interface Claim {
  /** The name of the mirror. */
  readonly owner: string;
  readonly wanted: TargetPath;
  /**
   * Where its file stands already, from its record: it stays there as long as that is a path that
   * it may have.
   */
  readonly held?: string | undefined;
  /** What it was granted before: that stays its own. */
  readonly granted?: string | undefined;
  /** Whether files appear beside it: NAME.1 and so on, NAME.conflict-TIME. */
  readonly neighbours: boolean;
}

/**
 * The target paths of all mirrors of one root, by their owners: no two mirrors ever write the same
 * file, also on a disk that ignores case or how characters are composed, and no file of one stands
 * where another has a directory, a version or a conflict file.
 *
 * A claim gets the path that it asks for unless that is in the way of one granted before; then its
 * name gets "~" and 8 hex digits of the sha256 of its owner's name. Claims are granted in an order
 * that is not theirs: first those that were granted before, then those whose file stands there
 * already, then by the owner's name, by code point.
 *
 * @throws MirrorError MIRROR_BLOCKED when there is none left for one, which takes names made for
 *   that
 */
export async function grantPaths(
  claims: readonly Claim[],
): Promise<ReadonlyMap<string, TargetPath>> {
  /** Whether files appear beside it, by the file. */
  const files = new Map([[MARKER, false]]);
  const directories = new Set<string>();
  /** Of which files there may be versions or conflict files, by the names that are taken. */
  const stems = new Set<string>();
  const take = (path: string, neighbours: boolean): boolean => {
    // As on a disk that ignores case and how characters are composed.
    const file = path.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');
    const parts = file.split('/');
    const above = parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'));
    const own = [...above, file].flatMap(stemsOf);
    const isTaken =
      files.has(file) ||
      directories.has(file) ||
      above.some((directory) => files.has(directory)) ||
      own.some((stem) => files.get(stem)) ||
      (neighbours && stems.has(file));
    if (isTaken) return false;
    files.set(file, neighbours);
    for (const directory of above) directories.add(directory);
    for (const stem of own) stems.add(stem);
    return true;
  };
  const rank = ({ granted, held }: Claim) =>
    granted !== undefined ? 0 : held !== undefined ? 1 : 2;
  const order = claims.toSorted(
    (a, b) => rank(a) - rank(b) || compareByCodePoint(a.owner, b.owner),
  );
  const paths = new Map<string, TargetPath>();
  for await (const claim of inTurns(order, GRANTED_A_TURN)) {
    const { owner, wanted, neighbours } = claim;
    const path = candidates(claim).find((path) => take(path, neighbours));
    if (path === undefined)
      throw new MirrorError('MIRROR_BLOCKED', wanted.path, 'the file of another mirror');
    const notes = path === wanted.path ? [] : [noteOf(wanted.path, path)];
    paths.set(owner, { path, notes: [...wanted.notes, ...notes] });
  }
  return paths;
}

/** Of which files this could be a version or a conflict file. */
function stemsOf(name: string): readonly string[] {
  const suffixes = name.matchAll(/\.(?:[1-9]\d{0,3}$|conflict-(?=[^/]*$))/g);
  return [...suffixes].map(({ index }) => name.slice(0, index));
}

/**
 * What was granted; else where the file stands, if that is one of these: the path as it is, then
 * with the owner's hash in the last part, then in all parts.
 */
function candidates({ owner, wanted: { path }, held = path, granted }: Claim): readonly string[] {
  if (granted !== undefined) return [granted];
  const parts = path.split('/');
  const hashed = parts.map((part) => withHash(part.replace(/\.(?=conflict-)/gi, '_'), owner));
  const possible = [path, [...parts.slice(0, -1), ...hashed.slice(-1)].join('/'), hashed.join('/')];
  return possible.includes(held) ? [held, ...possible] : possible;
}
