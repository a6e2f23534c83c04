import { z } from 'zod';
import {
  type Bytes,
  bytes,
  DURATION_PATTERN,
  formatBytes,
  formatDuration,
  type Milliseconds,
  milliseconds,
  parseDuration,
  parseSize,
  SIZE_PATTERN,
} from './units.js';
import { normaliseBase, normalisePeerUrl } from './url.js';

// In every schema of this room the error text is the answer to "what would be right?"; problems.ts makes the
// sentence around it. `change` (when to change the value) is for the README only.

/** A duration between two others, as text with a unit. */
export function duration(min: string, max: string) {
  const [low, high] = [known(parseDuration(min)), known(parseDuration(max))];
  const right = `a duration such as "2s" or "15m", from ${formatDuration(low)} to ${formatDuration(high)}`;
  return z
    .string({ error: right })
    .meta({ pattern: DURATION_PATTERN })
    .transform((text, context): Milliseconds => {
      const value = parseDuration(text);
      if (value !== undefined && value >= low && value <= high) return value;
      context.issues.push({ code: 'custom', message: right, input: text });
      return milliseconds(0);
    });
}

/** A size between two others, as text with a unit or as a number of bytes. */
export function size(min: string, max: string) {
  const [low, high] = [known(parseSize(min)), known(parseSize(max))];
  const right = `a size such as "64 KiB" or "8 MiB", from ${formatBytes(low)} to ${formatBytes(high)}`;
  return z
    .union([z.string().meta({ pattern: SIZE_PATTERN }), z.int().min(low).max(high)], { error: right })
    .transform((text, context): Bytes => {
      const value = parseSize(text);
      if (value !== undefined && value >= low && value <= high) return value;
      context.issues.push({ code: 'custom', message: right, input: text });
      return bytes(0);
    });
}

export function wholeNumber(min: number, max: number) {
  return z
    .int({ error: `a whole number from ${min} to ${max}` })
    .min(min)
    .max(max);
}

/** Requests a second; fractions are slower than one a second. */
export function rate() {
  return z.number({ error: 'a number from 0.01 to 10000' }).min(0.01).max(10_000);
}

export function flag() {
  return z.boolean({ error: 'true or false' });
}

export function oneOf<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, { error: values.map((value) => JSON.stringify(value)).join(' or ') });
}

/** A path, relative to the file that it stands in. */
export function path(of: string) {
  const right = `the path of ${of}`;
  return text(right)
    .refine((value) => !value.includes('\0'), { error: `${right}, without a NUL character` })
    .refine((value) => !/^~(\/|$)/.test(value), { error: `${right}, written out: "~" is not expanded` });
}

/** What the peer's comma-separated lists and printed records carry unharmed. */
export function collection() {
  return text(
    'a collection: 1 to 100 letters, digits or any of - _ . : / + @ (no spaces, no commas: the peer reads a comma as a separator)',
    /^[\p{L}\p{M}\p{N}\-_.:/+@]{1,100}$/u,
  );
}

/** A name for people and commands; unique among the folders. */
export const FOLDER_NAME = /^[^\p{Cc}\p{Cs}/\\]{1,100}$/u;
export const FOLDER_NAME_RIGHT = 'a name of 1 to 100 characters without slashes and control characters';

/** A pattern in gitignore syntax that means something: the library passes over the others without a word. */
export function pattern() {
  return text('a pattern in gitignore syntax, such as "*.log" or "drafts/"')
    .refine((value) => value.trim() !== '' && !value.includes('\0'), {
      error: 'a pattern in gitignore syntax that is not blank and has no NUL character',
    })
    .refine((value) => !value.startsWith('#'), {
      error: 'a pattern, not a comment: write "\\\\#" where a name begins with "#"',
    })
    .refine((value) => !/(?<!\\)(?:\\\\)*\\$/.test(value), {
      error: 'a pattern that does not end in a single backslash',
    });
}

/** A pattern where "not this" would mean nothing. */
export function positivePattern() {
  return pattern().refine((value) => !value.startsWith('!'), {
    error: 'a pattern without "!" (write "\\\\!" where a name begins with "!")',
  });
}

export function folderUrl() {
  return normalised(
    normaliseBase,
    'an http, https, ftp or file URL such as "https://files.example.org/docs/", without credentials, query and fragment',
  );
}

export function peerUrl() {
  return normalised(
    (value) => (value === 'embedded' ? value : normalisePeerUrl(value)),
    '"embedded" or an http or https base URL such as "https://peer.example.org:8443", without credentials, query and ' +
      'fragment (credentials belong in peer.auth)',
  );
}

export function text(right: string, form?: RegExp) {
  const some = z.string({ error: right }).min(1, { error: right });
  return form === undefined ? some : some.regex(form, { error: right });
}

function normalised(normalise: (value: string) => string | undefined, right: string) {
  return z.string({ error: right }).transform((value, context) => {
    const result = normalise(value);
    if (result !== undefined) return result;
    context.issues.push({ code: 'custom', message: right, input: value });
    return value;
  });
}

/** For the bounds written in this room: a typing error in one must not pass. */
function known<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('a bound in the configuration schema is no duration or size');
  return value;
}
