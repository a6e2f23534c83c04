import type {
  CitationsMirrorConfig,
  MirrorConfig,
  ShareMirrorConfig,
  TableMirrorConfig,
} from '../config/config.js';
import { isTablePattern, tablePattern } from '../config/table-pattern.js';
import { compareByCodePoint } from '../lib/code-points.js';
import type { StateView } from '../state/state.js';
import { recordedNames, recordOf } from './records.js';

/** What the configuration, and the tables that are known, come to: one entry a mirror. */
export type Plan =
  | { readonly kind: 'share'; readonly name: string; readonly settings: ShareMirrorConfig }
  | {
      readonly kind: 'table';
      readonly name: string;
      readonly settings: TableMirrorConfig;
      readonly table: string;
      /** Whether a pattern brought it here. */
      readonly matched: boolean;
    }
  | { readonly kind: 'pattern'; readonly name: string; readonly settings: TableMirrorConfig }
  | { readonly kind: 'citations'; readonly name: string; readonly settings: CitationsMirrorConfig };

/**
 * All mirrors, each name once: what is configured by name first, then the tables that patterns match, in the order of the
 * patterns.
 *
 * @param listed what the peer's list of tables said last, as far as it is known
 */
export function planOf(
  settings: MirrorConfig,
  state: Pick<StateView, 'meta' | 'metaNames'>,
  listed: readonly string[] = [],
): readonly Plan[] {
  const plans = new Map<string, Plan>();
  const add = (plan: Plan): void => {
    if (!plans.has(plan.name)) plans.set(plan.name, plan);
  };
  for (const share of settings.shares) add({ kind: 'share', name: share.name, settings: share });
  for (const table of settings.tables) {
    if (isTablePattern(table.table)) add({ kind: 'pattern', name: table.name, settings: table });
    else add({ kind: 'table', name: table.name, settings: table, table: table.table, matched: false });
  }
  for (const each of settings.citations) add({ kind: 'citations', name: each.name, settings: each });
  const recorded = recordedTables(state);
  for (const many of settings.tables) {
    if (!isTablePattern(many.table)) continue;
    const pattern = tablePattern(many.table);
    const known = recorded.filter(({ name, table }) => name === memberName(many, table));
    const tables = [...known.map(({ table }) => table), ...listed].filter((table) => pattern.test(table));
    for (const table of [...new Set(tables)].sort(compareByCodePoint))
      add({ kind: 'table', name: memberName(many, table), settings: many, table, matched: true });
  }
  return [...plans.values()];
}

function recordedTables(state: Pick<StateView, 'meta' | 'metaNames'>): { name: string; table: string }[] {
  return recordedNames(state).flatMap((name) => {
    const table = recordOf(state, name)?.table;
    return table === undefined ? [] : [{ name, table }];
  });
}

/** A pattern that was given a name of its own gives it to each of its tables. */
function memberName(pattern: TableMirrorConfig, table: string): string {
  const name = printable(table);
  return pattern.name === pattern.table ? name : `${pattern.name}/${name}`;
}

/** What the peer calls a table may hold anything; what is typed and shown may not. */
function printable(table: string): string {
  return table.replace(/[\p{C}\p{Zl}\p{Zp}%]/gu, (c) =>
    [...Buffer.from(c)].map((byte) => `%${byte.toString(16).padStart(2, '0').toUpperCase()}`).join(''),
  );
}
