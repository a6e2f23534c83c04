import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { messageOf, systemCode } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import { parseJson } from '../lib/json.js';
import { nearest } from '../lib/text.js';
import { type Config, ConfigError, complete } from './config.js';
import { contradictions, type Problem, problemLines } from './contradictions.js';
import { configSchema, describeKey, type JsonSchema, jsonSchema } from './schema.js';

export interface LoadedConfig {
  /** The file, absolute. */
  readonly path: string;
  readonly config: Config;
}

const LARGEST_FILE_BYTES = 2 ** 20;
const SHOWN_CHARACTERS = 80;

/**
 * Reads, checks and completes a configuration file. Secrets are not looked up.
 *
 * @throws ConfigError CONFIG_MISSING, CONFIG_UNREADABLE, CONFIG_SYNTAX, or CONFIG_INVALID with all
 *   problems at once
 */
export async function loadConfig(path: string): Promise<LoadedConfig> {
  const absolute = writtenPath(path);
  const parsed = parseJson(await readText(absolute));
  if ('fault' in parsed) {
    const { line, column, what } = parsed.fault;
    const details = { path: absolute, line, column };
    throw new ConfigError('CONFIG_SYNTAX', { ...details, what }, { details });
  }
  return { path: absolute, config: await checkConfig(parsed.value, absolute) };
}

/**
 * Checks and completes a configuration that was read from `file`, an absolute path. Contradictions
 * between values are looked for only if every value is valid on its own.
 *
 * @throws ConfigError CONFIG_INVALID with all problems at once
 */
export async function checkConfig(input: unknown, file: string): Promise<Config> {
  const { success, data, error } = configSchema.safeParse(input, {
    error: ({ code, expected }) =>
      code === 'invalid_type' && expected === 'object' ? 'an object' : undefined,
  });
  if (!success) throw invalid(file, problemsOf(error.issues, input));
  const config = complete(data, dirname(file));
  const problems = await contradictions(config);
  if (problems.length > 0) throw invalid(file, problems);
  return config;
}

async function readText(path: string): Promise<string> {
  const unreadable = (why: string, cause?: unknown) =>
    new ConfigError('CONFIG_UNREADABLE', { path, why }, { details: { path }, cause });
  const content = await readFile(path).catch((error: unknown) => {
    const code = systemCode(error);
    if (code === 'ENOENT') throw new ConfigError('CONFIG_MISSING', { path });
    if (code === 'EISDIR') throw unreadable('it is a directory');
    throw unreadable(code === 'EACCES' ? 'this user may not read it' : messageOf(error), error);
  });
  if (content.length > LARGEST_FILE_BYTES) throw unreadable('it is larger than 1 MiB');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw unreadable('it is not text in UTF-8');
  }
}

function invalid(file: string, problems: readonly Problem[]): ConfigError {
  const count = problems.length === 1 ? 'an error' : `${problems.length} errors`;
  const values = { path: file, count, lines: problemLines(problems) };
  return new ConfigError('CONFIG_INVALID', values, { details: { path: file, problems } });
}

/** Returns the errors for the schema's issues: one for each key that is wrong. */
function problemsOf(issues: readonly z.core.$ZodIssue[], input: unknown): Problem[] {
  const known = jsonSchema();
  const problems = issues.flatMap((issue): Problem[] => {
    const { code, path, message } = issue;
    if (code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(path, key, known));
    const given = valueAt(input, path);
    const value = given === undefined ? describeKey(known, path)?.default : given;
    return [
      {
        path: z.core.toDotPath(path) || 'the file',
        received: shown(path, value),
        expected: message,
      },
    ];
  });
  return [...new Map(problems.map((problem) => [problem.path, problem])).values()];
}

/** Keys from the configurations of other programs, with the keys that they may stand for here. */
const OTHER_NAMES: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    address: ['listen', 'url'],
    dir: ['path'],
    directory: ['dir', 'path'],
    exclude: ['ignore'],
    host: ['listen', 'url'],
    port: ['listen'],
    user: ['username'],
  }),
);

function unknownKey(parent: readonly PropertyKey[], key: string, known: JsonSchema): Problem {
  const here = Object.keys(describeKey(known, parent)?.properties ?? {});
  const similar = nearest(key, here) ?? OTHER_NAMES.get(key)?.find((name) => here.includes(name));
  const elsewhere = keysOf(known).find((path) => path.endsWith(`.${key}`));
  const expected =
    similar !== undefined
      ? `"${similar}"`
      : elsewhere !== undefined
        ? `that key at ${elsewhere}`
        : `one of ${here.map((name) => `"${name}"`).join(', ')}`;
  return { path: z.core.toDotPath([...parent, key]), received: 'an unknown key', expected };
}

/** Returns every key of the file, such as `folders[].settle`. Outer keys come first. */
function keysOf(node: JsonSchema, prefix = ''): string[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => [
    `${prefix}${name}`,
    ...keysOf(child, `${prefix}${name}.`),
    ...keysOf(child.items ?? {}, `${prefix}${name}[].`),
  ]);
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null ? Reflect.get(value, step) : undefined,
    input,
  );
}

/**
 * Returns a value as a message shows it. A value near a password is not shown, because it may be a
 * password in the wrong place.
 */
function shown(path: readonly PropertyKey[], value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return 'an object';
  if (path.includes('auth') || path.includes('token')) return `a ${typeof value} (not shown here)`;
  if (typeof value !== 'string') return String(value);
  const text = withoutCredentials(value);
  return JSON.stringify(
    text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text,
  );
}

/**
 * Hides the user, password and query of a URL, because they may contain secrets. The URL may lack
 * its scheme.
 */
function withoutCredentials(text: string): string {
  const withoutUser = text.replace(/^([a-z][a-z+.-]*:\/\/).*@|^[^/]*:.*@/is, '$1***@');
  return withoutUser.replace(/^([a-z][a-z+.-]*:[^?]*)\?.*|\?[^?]*=.*/is, '$1?***');
}
