import { isDeepStrictEqual } from 'node:util';
import type { MirrorConfig } from '../config/config.js';
import { wildcard } from '../lib/text.js';
import type { StateView } from '../state/state.js';
import { CitationsMirror } from './citations-mirror.js';
import { EditableTable } from './editable-table.js';
import type { Mirror, MirrorTools } from './parts.js';
import { PatternMirror } from './pattern-mirror.js';
import { type Place, placeOf } from './place.js';
import { Places } from './places.js';
import { dataOf, isShareOf, type Listed, type Plan, planOf, wholeName } from './plan.js';
import { recordOf } from './records.js';
import { ShareMirror } from './share-mirror.js';
import { EditedTableMirror, TableMirror } from './table-mirror.js';

export interface MirrorSetParts {
  readonly settings: MirrorConfig;
  readonly state: Pick<StateView, 'meta' | 'metaNames'>;
  readonly tools: MirrorTools;
  /** Hears of mirrors that a list brought. */
  readonly onNew: (mirrors: readonly Mirror[]) => void;
}

/**
 * All mirrors there are: those of the configuration, and one for each table and each shared object that a pattern matches, from
 * the moment it was first listed. What is on no list any more keeps its mirror. No two write the same file.
 */
export class MirrorSet {
  readonly #parts: MirrorSetParts;
  #settings: MirrorConfig;
  readonly #mirrors = new Map<string, Mirror>();
  /** What each of them was made from. */
  readonly #made = new Map<string, Plan>();
  readonly #places = new Places();
  /** What the peer said last; undefined before it was asked. */
  #tables: ReadonlySet<string> | undefined;
  #shares: readonly string[] = [];

  constructor(parts: MirrorSetParts) {
    this.#parts = parts;
    this.#settings = parts.settings;
    this.#add();
  }

  get(name: string): Mirror | undefined {
    return this.#mirrors.get(name);
  }

  /** In the order of the configuration. */
  get plans(): readonly Plan[] {
    return this.#plansFor(this.#settings);
  }

  get all(): readonly Mirror[] {
    return [...this.#mirrors.values()];
  }

  /** What a name given by a person stands for: a mirror, or a pattern and all that it brought. */
  called(name: string): readonly Mirror[] {
    const plan = this.plans.find((each) => each.name === name);
    if (plan === undefined) return [];
    const names = [
      name,
      ...(plan.kind === 'table-pattern' || plan.kind === 'share-pattern'
        ? this.plans
            .filter((each) => each.settings === plan.settings && each !== plan)
            .map((each) => each.name)
        : []),
    ];
    return names.flatMap((each) => this.#mirrors.get(each) ?? []);
  }

  /** It is over, until a list brings it again. */
  remove(name: string): void {
    this.#mirrors.delete(name);
    this.#made.delete(name);
    this.#places.release(name);
  }

  /** Those that are not, or not so, in another configuration. */
  notIn(settings: MirrorConfig): readonly Mirror[] {
    if (settings.root !== this.#settings.root) return this.all;
    const plans = new Map(this.#plansFor(settings).map((plan) => [plan.name, plan]));
    return this.all.filter(({ name }) => !isDeepStrictEqual(plans.get(name), this.#made.get(name)));
  }

  /**
   * From now on another configuration holds. Those that are not in it are to be removed before.
   *
   * @returns the mirrors that it brought
   */
  configure(settings: MirrorConfig): readonly Mirror[] {
    this.#settings = settings;
    return this.#add();
  }

  #plansFor(settings: MirrorConfig): readonly Plan[] {
    const listed: Listed = { shares: this.#shares, tables: [...(this.#tables ?? [])] };
    return planOf(settings, this.#parts.state, listed);
  }

  #add(): readonly Mirror[] {
    const { tools, state } = this.#parts;
    const plans = this.plans.filter(({ name }) => !this.#mirrors.has(name));
    const filed = plans.filter((plan) => plan.kind === 'share' || plan.kind === 'table');
    const places = this.#places.claimAll(
      filed.map((plan) => ({
        owner: plan.name,
        place: placeOf(plan.settings.path, variablesOf(plan)),
        held: recordOf(state, plan.name)?.path,
        neighbours: plan.settings.versions > 0 || (plan.kind === 'table' && plan.settings.edit),
      })),
    );
    const placeFor = new Map(filed.map((plan, i): [Plan, Place | undefined] => [plan, places[i]]));
    return plans.map((plan) => {
      const mirror = this.#make(plan, placeFor.get(plan), tools);
      this.#mirrors.set(plan.name, mirror);
      this.#made.set(plan.name, plan);
      return mirror;
    });
  }

  #make(plan: Plan, place: Place | undefined, tools: MirrorTools): Mirror {
    const { name } = plan;
    if (plan.kind === 'citations') return new CitationsMirror(plan.settings, tools);
    if (plan.kind === 'table-pattern' || plan.kind === 'share-pattern') return this.#makePattern(plan, tools);
    if (place === undefined) throw new Error(`no place was claimed for the mirror ${name}`);
    if (plan.kind === 'share') {
      const settings = { ...plan.settings, data: dataOf(plan) };
      return new ShareMirror({ name, settings, matched: plan.matched, place, tools });
    }
    const { table, settings, matched } = plan;
    const isListed = (): boolean => this.#tables?.has(table) ?? true;
    const parts = { name, table, settings, place, matched, isListed, tools };
    if (!settings.edit) return new TableMirror(parts);
    const { root, stateDir, clock, log } = tools;
    return new EditedTableMirror(
      parts,
      (peer) =>
        new EditableTable({ name, table, settings, root, path: place.path, stateDir, peer, clock, log }),
    );
  }

  #makePattern(plan: PatternPlan, { peer, queue }: MirrorTools): PatternMirror {
    const { name, settings } = plan;
    const { path, every } = settings;
    const common = { name, every, queue };
    if (plan.kind === 'table-pattern') {
      const pattern = plan.settings.table;
      const regExp = wildcard(pattern);
      return new PatternMirror({
        ...common,
        identity: { kind: 'table', path },
        pattern,
        words: ['table', 'tables'],
        matches: (table) => regExp.test(table),
        list: (signal) => peer.tables.list({ signal }),
        onList: (tables) => {
          this.#tables = new Set(tables);
          this.#parts.onNew(this.#add());
        },
      });
    }
    return new PatternMirror({
      ...common,
      identity: { kind: 'share', path },
      pattern: wholeName(plan.settings),
      words: ['shared object', 'shared objects'],
      matches: (share) => isShareOf(plan.settings, share),
      list: (signal) => peer.shares({ signal }),
      onList: (shares) => {
        this.#shares = shares;
        this.#parts.onNew(this.#add());
      },
    });
  }
}

type PatternPlan = Extract<Plan, { kind: 'table-pattern' | 'share-pattern' }>;

/** What the template of a path may name. */
function variablesOf(plan: Extract<Plan, { kind: 'table' | 'share' }>): Parameters<typeof placeOf>[1] {
  if (plan.kind === 'table') return { table: plan.table };
  return plan.matched === undefined ? {} : { data: dataOf(plan).split('/') };
}
