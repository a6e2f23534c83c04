import { Refusal } from './answer.js';

/** The name of a shared object: where its file stands below the folder of shares. */
export interface ShareName {
  /** The group, which is the first folder; empty where the object stands directly in the folder of shares. */
  readonly c: string;
  /** The rest of the path, with `/` between folders. */
  readonly data: string;
  /** Folders and file, from the folder of shares down. */
  readonly segments: readonly string[];
}

/** Folders and file of a name; what lies deeper is no object. */
export const MOST_SEGMENTS = 32;
/** Bytes; what Linux file systems take. */
const LONGEST_SEGMENT = 255;

/**
 * The name that `c` and `data` make. It cannot lead out of the folder of shares.
 *
 * @throws Refusal 400 for what cannot be a name, 404 for hidden files, which are nobody's objects
 */
export function shareName(c: string, data: string): ShareName {
  const segments = [...shareGroup(c), ...data.split('/')];
  check(segments, 'data');
  const [first = ''] = segments;
  return segments.length === 1
    ? { c: '', data: first, segments }
    : { c: first, data: segments.slice(1).join('/'), segments };
}

/** The folder of the group `c`; none where it is empty. @throws Refusal as for a name */
export function shareGroup(c: string): readonly string[] {
  if (c === '') return [];
  if (c.includes('/')) throw new Refusal(400, 'The parameter c cannot hold a slash.');
  check([c], 'c');
  return [c];
}

function check(segments: readonly string[], parameter: string): void {
  const why = segments.length > MOST_SEGMENTS ? 'names too many folders' : firstTrouble(segments);
  if (why !== undefined) throw new Refusal(400, `The parameter ${parameter} ${why}.`);
  if (segments.some(isHidden)) throw new Refusal(404, 'There is no such shared object.');
}

function firstTrouble(segments: readonly string[]): string | undefined {
  for (const segment of segments) {
    if (segment === '') return 'begins or ends with a slash, has two in a row, or is empty';
    if (segment === '.' || segment === '..') return 'leads to another folder';
    if (segment.includes('\\') || /\p{Cc}/u.test(segment))
      return 'holds a backslash or a character that cannot be seen';
    if (Buffer.byteLength(segment) > LONGEST_SEGMENT)
      return `names a file or folder with more than ${LONGEST_SEGMENT} bytes`;
  }
  return undefined;
}

/** Also what other programs write beside a file until it is whole. */
export function isHidden(segment: string): boolean {
  return segment.startsWith('.');
}
