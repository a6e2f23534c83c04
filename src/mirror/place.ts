import { createHash } from 'node:crypto';

/** Where a file stands below the root, and what had to be changed for that. */
export interface Place {
  /** Relative, with "/" between its parts. */
  readonly path: string;
  /** Names of the peer that could not be file names as they are; for `status`. */
  readonly changed: readonly { readonly from: string; readonly to: string }[];
}

/** Most bytes of one name of the peer in UTF-8; `.1000`, `.conflict-…` and what the template adds still fit a file system. */
const LONGEST_NAME_BYTES = 200;
const LONGEST_SEGMENT_BYTES = 225;

/** Control, bidirectional and other characters that make a name look like another, and those with a meaning somewhere. */
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
 * The name as a file name that is safe on every system: one part of a path, at most 200 bytes, in NFC. What had to be
 * changed gets "~" and the first 8 hex digits of the sha256 of the original, before the extension if it has one, so
 * that different names stay different.
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

/** Puts "~" and 8 hex digits that stand for `original` before the extension of `name`, cut to `bytes`. */
export function withHash(name: string, original: string, bytes = LONGEST_SEGMENT_BYTES): string {
  const hash = createHash('sha256').update(original).digest('hex').slice(0, 8);
  const extension = EXTENSION.exec(name)?.[0] ?? '';
  const stem = cut(name.slice(0, name.length - extension.length), bytes - extension.length - hash.length - 1);
  return `${stem === '' ? '_' : stem}~${hash}${extension}`;
}

/**
 * Fills the names of the peer into a path template: `{table}` in `tables/{table}.csv`. What stands in the template itself is
 * the user's choice and stays; a value is one part of a path, made safe, or, given as a list, that many parts.
 */
export function placeOf(
  template: string,
  variables: Readonly<Record<string, string | readonly string[]>>,
): Place {
  const changed: { from: string; to: string }[] = [];
  const safe = (from: string): string => {
    const to = safeName(from);
    if (to !== from) changed.push({ from, to });
    return to;
  };
  const filled = template.replace(/\{(\w+)\}/g, (braces, name: string) => {
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (value === undefined) return braces;
    return typeof value === 'string' ? safe(value) : value.map(safe).join('/');
  });
  const parts = filled.split('/').map((part) => {
    if (Buffer.byteLength(part) <= LONGEST_SEGMENT_BYTES) return part;
    const to = withHash(part, part);
    changed.push({ from: part, to });
    return to;
  });
  return { path: parts.join('/'), changed };
}

/** Cut at a character, never in the middle of one. */
function cut(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  let size = 0;
  let kept = '';
  for (const character of text) {
    size += Buffer.byteLength(character);
    if (size > bytes) break;
    kept += character;
  }
  return kept;
}
