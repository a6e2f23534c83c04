import { z } from 'zod';
import { DURATION_PATTERN, parseDuration, parseSize, SIZE_PATTERN } from '../lib/units.js';
import { normaliseBase, normalisePeerUrl } from './url.js';

// The error text of each schema names the value that would be right. load.ts builds the sentence
// around it.

/** A text. It must match `form` if that is given. */
export function text(right: string, form?: RegExp) {
  const some = z.string({ error: right }).min(1, { error: right });
  return form === undefined ? some : some.regex(form, { error: right });
}

/** An optional section of the file. If it is left out, all its keys have their defaults. */
export function section<T extends z.core.$ZodLooseShape>(description: string, shape: T) {
  return z
    .strictObject(shape)
    .prefault({} as never)
    .describe(description);
}

/** A duration in ms, given as text with a unit. @param min, max the inclusive limits */
export function duration(min: string, max: string, usual: string) {
  return anyDuration(min, max).prefault(usual);
}

export function optionalDuration(min: string, max: string) {
  return anyDuration(min, max).optional();
}

function anyDuration(min: string, max: string) {
  const right = `a duration such as "2s" or "15m", from ${min} to ${max}`;
  const given = z.string({ error: right }).meta({ pattern: DURATION_PATTERN });
  return given.transform(parsedBy(between(parseDuration, min, max), right));
}

/**
 * A size in bytes, given as text with a unit or as a number. @param min, max the inclusive limits
 */
export function size(min: string, max: string, usual: string) {
  const right = `a size such as "64 KiB" or "8 MiB", from ${min} to ${max}`;
  const given = z.union([z.string().meta({ pattern: SIZE_PATTERN }), z.int()], { error: right });
  return given.transform(parsedBy(between(parseSize, min, max), right)).prefault(usual);
}

export function wholeNumber(min: number, max: number, usual: number) {
  return anyNumber(min, max).default(usual);
}

export function optionalNumber(min: number, max: number) {
  return anyNumber(min, max).optional();
}

function anyNumber(min: number, max: number) {
  const error = `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min).max(max);
}

/** A rate in requests per second. A fraction means less than one per second. */
export function rate() {
  return z.number({ error: 'a number from 0.01 to 10000' }).min(0.01).max(10_000).optional();
}

export function flag(usual: boolean) {
  return z.boolean({ error: 'true or false' }).default(usual);
}

export function oneOf<const T extends readonly [string, ...string[]]>(values: T, usual: T[number]) {
  const right = values.map((value) => JSON.stringify(value)).join(' or ');
  return z.enum(values, { error: right }).default(() => usual as never);
}

/**
 * A path, relative to the configuration file or below `~`. @param of the thing at the path, for
 * errors
 */
export function path(of: string) {
  const right = `the path of ${of}`;
  return text(right).refine((value) => !value.includes('\0'), `${right}, without a NUL character`);
}

export function directory(usual: string) {
  return path('a directory').default(usual);
}

/**
 * A collection name: only characters that survive the comma-separated lists and the printed records
 * of peers.
 */
export function collection() {
  return text(
    'a collection: 1 to 100 letters, digits or any of - _ . : / + @ (no spaces, and no commas, which the peer reads as separators)',
    /^[\p{L}\p{M}\p{N}\-_.:/+@]{1,100}$/u,
  );
}

/** The form of a folder's name, by which people and commands refer to it. Names are unique. */
export const FOLDER_NAME = /^[^\p{Cc}\p{Cs}/\\]{1,100}$/u;
export const FOLDER_NAME_RIGHT =
  'a name of 1 to 100 characters without slashes and control characters';

/**
 * A pattern in gitignore syntax that matches something. The library skips other patterns without an
 * error.
 */
export function pattern() {
  return text('a pattern in gitignore syntax, such as "*.log" or "drafts/"')
    .refine(
      (value) => value.trim() !== '' && !value.includes('\0'),
      'a pattern that is not blank and has no NUL character',
    )
    .refine(
      (value) => !value.startsWith('#'),
      'a pattern, not a comment (write "\\\\#" for a name that begins with "#")',
    )
    .refine(
      (value) => !/(?<!\\)(?:\\\\)*\\$/.test(value),
      'a pattern that does not end in a single backslash',
    );
}

export function folderUrl() {
  const right =
    'an http, https, ftp or file URL such as "https://files.example.org/docs/", without credentials, query and fragment';
  return z.string({ error: right }).transform(parsedBy(normaliseBase, right));
}

export function peerUrl() {
  const right =
    '"embedded" or an http or https base URL such as "https://peer.example.org:8443", without credentials, query and ' +
    'fragment (credentials belong in peer.auth)';
  const read = (given: string) => (given === 'embedded' ? given : normalisePeerUrl(given));
  return z.string({ error: right }).transform(parsedBy(read, right));
}

const SECRET =
  'exactly one of { "env": "NAME" }, { "file": "path" } and { "credential": "name" } (the secret itself is never in the configuration)';

/** The place of a secret, and never the secret itself. */
export const secretSchema = z.union(
  [
    z.strictObject({
      env: text('the name of an environment variable', /^[A-Za-z_][A-Za-z0-9_]*$/),
    }),
    z.strictObject({ file: path('a file that holds only the secret') }),
    z.strictObject({
      credential: text(
        'the plain name of a systemd credential',
        /^(?!\.\.?$)[A-Za-z0-9_.-]{1,255}$/,
      ),
    }),
  ],
  { error: SECRET },
);
export type Secret = z.output<typeof secretSchema>;

/**
 * Returns a transformation that applies `read`, and refuses a value for which `read` returns
 * undefined.
 */
function parsedBy<From, To>(read: (given: From) => To | undefined, right: string) {
  return (given: From, context: z.core.$RefinementCtx<From>): To => {
    const value = read(given);
    if (value !== undefined) return value;
    context.issues.push({ code: 'custom', message: right, input: given });
    return z.NEVER;
  };
}

/** Returns a parser that accepts only values from `min` to `max`. */
function between<From>(
  parse: (given: From) => number | undefined,
  min: From & string,
  max: From & string,
) {
  const [low = Number.NaN, high = Number.NaN] = [parse(min), parse(max)];
  return (given: From): number | undefined => {
    const value = parse(given);
    return value !== undefined && value >= low && value <= high ? value : undefined;
  };
}
