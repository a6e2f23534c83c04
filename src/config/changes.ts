import { isDeepStrictEqual } from 'node:util';
import { quoted } from '../lib/text.js';
import { DURATION_PATTERN, formatBytes, formatDuration, SIZE_PATTERN } from '../lib/units.js';
import { type Config, ConfigError } from './config.js';
import { contradictions, problemLines } from './contradictions.js';
import { describeKey, type JsonSchema, jsonSchema } from './schema.js';

/** The result of reading the configuration again while the daemon runs. */
export interface Reloaded {
  /** The configuration in effect: the new one, except for the keys that need a restart. */
  readonly config: Config;
  /** The keys whose new values wait for a restart. */
  readonly restart: readonly string[];
}

/**
 * Returns the configuration that takes effect when a daemon with `running` reads `wanted` from its
 * file.
 *
 * The peer, the fleet and the directory of the state need a restart. Credentials of the peer and
 * trusted certificates change at once, unless the peer changes too: they are never used with a peer
 * for which they were not meant.
 *
 * @throws ConfigError CONFIG_NEEDS_RESTART if a new value contradicts one that stays until the
 *   restart
 */
export async function reloaded(running: Config, wanted: Config): Promise<Reloaded> {
  const { auth: _, ...rest } = running.peer;
  const { fleet: __, ...others } = wanted;
  const { auth, tls } = running.peer.url === wanted.peer.url ? wanted.peer : running.peer;
  const peer = { ...rest, tls };
  const config: Config = Object.freeze({
    ...others,
    ...(running.fleet && { fleet: running.fleet }),
    peer: Object.freeze(auth === undefined ? peer : { ...peer, auth }),
    state: Object.freeze({ ...wanted.state, dir: running.state.dir }),
  });
  const restart = changedKeys(config, wanted).map(({ key }) => key);
  const problems = restart.length === 0 ? [] : await contradictions(config);
  if (problems.length > 0) {
    const values = { keys: restart.join(', '), lines: problemLines(problems) };
    throw new ConfigError('CONFIG_NEEDS_RESTART', values, { details: { restart, problems } });
  }
  return { config: isDeepStrictEqual(config, running) ? running : config, restart };
}

/**
 * Returns one line for each change: `folder notes: added`, `push.concurrency: 4, now 8`. The order
 * of a list does not matter.
 */
export function changeLines(before: Config, after: Config): string[] {
  const root = jsonSchema();
  const [was, is] = [before.mirror, after.mirror];
  return [
    ...listLines('folder', before.folders, after.folders),
    ...listLines('mirror', was.shares, is.shares),
    ...listLines('mirror', was.tables, is.tables),
    ...listLines('mirror', was.citations, is.citations),
    ...changedKeys(withoutLists(before), withoutLists(after)).map((change) =>
      keyLine(root, change),
    ),
  ];
}

interface Named {
  readonly name: string;
  readonly path: string;
}

function listLines(what: string, before: readonly Named[], after: readonly Named[]): string[] {
  const known = new Map(before.map((each) => [each.name, each]));
  const named = new Set(after.map(({ name }) => name));
  const full = ({ name, path }: Named) =>
    `${what} ${quoted(name)}${what === 'folder' ? ` (${path})` : ''}`;
  return [
    ...after.filter(({ name }) => !known.has(name)).map((each) => `${full(each)}: added`),
    ...before.filter(({ name }) => !named.has(name)).map((each) => `${full(each)}: removed`),
    ...after.flatMap((each) => {
      const earlier = known.get(each.name);
      const keys = earlier === undefined ? [] : changedKeys(earlier, each).map(({ key }) => key);
      return keys.length === 0 ? [] : `${what} ${quoted(each.name)}: ${keys.join(', ')} changed`;
    }),
  ];
}

/** A change of a key outside lists, such as `push.concurrency`. A missing value is undefined. */
interface KeyChange {
  readonly key: string;
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * Returns the innermost keys whose values differ, in the order of the file: `push.backoff.min` and
 * not `push`. A list counts as one value, and so does a section that only one side has.
 */
function changedKeys(before: unknown, after: unknown, prefix = ''): KeyChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (!isGroup(before) || !isGroup(after)) return [{ key: prefix, before, after }];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) =>
    changedKeys(before[name], after[name], prefix === '' ? name : `${prefix}.${name}`),
  );
}

function isGroup(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function withoutLists({
  folders: _,
  mirror: { shares, tables, citations, ...mirror },
  ...rest
}: Config): unknown {
  return { ...rest, mirror };
}

function keyLine(root: JsonSchema, { key, before, after }: KeyChange): string {
  const known = describeKey(root, key.split('.'));
  const patterns = [known, ...(known?.anyOf ?? [])].map((each) => each?.pattern);
  /** Returns the value as the file spells it. */
  const text = (value: unknown): string => {
    if (typeof value !== 'number') return JSON.stringify(value);
    if (patterns.includes(DURATION_PATTERN)) return `"${formatDuration(value)}"`;
    return patterns.includes(SIZE_PATTERN) ? `"${formatBytes(value)}"` : String(value);
  };
  if (before === undefined) return `${key}: now ${text(after)}`;
  return `${key}: ${text(before)}, now ${after === undefined ? 'not given' : text(after)}`;
}
