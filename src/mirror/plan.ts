import type {
  CitationsMirrorConfig,
  MirrorConfig,
  ShareMirrorConfig,
  TableMirrorConfig,
} from '../config/config.js';
import { isWildcard, wildcard } from '../lib/text.js';
import type { Json } from '../state/rows.js';
import type { State, StateView } from '../state/state.js';
import type { Identity, MirrorRecord, MirrorReport, Pass } from './record.js';
import { fillTemplate, type TargetPath } from './target-path.js';

/** One mirror of something that the peer lists: of the configuration, or found by a pattern. */
interface PlanOf<Kind, Settings> {
  readonly kind: Kind;
  readonly name: string;
  readonly settings: Settings;
  /** The name in the peer (for an object with its group), or the pattern. */
  readonly source: string;
  /** Its origin: configured by name, configured as a pattern, or found by a pattern. */
  readonly role: 'single' | 'pattern' | 'member';
}

export type SharePlan = PlanOf<'share', ShareMirrorConfig>;
export type TablePlan = PlanOf<'table', TableMirrorConfig>;
export type ListedPlan = SharePlan | TablePlan;
export type CitationsPlan = Omit<PlanOf<'citations', CitationsMirrorConfig>, 'source' | 'role'>;
export type Plan = ListedPlan | CitationsPlan;

/** The part of the catalog that plans need. */
type Listed = Pick<Catalog, 'names'>;

type Meta = Pick<StateView, 'meta' | 'metaNames'>;

/**
 * Yields the plans of all mirrors, each name once: first the configured ones, then the tables and
 * shared objects that patterns match, in the order of the patterns. A pattern may match thousands.
 */
export function* plansOf(
  settings: MirrorConfig,
  state: Meta,
  listed?: Listed,
): Generator<Plan, void> {
  const names = new Set<string>();
  for (const plan of everyPlan(settings, state, listed)) {
    if (!names.has(plan.name)) yield plan;
    names.add(plan.name);
  }
}

function* everyPlan(settings: MirrorConfig, state: Meta, listed?: Listed): Generator<Plan, void> {
  const roleOf = (text: string) => (isWildcard(text) ? 'pattern' : 'single');
  const shares = settings.shares.map((each): SharePlan => {
    const { name, data, c } = each;
    const source = c === undefined ? data : `${c}/${data}`;
    return { kind: 'share', name, settings: each, source, role: roleOf(data) };
  });
  const tables = settings.tables.map((each): TablePlan => {
    const { name, table } = each;
    return { kind: 'table', name, settings: each, source: table, role: roleOf(table) };
  });
  yield* shares;
  yield* tables;
  for (const each of settings.citations)
    yield { kind: 'citations', name: each.name, settings: each };
  for (const pattern of [...tables, ...shares].filter(({ role }) => role === 'pattern')) {
    const { kind } = pattern;
    const known = records.names(state).flatMap((name) => {
      const source = records.of(state, name)?.[kind] ?? '';
      return name === memberName(pattern, source) ? [source] : [];
    });
    const sources = [...known, ...(listed?.names(kind) ?? [])].filter(matcherOf(pattern));
    for (const source of [...new Set(sources)].sort())
      yield { ...pattern, name: memberName(pattern, source), source, role: 'member' };
  }
}

/** Returns the test of a pattern. A pattern with a group matches only names in that group. */
export function matcherOf({ kind, settings }: ListedPlan): (source: string) => boolean {
  const regExp = wildcard(kind === 'table' ? settings.table : settings.data);
  const group = kind === 'table' || settings.c === undefined ? '' : `${settings.c}/`;
  return (source) => source.startsWith(group) && regExp.test(source.slice(group.length));
}

/** Returns the name of a shared object within its group. */
export function dataOf({ settings: { c, data }, source, role }: SharePlan): string {
  if (role !== 'member') return data;
  return c === undefined ? source : source.slice(c.length + 1);
}

/**
 * Returns the name of a mirror that a pattern found. If the pattern has a name of its own, that
 * comes first. Characters that cannot be typed or shown are percent-encoded.
 */
function memberName({ name, source }: ListedPlan, member: string): string {
  const printable = member.replace(/[\p{C}\p{Zl}\p{Zp}%]/gu, (c) =>
    [...Buffer.from(c)]
      .map((byte) => `%${byte.toString(16).padStart(2, '0').toUpperCase()}`)
      .join(''),
  );
  return name === source ? printable : `${name}/${printable}`;
}

