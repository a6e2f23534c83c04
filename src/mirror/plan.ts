import type {
  CitationsMirrorConfig,
  MirrorConfig,
  ShareMirrorConfig,
  TableMirrorConfig,
} from '../config/config.js';
import { compareByCodePoint, isWildcard, wildcard } from '../lib/text.js';
import type { StateView } from '../state/state.js';
import { recordedNames, recordOf } from './records.js';

/** What the configuration, and the tables that are known, come to: one entry a mirror. */
export type Plan =
  | {
      readonly kind: 'share';
      readonly name: string;
      readonly settings: ShareMirrorConfig;
      /** The name of the object in the peer, where a pattern brought it here. */
      readonly matched?: string;
    }
  | { readonly kind: 'share-pattern'; readonly name: string; readonly settings: ShareMirrorConfig }
  | {
      readonly kind: 'table';
      readonly name: string;
      readonly settings: TableMirrorConfig;
      readonly table: string;
      /** Whether a pattern brought it here. */
      readonly matched: boolean;
    }
  | { readonly kind: 'table-pattern'; readonly name: string; readonly settings: TableMirrorConfig }
  | { readonly kind: 'citations'; readonly name: string; readonly settings: CitationsMirrorConfig };

/** What the peer's lists said last, as far as they are known. */
export interface Listed {
  readonly shares: readonly string[];
  readonly tables: readonly string[];
}

/**
 * All mirrors, each name once: what is configured by name first, then the tables and the shared objects that patterns match,
 * in the order of the patterns.
 */
export function planOf(
  settings: MirrorConfig,
  state: Pick<StateView, 'meta' | 'metaNames'>,
  listed: Listed = { shares: [], tables: [] },
): readonly Plan[] {
  const plans = new Map<string, Plan>();
  const add = (plan: Plan): void => {
    if (!plans.has(plan.name)) plans.set(plan.name, plan);
  };
  for (const share of settings.shares) {
    add({ kind: isWildcard(share.data) ? 'share-pattern' : 'share', name: share.name, settings: share });
  }
  for (const table of settings.tables) {
    if (isWildcard(table.table)) add({ kind: 'table-pattern', name: table.name, settings: table });
    else add({ kind: 'table', name: table.name, settings: table, table: table.table, matched: false });
  }
  for (const each of settings.citations) add({ kind: 'citations', name: each.name, settings: each });
  const recorded = recordedNames(state).map((name) => ({ name, ...recordOf(state, name) }));
  for (const many of settings.tables) {
    if (!isWildcard(many.table)) continue;
    const pattern = wildcard(many.table);
    const nameOf = memberName(many.name, many.table);
    const known = recorded.flatMap(({ name, table = '' }) => (name === nameOf(table) ? table : []));
    for (const table of membersOf([...known, ...listed.tables], (each) => pattern.test(each)))
      add({ kind: 'table', name: nameOf(table), settings: many, table, matched: true });
  }
  for (const many of settings.shares) {
    if (!isWildcard(many.data)) continue;
    const nameOf = memberName(many.name, wholeName(many));
    const known = recorded.flatMap(({ name, share = '' }) => (name === nameOf(share) ? share : []));
    for (const share of membersOf([...known, ...listed.shares], (each) => isShareOf(many, each)))
      add({ kind: 'share', name: nameOf(share), settings: many, matched: share });
  }
  return [...plans.values()];
}

function membersOf(names: readonly string[], matches: (name: string) => boolean): readonly string[] {
  return [...new Set(names.filter(matches))].sort(compareByCodePoint);
}

/** A pattern that was given a name of its own gives it to each of its members. */
function memberName(name: string, pattern: string): (member: string) => string {
  return (member) => (name === pattern ? printable(member) : `${name}/${printable(member)}`);
}

/** The name of a shared object within its group. */
export function dataOf({ settings: { c, data }, matched }: Extract<Plan, { kind: 'share' }>): string {
  if (matched === undefined) return data;
  return c === undefined ? matched : matched.slice(c.length + 1);
}

/** Whether a pattern, over what stands in its group if it has one, matches the name of a shared object. */
export function isShareOf({ c, data }: Pick<ShareMirrorConfig, 'c' | 'data'>, name: string): boolean {
  const before = c === undefined ? '' : `${c}/`;
  return name.startsWith(before) && wildcard(data).test(name.slice(before.length));
}

/** Of a shared object, or of a pattern over them: the group is a directory. */
export function wholeName({ c, data }: Pick<ShareMirrorConfig, 'c' | 'data'>): string {
  return c === undefined ? data : `${c}/${data}`;
}

/** What the peer calls something may hold anything; what is typed and shown may not. */
function printable(table: string): string {
  return table.replace(/[\p{C}\p{Zl}\p{Zp}%]/gu, (c) =>
    [...Buffer.from(c)].map((byte) => `%${byte.toString(16).padStart(2, '0').toUpperCase()}`).join(''),
  );
}
