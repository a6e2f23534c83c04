import { isDeepStrictEqual } from 'node:util';
import PQueue from 'p-queue';
import type { MirrorConfig } from '../config/config.js';
import type { HealthCheck } from '../lib/health.js';
import { withPauses } from '../lib/slices.js';
import { nearest } from '../lib/text.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { Entry } from '../state/entry.js';
import { CitationsMirror } from './citations.js';
import { MirrorError } from './errors.js';
import { type Mirror, type MirrorDeps, PatternMirror } from './mirror.js';
import { runMirror } from './mirror-run.js';
import { Catalog, type Plan, passes, plansOf, records, reportOf, wantedPath } from './plan.js';
import type { MirrorReport } from './record.js';
import { MirrorRequests } from './requests.js';
import { MirrorRoot } from './root.js';
import { Scheduler } from './scheduler.js';
import { ShareMirror } from './share.js';
import { TableMirror } from './table.js';
import { type Claim, grantPaths, type TargetPath } from './target-path.js';
import { BaseStore } from './two-way/base-store.js';
import { TwoWayTable } from './two-way/two-way-table.js';

/** The mirrors that are compared or created between two pauses. */
const MIRRORS_PER_SLICE = 100;

export interface MirrorsParts
  extends Pick<MirrorDeps, 'clock' | 'log' | 'peer' | 'state' | 'stateDir'> {
  readonly settings: MirrorConfig;
  readonly queue: Pick<RequestQueue, 'run'>;
  /** Returns 0 to 1, for jitter. @default Math.random */
  readonly random?: () => number;
}

/**
 * All mirrors: shared objects, tables and citations of the peer as files. There is a mirror for
 * each entry of the configuration, and one for each table or shared object that a pattern matched.
 *
 * Life: `open`, then `start` to run each mirror again and again (see `Scheduler`), then `stop`,
 * which cancels all runs and resolves when they have ended. `configure` changes the set of mirrors
 * in between. `run` and `accept` work with and without `start`. The failure of one mirror is in its
 * record, and ends no other.
 */
export class Mirrors {
  readonly #deps: { -readonly [K in keyof MirrorDeps]: MirrorDeps[K] };
  readonly #catalog = new Catalog(() => this.#update());
  readonly #scheduler: Scheduler;
  readonly #requests: MirrorRequests;
  readonly health: readonly HealthCheck[];
  /** All mirrors by name, in the order of the configuration. */
  readonly #mirrors = new Map<string, Mirror>();
  #settings: MirrorConfig;
  /** Changes of the set of mirrors, one after the other. */
  readonly #updates = new PQueue({ concurrency: 1 });
  #unsubscribe = (): void => {};

