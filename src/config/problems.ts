import type { z } from 'zod';
import { allKeys, type Description, describeKey } from './description.js';
import { nearest } from './nearest.js';

/** One thing that is wrong with a configuration, in three parts that make a line. */
export interface Problem {
  /** The key as it is written in the documentation: `folders[0].settle`. */
  readonly path: string;
  /** What stands there, shown without secrets. */
  readonly received: string;
  /** What would be right. */
  readonly expected: string;
}

export function problemLine({ path, received, expected }: Problem): string {
  return `${path}: received ${received}; expected ${expected}`;
}

/** The problems behind the schema's issues: one for each key that is wrong. */
export function problemsOf(
  issues: readonly z.core.$ZodIssue[],
  input: unknown,
  known: Description,
): Problem[] {
  const problems = issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => unknownKey(issue.path, key, known))
      : [wrongValue(issue, input)],
  );
  return [...new Map(problems.map((problem) => [problem.path, problem])).values()];
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    const name = String(step);
    if (!/^[$\w]+$/.test(name)) return `${text}[${JSON.stringify(name)}]`;
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

function wrongValue(issue: z.core.$ZodIssue, input: unknown): Problem {
  return {
    path: pathText(issue.path) || 'the file',
    received: shown(issue.path, valueAt(input, issue.path)),
    expected: issue.message,
  };
}

function unknownKey(parent: readonly PropertyKey[], key: string, known: Description): Problem {
  const here = Object.keys(describeKey(known, parent)?.properties ?? {});
  return {
    path: pathText([...parent, key]),
    received: 'an unknown key',
    expected: suggestion(key, here, allKeys(known)),
  };
}

function suggestion(key: string, here: readonly string[], everywhere: readonly string[]): string {
  const similar = nearest(key, here);
  if (similar !== undefined) return `"${similar}": did you mean that?`;
  const elsewhere = everywhere.find((path) => path.endsWith(`.${key}`));
  if (elsewhere !== undefined) return `it at ${elsewhere}`;
  return `one of ${here.map((name) => `"${name}"`).join(', ')}`;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const step of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Reflect.get(value, step);
  }
  return value;
}

const SHOWN_CHARACTERS = 80;

/** A value for a message. Whatever stands near a password is not shown: it may be one, in the wrong place. */
function shown(path: readonly PropertyKey[], value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return 'an object';
  if (path.includes('auth')) return `a ${typeof value} (not shown here)`;
  if (typeof value !== 'string') return String(value);
  const text = withoutCredentials(value);
  return JSON.stringify(text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text);
}

/** User, password and query of a URL are not shown: people keep tokens in all of them. */
function withoutCredentials(text: string): string {
  return /^[a-z][a-z+.-]*:/i.test(text) ? text.replace(/\/\/.*@/s, '//***@').replace(/\?.*/s, '?***') : text;
}