/** Returns the reports of all mirrors from state, without a daemon. */
export function mirrorReports(settings: MirrorConfig, state: Meta): MirrorReport[] {
  return [...plansOf(settings, state)].map((plan) => reportOf(plan, state));
}

/** Returns the report of a mirror. Before its first run it has only what is configured. */
export function reportOf(plan: Plan, state: Meta): MirrorReport {
  const record: MirrorRecord | undefined = records.of(state, plan.name);
  const report = { name: plan.name, ...(record ?? identityOf(plan, wantedPath(plan).path)) };
  // A pattern is shown with its template: its files have paths of their own.
  return { ...report, path: hasManyFiles(plan) ? patternPath(plan) : report.path };
}

function hasManyFiles(plan: Plan): boolean {
  return plan.kind === 'citations' || plan.role === 'pattern';
}

/**
 * Returns the paths of a pattern or of citations to show: `tables/p*.csv`,
 * `citations/notes/*.json`.
 */
function patternPath(plan: Plan): string {
  const { kind, settings } = plan;
  if (kind === 'table') return settings.path.replaceAll('{table}', () => settings.table);
  if (kind === 'share') return settings.path.replaceAll('{data}', () => settings.data);
  return settings.path.replaceAll('{folder}', () => settings.folder).replaceAll('{path}', '*');
}

/** Returns the path of the file of a plan, unless another mirror has it. */
export function wantedPath(plan: Plan): TargetPath {
  const { settings } = plan;
  if (plan.kind === 'citations' || plan.role === 'pattern')
    return { path: settings.path, notes: [] };
  if (plan.kind === 'table') return fillTemplate(settings.path, { table: plan.source });
  return fillTemplate(
    settings.path,
    plan.role === 'member' ? { data: dataOf(plan).split('/') } : {},
  );
}

/** @param path of the file, below the root */
export function identityOf(plan: Plan, path: string): Identity {
  const { kind } = plan;
  if (kind === 'table' && plan.role !== 'pattern') return { kind, path, table: plan.source };
  return kind === 'share' && plan.role === 'member'
    ? { kind, path, share: plan.source }
    : { kind, path };
}

/** Keeps one value per mirror in state, under a prefix. The caller commits. */
function valuePerMirror<T extends object>(prefix: string) {
  return {
    of: (state: Pick<StateView, 'meta'>, name: string) =>
      state.meta(prefix + name) as T | undefined,
    /** Keeps a value, or removes it. It consists of JSON values, which an interface cannot say. */
    keep: (state: Pick<State, 'setMeta'>, name: string, value: T | undefined) =>
      state.setMeta(prefix + name, value as Json | undefined),
    /** Returns the names of all mirrors with a value. */
    names: (state: Pick<StateView, 'metaNames'>) =>
      state.metaNames(prefix).map((name) => name.slice(prefix.length)),
  };
}

/** The records of mirrors. A record is committed after its file is in place. */
export const records = valuePerMirror<MirrorRecord>('mirror/');
/** The positions of the passes over folders whose citations are mirrored. */
export const passes = valuePerMirror<Pass>('mirror-pass/');

/** The kinds of things that a peer lists. */
type Kind = 'table' | 'share';

/** The tables and shared objects that the peer listed last. */
export class Catalog {
  readonly #names: Partial<Record<Kind, Set<string>>> = {};

  /** @param onReplace creates the mirrors of new names */
  constructor(private readonly onReplace: () => Promise<void>) {}

  /** Returns the names of the last list, undefined until there is one. */
  names(kind: Kind): ReadonlySet<string> | undefined {
    return this.#names[kind];
  }

  /** Returns whether the last list has a name. True until there is a list. */
  has(kind: Kind, name: string): boolean {
    return this.#names[kind]?.has(name) ?? true;
  }

  /** Takes a new list. Resolves when every name that a pattern matches has its mirror. */
  async replace(kind: Kind, names: readonly string[]): Promise<void> {
    this.#names[kind] = new Set(names);
    await this.onReplace();
  }

  /** Removes a name until the peer lists it again. */
  remove(kind: Kind, name: string): void {
    this.#names[kind]?.delete(name);
  }
}