  private constructor(parts: MirrorsParts) {
    const { settings, stateDir, queue, peer, clock, log, state, random = Math.random } = parts;
    this.#settings = settings;
    this.#scheduler = new Scheduler({
      clock,
      random,
      runner: {
        run: (mirror, options) => runMirror(mirror, this.#deps, options),
        ended: (mirror) => this.#removeEnded(mirror),
      },
    });
    this.#requests = new MirrorRequests(queue, state, () => this.#scheduler.isBusy);
    this.health = [this.#requests.health];
    this.#deps = {
      peer,
      requests: this.#requests,
      catalog: this.#catalog,
      state,
      root: settings.root,
      mirrorRoot: new MirrorRoot({ state, stateDir, requests: this.#requests }),
      stateDir,
      clock,
      log,
    };
  }

  static async open(parts: MirrorsParts): Promise<Mirrors> {
    const mirrors = new Mirrors(parts);
    await mirrors.#update();
    await BaseStore.removeOthers(parts.stateDir, mirrors.names);
    return mirrors;
  }

  /** @param onFailure is called with an error that is not one of a mirror: a full disk, a bug */
  start(onFailure: (error: unknown) => void): void {
    this.#unsubscribe = this.#deps.state.onChange((after, statusBefore) => {
      if (after !== undefined && after.status !== statusBefore) this.#itemChanged(after);
    });
    this.#removeStrays();
    this.#scheduler.start(onFailure);
  }

  /**
   * Applies another configuration. A mirror that did not change goes on, even while it runs. Any
   * other is cancelled and created anew. Mirrors that are not configured any more are forgotten,
   * and their files stay.
   *
   * Await it before the next call, and before `stop`.
   */
  async configure(settings: MirrorConfig): Promise<void> {
    const isMoved = settings.root !== this.#settings.root;
    this.#settings = settings;
    this.#deps.root = settings.root;
    // An update that began before uses the old settings.
    await this.#updates.onIdle();
    const plans = await this.#plansOf(settings);
    const leaving: Mirror[] = [];
    for await (const mirror of withPauses([...this.#mirrors.values()], MIRRORS_PER_SLICE))
      if (isMoved || !isDeepStrictEqual(plans.get(mirror.name), mirror.plan)) leaving.push(mirror);
    await this.#scheduler.remove(leaving);
    for (const { name } of leaving) this.#mirrors.delete(name);
    await this.#update();
    this.#removeStrays();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#scheduler.stop();
  }

  /**
   * Runs mirrors now, each once, and reports each as it ends. Patterns run first, then the mirrors
   * that they created.
   *
   * @param names the mirrors to run, all unless given
   * @throws MirrorError MIRROR_UNKNOWN for an unknown name, before anything runs; else as
   *   `Scheduler.run`
   */
  async *run(
    names: readonly string[] | undefined,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<MirrorReport, void> {
    const wanted = (isPattern: boolean): Mirror[] => {
      const named = names?.flatMap((name) => this.#named(name)) ?? this.#mirrors.values();
      return [...new Set(named)].filter((mirror) => mirror instanceof PatternMirror === isPattern);
    };
    const patterns = wanted(true);
    this.#removeStrays();
    yield* this.#runEach(patterns, signal);
    yield* this.#runEach(wanted(false), signal);
  }

  /**
   * Accepts the condition of a mirror: it runs now, without that one check.
   *
   * @throws MirrorError MIRROR_UNKNOWN, MIRROR_NO_CONDITION; else as `Scheduler.run`
   */
  async accept(name: string): Promise<MirrorReport> {
    const [mirror] = this.#named(name);
    const condition = records.of(this.#deps.state, name)?.condition;
    if (mirror === undefined || condition === undefined) {
      throw new MirrorError('MIRROR_NO_CONDITION', { what: JSON.stringify(name) });
    }
    const { report } = await this.#scheduler.run(mirror, {
      accepted: [condition.code],
      isAsked: true,
    });
    if (condition.code === 'ROOT_TAKEN') this.#runWaiting();
    return report;
  }

  /** Called when the root was taken for this state. Runs the mirrors that waited for that. */
  #runWaiting(): void {
    const { state } = this.#deps;
    for (const mirror of this.#mirrors.values())
      if (records.of(state, mirror.name)?.condition?.code === 'ROOT_TAKEN')
        this.#scheduler.runSoon(mirror);
  }

  /** The names of all mirrors, in the order of the configuration. */
  get names(): readonly string[] {
    return [...this.#mirrors.keys()];
  }

  /** Returns the reports of all mirrors, in the order of the configuration. */
  status(): MirrorReport[] {
    return [...this.#mirrors.values()].map((mirror) => ({
      ...reportOf(mirror.plan, this.#deps.state),
      ...this.#scheduler.planOf(mirror),
    }));
  }

  /**
   * Runs mirrors, and yields their reports in the order in which they end. If one throws, or the
   * caller stops early, the other runs are cancelled and awaited.
   */
  async *#runEach(
    mirrors: readonly Mirror[],
    asked: AbortSignal | undefined,
  ): AsyncGenerator<MirrorReport, void> {
    const ending = new AbortController();
    const signal = AbortSignal.any([ending.signal, ...(asked ? [asked] : [])]);
    const options = { accepted: [], isAsked: true, signal };
    const runs = mirrors.map((mirror) => this.#scheduler.run(mirror, options));
    const reports = new ReadableStream<MirrorReport>({
      start: (ended) => {
        const all = Promise.all(runs.map(async (run) => ended.enqueue((await run).report)));
        all.then(
          () => ended.close(),
          (error: unknown) => ended.error(error),
        );
      },
    });
    try {
      yield* reports;
    } finally {
      ending.abort();
      await Promise.allSettled(runs);
    }
  }

  #removeEnded({ name, plan }: Mirror): void {
    this.#mirrors.delete(name);
    if (plan.kind !== 'citations') this.#catalog.remove(plan.kind, plan.source);
  }

  /** Called for every change of an item, and therefore cheap. */
  #itemChanged(item: Entry): void {
    for (const { name, folder } of this.#settings.citations) {
      const mirror = folder === item.folder ? this.#mirrors.get(name) : undefined;
      if (mirror instanceof CitationsMirror) mirror.itemChanged(item);
    }
  }

  /**
   * Returns the mirror of a name. For a pattern: also the mirrors that it created.
   *
   * @throws MirrorError MIRROR_UNKNOWN, MIRROR_NONE
   */
  #named(name: string): readonly Mirror[] {
    const what = JSON.stringify(name);
    if (this.#mirrors.size === 0) throw new MirrorError('MIRROR_NONE', {}, { details: { what } });
    const called = this.#mirrors.get(name);
    if (called === undefined) {
      const meant = nearest(name, [...this.#mirrors.keys()]);
      const suggestion = meant === undefined ? '.' : `; did you mean ${JSON.stringify(meant)}?`;
      throw new MirrorError('MIRROR_UNKNOWN', { what, suggestion }, { details: { what } });
    }
    if (!(called instanceof PatternMirror)) return [called];
    return [...this.#mirrors.values()].filter(({ plan }) => plan.settings === called.plan.settings);
  }

  async #plansOf(settings: MirrorConfig): Promise<ReadonlyMap<string, Plan>> {
    const plans = new Map<string, Plan>();
    const all = plansOf(settings, this.#deps.state, this.#catalog);
    for await (const plan of withPauses(all)) plans.set(plan.name, plan);
    return plans;
  }

  /** Creates the mirrors that are planned and missing. No two of them write the same file. */
  async #update(): Promise<void> {
    await this.#updates.add(async () => {
      const plans = [...(await this.#plansOf(this.#settings)).values()];
      if (plans.every(({ name }) => this.#mirrors.has(name))) return;
      const claims: Claim[] = [];
      for await (const plan of withPauses(plans, MIRRORS_PER_SLICE)) {
        const { kind, name } = plan;
        // These write no file of that path.
        if (kind === 'citations' || plan.role === 'pattern') continue;
        claims.push({
          owner: name,
          wanted: wantedPath(plan),
          current: records.of(this.#deps.state, name)?.path,
          granted: this.#mirrors.get(name)?.identity.path,
          neighbours: plan.settings.versions > 0 || (plan.kind === 'table' && plan.settings.edit),
        });
      }
      const paths = await grantPaths(claims);
      for await (const plan of withPauses(plans, MIRRORS_PER_SLICE)) {
        const known = this.#mirrors.get(plan.name);
        const mirror = known ?? this.#create(plan, paths.get(plan.name) ?? wantedPath(plan));
        if (known === undefined) this.#scheduler.add(mirror);
        // Keeps the order of the plans.
        this.#mirrors.delete(plan.name);
        this.#mirrors.set(plan.name, mirror);
      }
    });
  }

  #create(plan: Plan, target: TargetPath): Mirror {
    const deps: MirrorDeps = { ...this.#deps };
    if (plan.kind === 'citations') return new CitationsMirror(plan, target, deps);
    if (plan.role === 'pattern') return new PatternMirror(plan, target, deps);
    if (plan.kind === 'share') return new ShareMirror(plan, target, deps);
    return plan.settings.edit
      ? new TwoWayTable(plan, target, deps)
      : new TableMirror(plan, target, deps);
  }

  /** Removes the records of mirrors that are not configured any more. Their files stay. */
  #removeStrays(): void {
    const { log, state } = this.#deps;
    for (const name of records.names(state).filter((name) => !this.#mirrors.has(name))) {
      const message = `mirror ${name} is not configured any more: it is forgotten, its file stays`;
      log.info({ event: 'mirror', mirror: name }, message);
      for (const kept of [records, passes]) kept.keep(state, name, undefined);
    }
  }
}
