import type {
  CitationsMirrorConfig,
  MirrorConfig,
  ShareMirrorConfig,
  TableMirrorConfig,
} from '../config/config.js';
import { isWildcard, wildcard } from '../lib/text.js';
import type { Json } from '../state/journal.js';
import type { State, StateView } from '../state/state.js';
import type { Catalog } from './catalog.js';
import type { Identity, MirrorRecord, MirrorReport, Pass } from './record.js';
import { fillTemplate, type TargetPath } from './target-path.js';

/** One mirror of something that the peer lists: of the configuration, or found by a pattern. */
interface PlanOf<Kind, Settings> {
  readonly kind: Kind;
  readonly name: string;
  readonly settings: Settings;
  /** What the peer calls it (an object with its group), or the pattern. */
  readonly source: string;
  /** How it came to be: configured by name, configured as a pattern, or found by a pattern. */
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
 * All mirrors, each name once: what is configured by name first, then the tables and the shared
 * objects that patterns match, in the order of the patterns. One by one: a pattern may match
 * thousands.
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

/**
 * Which tables or shared objects a pattern matches, over what stands in its group if it has one.
 */
export function matcherOf({ kind, settings }: ListedPlan): (source: string) => boolean {
  const regExp = wildcard(kind === 'table' ? settings.table : settings.data);
  const group = kind === 'table' || settings.c === undefined ? '' : `${settings.c}/`;
  return (source) => source.startsWith(group) && regExp.test(source.slice(group.length));
}

/** The name of a shared object within its group. */
export function dataOf({ settings: { c, data }, source, role }: SharePlan): string {
  if (role !== 'member') return data;
  return c === undefined ? source : source.slice(c.length + 1);
}

/**
 * A pattern that was given a name of its own gives it to each of its members. What the peer calls
 * something may hold anything; what is typed and shown may not.
 */
function memberName({ name, source }: ListedPlan, member: string): string {
  const printable = member.replace(/[\p{C}\p{Zl}\p{Zp}%]/gu, (c) =>
    [...Buffer.from(c)]
      .map((byte) => `%${byte.toString(16).padStart(2, '0').toUpperCase()}`)
      .join(''),
  );
  return name === source ? printable : `${name}/${printable}`;
}

/**
 * What is known of each mirror without a daemon: of those that a pattern brought, what it found
 * last.
 */
export function mirrorReports(settings: MirrorConfig, state: Meta): MirrorReport[] {
  return [...plansOf(settings, state)].map((plan) => reportOf(plan, state));
}

/** What is known of a mirror; of one that has not run yet, what the configuration says. */
export function reportOf(plan: Plan, state: Meta): MirrorReport {
  const record: MirrorRecord | undefined = records.of(state, plan.name);
  const report = { name: plan.name, ...(record ?? identityOf(plan, wantedPath(plan).path)) };
  // The path of a pattern is kept as it is configured: its files have paths of their own.
  return { ...report, path: hasManyFiles(plan) ? patternPath(plan) : report.path };
}

function hasManyFiles(plan: Plan): boolean {
  return plan.kind === 'citations' || plan.role === 'pattern';
}

/**
 * Where the files of a pattern or of citations stand, for a person: `tables/p*.csv`,
 * `citations/notes/*.json`.
 */
function patternPath(plan: Plan): string {
  const { kind, settings } = plan;
  if (kind === 'table') return settings.path.replaceAll('{table}', () => settings.table);
  if (kind === 'share') return settings.path.replaceAll('{data}', () => settings.data);
  return settings.path.replaceAll('{folder}', () => settings.folder).replaceAll('{path}', '*');
}

/** Where the file of a plan stands unless another mirror is in the way. */
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

/** @param path where its file stands below the root */
export function identityOf(plan: Plan, path: string): Identity {
  const { kind } = plan;
  if (kind === 'table' && plan.role !== 'pattern') return { kind, path, table: plan.source };
  return kind === 'share' && plan.role === 'member'
    ? { kind, path, share: plan.source }
    : { kind, path };
}

/** Keeps one value a mirror in state, under a prefix. In memory: commit it when it has to hold. */
function keptOfMirrors<T extends object>(prefix: string) {
  return {
    of: (state: Pick<StateView, 'meta'>, name: string) =>
      state.meta(prefix + name) as T | undefined,
    /**
     * Keeps a value, or forgets it. It is made of JSON values only, which an interface cannot say.
     */
    keep: (state: Pick<State, 'setMeta'>, name: string, value: T | undefined) =>
      state.setMeta(prefix + name, value as Json | undefined),
    /** The names of all mirrors of which something is kept. */
    names: (state: Pick<StateView, 'metaNames'>) =>
      state.metaNames(prefix).map((name) => name.slice(prefix.length)),
  };
}

/** What each mirror came to last. Committed after its file is in place. */
export const records = keptOfMirrors<MirrorRecord>('mirror/');
/** Where the pass over the items of each folder stands whose citations are mirrored. */
export const passes = keptOfMirrors<Pass>('mirror-pass/');
