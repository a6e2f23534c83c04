import { createHash } from 'node:crypto';
import { withPauses } from '../lib/slices.js';
import { compareByCodePoint } from '../lib/text.js';
import { MirrorError, quoted } from './errors.js';

/**
 * The file in a mirror root that names the state which mirrors there. No name of the peer becomes
 * this one.
 */
export const MARKER = '.peersync-mirror.json';

/** The path of a file below the root, and notes about names that had to be changed for it. */
export interface TargetPath {
  /** The relative path, with "/" between its parts. */
  readonly path: string;
  /** Notes for `status` about names of the peer that cannot be file names as they are. */
  readonly notes: readonly string[];
}

/**
 * The longest file name made of a name of the peer, in bytes of UTF-8. The rest of the template,
 * `.1000` and `.conflict-…` still fit the 255 bytes of a file system.
 */
const LONGEST_NAME_BYTES = 200;
const LONGEST_PART_BYTES = 225;
/** The paths that are granted between two pauses. */
const PATHS_PER_SLICE = 100;

/**
 * Control, bidirectional and other characters that make a name look like another one, and
 * characters with a meaning in paths or shells.
 */
const FORBIDDEN =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff/\\:*?"<>|]/gu;
/** Characters that a name does not begin with: of hidden files, the home directory, blanks. */
const FORBIDDEN_FRONT = /^[.~\s]+/u;
/**
 * Characters that a name does not end with: Windows cuts them off, or editors' backups have them.
 */
const FORBIDDEN_END = /[.~\s]+$/u;
const RESERVED = /^(?:con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³]|conin\$|conout\$)(?=\.|$)/iu;
/** The form of names that were made safe. No other name may look like one. */
const MADE_SAFE = /~[\da-f]{8}(?:\.[a-z][\da-z]{0,9})?$/iu;
const EXTENSION = /\.[a-z][\da-z]{0,9}$/iu;

/**
 * Returns a name as a file name that is safe on every system: one part of a path, at most 200
 * bytes, in NFC. A name that had to be changed gets "~" and the first 8 hex digits of the sha256 of
 * the original before its extension, so that different names stay different.
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
 * Cuts a name to `bytes`, with "~" and 8 hex digits of the hash of `original` in front of its
 * extension.
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

/** Cuts a text between two characters, and not within one. */
function cut(text: string, bytes: number): string {
  const head = Buffer.from(text).subarray(0, bytes);
  return new TextDecoder().decode(head, { stream: true });
}

/**
 * Fills names of the peer into a path template: `{table}` in `tables/{table}.csv`. The template
 * itself is the user's choice, and stays as it is. A value becomes one safe part of the path, a
 * list of values as many parts.
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
  /** The path of its existing file, from its record. It stays if it is a candidate. */
  readonly current?: string | undefined;
  /** The path that it was granted before. It stays. */
  readonly granted?: string | undefined;
  /** Whether it has files beside it: NAME.1 and so on, NAME.conflict-TIME. */
  readonly neighbours: boolean;
}

/**
 * Grants each mirror of a root its path. No two mirrors write the same file, even on a disk that
 * ignores case or the composition of characters. No file of one mirror is where another has a
 * directory, a version or a conflict file.
 *
 * A claim gets the path that it wants unless an earlier one conflicts with it. Then its name gets
 * "~" and 8 hex digits of the sha256 of its owner. The order of the claims does not matter: granted
 * paths come first, then existing files, then the owners by code point.
 *
 * @returns the paths by owner
 * @throws MirrorError MIRROR_BLOCKED if no candidate is free, which takes names made for that
 */
export async function grantPaths(
  claims: readonly Claim[],
): Promise<ReadonlyMap<string, TargetPath>> {
  /** The granted files, and whether each has files beside it. */
  const files = new Map([[MARKER, false]]);
  const directories = new Set<string>();
  /** The files whose versions or conflict files would have a name that is taken. */
  const stems = new Set<string>();
  const take = (path: string, neighbours: boolean): boolean => {
    // The same name on a disk that ignores case and the composition of characters.
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
  const rank = ({ granted, current }: Claim) =>
    granted !== undefined ? 0 : current !== undefined ? 1 : 2;
  const order = claims.toSorted(
    (a, b) => rank(a) - rank(b) || compareByCodePoint(a.owner, b.owner),
  );
  const paths = new Map<string, TargetPath>();
  for await (const claim of withPauses(order, PATHS_PER_SLICE)) {
    const { owner, wanted, neighbours } = claim;
    const path = candidates(claim).find((path) => take(path, neighbours));
    if (path === undefined) {
      const detail = 'the file of another mirror';
      throw new MirrorError('MIRROR_BLOCKED', { what: wanted.path, detail });
    }
    const notes = path === wanted.path ? [] : [noteOf(wanted.path, path)];
    paths.set(owner, { path, notes: [...wanted.notes, ...notes] });
  }
  return paths;
}

/** Returns the files of which a name could be a version or a conflict file. */
function stemsOf(name: string): readonly string[] {
  const suffixes = name.matchAll(/\.(?:[1-9]\d{0,3}$|conflict-(?=[^/]*$))/g);
  return [...suffixes].map(({ index }) => name.slice(0, index));
}

/**
 * Returns the possible paths of a claim, best first. The granted path is the only one. Otherwise:
 * the wanted path, with the owner's hash in the last part, with it in all parts. The path of an
 * existing file comes first if it is one of them.
 */
function candidates({
  owner,
  wanted: { path },
  current = path,
  granted,
}: Claim): readonly string[] {
  if (granted !== undefined) return [granted];
  const parts = path.split('/');
  const hashed = parts.map((part) => withHash(part.replace(/\.(?=conflict-)/gi, '_'), owner));
  const possible = [path, [...parts.slice(0, -1), ...hashed.slice(-1)].join('/'), hashed.join('/')];
  return possible.includes(current) ? [current, ...possible] : possible;
}
