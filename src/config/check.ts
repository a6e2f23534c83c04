import { dirname } from 'node:path';
import { complete } from './complete.js';
import type { Config } from './config.js';
import { contradictions } from './contradictions.js';
import { describeConfig } from './description.js';
import { ConfigError } from './errors.js';
import { type Problem, problemLine, problemsOf } from './problems.js';
import { configSchema } from './schema.js';

/**
 * Checks and completes a configuration that was read from `file`, an absolute path.
 *
 * @throws ConfigError CONFIG_INVALID with all problems at once
 */
export async function checkConfig(input: unknown, file: string): Promise<Config> {
  const result = parse(input);
  const problems = result.success ? [] : problemsOf(result.error.issues, input, describeConfig());
  const readable = result.success ? result : parseWhatIsRight(input);
  const config = readable.success ? complete(readable.data, dirname(file)) : undefined;
  if (config) problems.push(...(await contradictions(config, isSoundBeside(problems))));
  if (config && problems.length === 0) return config;
  throw invalid(file, problems);
}

function parse(input: unknown) {
  return configSchema.safeParse(input, {
    error: (issue) =>
      issue.code === 'invalid_type' && issue.expected === 'object' ? 'an object' : undefined,
  });
}

function invalid(file: string, problems: readonly Problem[]): ConfigError {
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  const lines = problems.map((problem) => `\n  ${problemLine(problem)}`).join('');
  return new ConfigError('CONFIG_INVALID', `${file} has ${count}:${lines}`, { path: file, problems });
}

/** Whether neither a key nor anything around it was wrong. */
function isSoundBeside(problems: readonly Problem[]): (key: string) => boolean {
  const wrong = problems.map(({ path }) => path);
  return (key) =>
    !wrong.some((path) => key === path || key.startsWith(`${path}.`) || key.startsWith(`${path}[`));
}

const MOST_ROUNDS = 4;

/** Leaves wrong values out, so that what is wrong between the others can be told in the same breath. */
function parseWhatIsRight(input: unknown) {
  const copy: unknown = structuredClone(input);
  ignoreCollections(copy);
  let result = parse(copy);
  for (let round = 0; !result.success && round < MOST_ROUNDS; round += 1) {
    // All are found before the first goes: what encloses one of them must not be taken for what is wrong.
    const wrong = result.error.issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map((key) => innermost(copy, [...issue.path, key]))
        : [innermost(copy, issue.path)],
    );
    for (const place of wrong) if (place) Reflect.deleteProperty(place.object, place.key);
    result = parse(copy);
  }
  return result;
}

/** No contradiction depends on a folder's collection, so a wrong or missing one need not take the folder with it. */
function ignoreCollections(copy: unknown): void {
  if (!isObject(copy) || !('folders' in copy) || !Array.isArray(copy.folders)) return;
  for (const folder of copy.folders) if (isObject(folder)) Object.assign(folder, { collection: 'any' });
}

/** The innermost thing on the path that exists. Taken from a list it leaves a gap, so the others keep their places. */
function innermost(root: unknown, path: readonly PropertyKey[]) {
  let within = root;
  let found: { readonly object: object; readonly key: PropertyKey } | undefined;
  for (const key of path) {
    if (!isObject(within) || !Object.hasOwn(within, key)) break;
    found = { object: within, key };
    within = Reflect.get(within, key);
  }
  return found;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
