import { isDeepStrictEqual } from 'node:util';
import type {
  CitationsMirrorConfig,
  Config,
  FolderConfig,
  ShareMirrorConfig,
  TableMirrorConfig,
} from './config.js';

/** What is different between two lists of things with names. Order is no difference. */
export interface ListChanges<T> {
  readonly added: readonly T[];
  readonly removed: readonly T[];
  readonly changed: readonly { readonly before: T; readonly after: T }[];
}

/** A key that is in no list, such as `push.concurrency`; undefined where it is not given. */
export interface KeyChange {
  readonly key: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** What is different between two configurations: who is not in it goes on undisturbed. */
export interface ConfigChanges {
  readonly folders: ListChanges<FolderConfig>;
  readonly shares: ListChanges<ShareMirrorConfig>;
  readonly tables: ListChanges<TableMirrorConfig>;
  readonly citations: ListChanges<CitationsMirrorConfig>;
  readonly keys: readonly KeyChange[];
}

export function changesOf(before: Config, after: Config): ConfigChanges {
  return {
    folders: listChanges(before.folders, after.folders),
    shares: listChanges(before.mirror.shares, after.mirror.shares),
    tables: listChanges(before.mirror.tables, after.mirror.tables),
    citations: listChanges(before.mirror.citations, after.mirror.citations),
    keys: changedKeys(withoutLists(before), withoutLists(after)),
  };
}

export function listChanges<T extends { readonly name: string }>(
  before: readonly T[],
  after: readonly T[],
): ListChanges<T> {
  const known = new Map(before.map((each) => [each.name, each]));
  const named = new Set(after.map(({ name }) => name));
  return {
    added: after.filter(({ name }) => !known.has(name)),
    removed: before.filter(({ name }) => !named.has(name)),
    changed: after.flatMap((each) => {
      const earlier = known.get(each.name);
      return earlier === undefined || isDeepStrictEqual(earlier, each)
        ? []
        : [{ before: earlier, after: each }];
    }),
  };
}

/**
 * The keys whose values differ, innermost first by the order of the file: `push.backoff.min` and not `push`. Lists, and what
 * is only on one side, count as one value.
 */
export function changedKeys(before: unknown, after: unknown, prefix = ''): KeyChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (!isGroup(before) || !isGroup(after)) return [{ key: prefix, before, after }];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) =>
    changedKeys(before[name], after[name], prefix === '' ? name : `${prefix}.${name}`),
  );
}

function isGroup(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function withoutLists({ folders: _folders, mirror, ...rest }: Config): unknown {
  const { shares: _shares, tables: _tables, citations: _citations, ...others } = mirror;
  return { ...rest, mirror: others };
}
