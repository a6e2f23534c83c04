import { isDeepStrictEqual } from 'node:util';
import PQueue from 'p-queue';
import type { MirrorConfig } from '../config/config.js';
import { nearest } from '../lib/edit-distance.js';
import { HealthCheck } from '../lib/health.js';
import { inTurns } from '../lib/slices.js';
import { PeerError } from '../peer/errors.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { Entry } from '../state/entry.js';
import { CitationsMirror } from './citations.js';
import { MirrorError } from './errors.js';
import { type Mirror, type MirrorDeps, PatternMirror, runMirror } from './mirror.js';
import { type Listed, type Plan, passes, plansOf, records, reportOf, wantedPath } from './plan.js';
import type { MirrorReport } from './record.js';
import { MirrorRoot } from './root.js';
import { Scheduler } from './scheduler.js';
import { ShareMirror } from './share.js';
import { TableMirror } from './table.js';
import { type Claim, grantPaths, type TargetPath } from './target-path.js';
import { BaseStore } from './two-way/base.js';
import { TwoWayTable } from './two-way/two-way-table.js';

/**
 * So long a run may go without a request to the peer, in ms: large tables are merged in seconds.
 */
const LONGEST_SILENCE_MS = 15 * 60_000;
/** Mirrors that are made without giving way to other work. */
const MADE_A_TURN = 100;

export interface MirrorsParts
  extends Pick<MirrorDeps, 'clock' | 'log' | 'peer' | 'state' | 'stateDir'> {
  readonly settings: MirrorConfig;
  readonly queue: Pick<RequestQueue, 'run'>;
  /** From 0 to 1, for jitter. @default Math.random */
  readonly random?: () => number;
}

/**
 * What comes from the peer: shared objects, tables and citations as files that follow it. There is
 * a mirror for each entry of the configuration, and one for each table and each shared object that
 * a pattern matches, from the moment it was first listed.
 *
 * Life: opened with its parts; `start` lets each mirror run again and again (see `Scheduler`);
 * `stop` calls off what is under way and resolves when nothing is. `configure` changes which
 * mirrors there are in between. `run` and `accept` work with and without `start`. A failure of one
 * mirror is in its record and ends no other.
 */
export class Mirrors {
  readonly #deps: { -readonly [K in keyof MirrorDeps]: MirrorDeps[K] };
  readonly #scheduler: Scheduler;
  /** By name, in the order of the configuration. */
  readonly #mirrors = new Map<string, Mirror>();
  readonly #health = new HealthCheck('mirror runs', 'mirrors under way ask the peer for nothing', {
    limitMs: LONGEST_SILENCE_MS,
    busy: () => this.#scheduler.isBusy && this.#elsewhere === 0,
  });
  readonly health: readonly HealthCheck[] = [this.#health];
  /** Requests and commits under way, which have health checks of their own. */
  #elsewhere = 0;
  #settings: MirrorConfig;
  /** What the peer said last; undefined before it was asked. */
  readonly #listed: Listed = {};
  /** One after the other. */
  readonly #updates = new PQueue({ concurrency: 1 });
  #unsubscribe = (): void => {};

  private constructor(parts: MirrorsParts) {
    const { settings, stateDir, queue, peer, clock, log, state, random = Math.random } = parts;
    this.#settings = settings;
    const commit = () => this.#await(() => state.commit());
    this.#deps = {
      peer,
      state,
      stateDir,
      clock,
      log,
      root: settings.root,
      isListed: (kind, source) => this.#listed[kind]?.has(source) ?? true,
      onList: (kind, sources) => {
        this.#listed[kind] = new Set(sources);
        return this.#update();
      },
      commit,
      mirrorRoot: new MirrorRoot({ state, stateDir, commit }),
      ask: async (signal, work) => {
        const options = signal && { signal };
        const answer = await this.#await(() =>
          queue.run('mirror', (signal) => answerOf(work(signal)), options),
        );
        return answer();
      },
    };
    this.#scheduler = new Scheduler({
      clock,
      random,
      run: (mirror, options) => runMirror(mirror, this.#deps, options),
      onOver: ({ name, plan }) => {
        this.#mirrors.delete(name);
        // Until the peer lists it again.
        if (plan.kind !== 'citations') this.#listed[plan.kind]?.delete(plan.source);
      },
    });
  }

  static async open(parts: MirrorsParts): Promise<Mirrors> {
    const mirrors = new Mirrors(parts);
    await mirrors.#update();
    await BaseStore.forgetOthers(parts.stateDir, mirrors.names);
    return mirrors;
  }

  /** `onFailure` is given an error that is not one of a single mirror: a disk that fails, a bug. */
  start(onFailure: (error: unknown) => void): void {
    this.#unsubscribe = this.#deps.state.onChange((after, statusBefore) => {
      if (after !== undefined && after.status !== statusBefore) this.#itemChanged(after);
    });
    this.#forgetStrays();
    this.#scheduler.start(onFailure);
  }

  /**
   * From now on another configuration holds. A mirror that is as before goes on undisturbed, also
   * while it runs; any other is called off, and one of that name begins anew. Those that left are
   * forgotten, their files stay.
   *
   * One after the other: to be awaited before the next call, and before `stop`.
   */
  async configure(settings: MirrorConfig): Promise<void> {
    const isMoved = settings.root !== this.#settings.root;
    this.#settings = settings;
    this.#deps.root = settings.root;
    // One that began before goes by the old ones.
    await this.#updates.onIdle();
    const plans = await this.#plansOf(settings);
    const leaving: Mirror[] = [];
    for await (const mirror of inTurns([...this.#mirrors.values()], MADE_A_TURN))
      if (isMoved || !isDeepStrictEqual(plans.get(mirror.name), mirror.plan)) leaving.push(mirror);
    await this.#scheduler.remove(leaving);
    for (const { name } of leaving) this.#mirrors.delete(name);
    await this.#update();
    this.#forgetStrays();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#scheduler.stop();
  }

  /**
   * Runs mirrors now, each once, and reports each as it ends; a pattern first asks for the list,
   * then all that it brought run.
   *
   * @param names all unless given
   * @throws MirrorError MIRROR_UNKNOWN for a name that none has, before anything runs; else as
   *   `Scheduler.run`
   */
  async *run(
    names: readonly string[] | undefined,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<MirrorReport, void> {
    const wanted = (isPattern: boolean): Mirror[] => {
      const named = names?.flatMap((name) => this.#called(name)) ?? this.#mirrors.values();
      return [...new Set(named)].filter((mirror) => mirror instanceof PatternMirror === isPattern);
    };
    const patterns = wanted(true);
    this.#forgetStrays();
    yield* this.#runEach(patterns, signal);
    yield* this.#runEach(wanted(false), signal);
  }

  /**
   * A person accepts what raised the alarm of a mirror: it runs now, without that one check.
   *
   * @throws MirrorError MIRROR_UNKNOWN, MIRROR_NO_ALARM; else as `Scheduler.run`
   */
  async accept(name: string): Promise<MirrorReport> {
    const [mirror] = this.#called(name);
    const alarm = records.of(this.#deps.state, name)?.alarm;
    if (mirror === undefined || alarm === undefined) {
      throw new MirrorError('MIRROR_NO_ALARM', JSON.stringify(name));
    }
    const { report } = await this.#scheduler.run(mirror, { accepted: [alarm.code], isAsked: true });
    if (alarm.code === 'ROOT_TAKEN') this.#runWaiting();
    return report;
  }

  /** The root is taken for this state: those that waited for that run soon. */
  #runWaiting(): void {
    const { state } = this.#deps;
    for (const mirror of this.#mirrors.values())
      if (records.of(state, mirror.name)?.alarm?.code === 'ROOT_TAKEN')
        this.#scheduler.runSoon(mirror);
  }

  /** Of all mirrors, in the order of the configuration. */
  get names(): readonly string[] {
    return [...this.#mirrors.keys()];
  }

  /** Of all mirrors, in the order of the configuration. */
  status(): MirrorReport[] {
    return [...this.#mirrors.values()].map((mirror) => ({
      ...reportOf(mirror.plan, this.#deps.state),
      ...this.#scheduler.planOf(mirror),
    }));
  }

  /**
   * In the order in which they end. Called off, and waited for, when one throws or nobody wants to
   * know any more.
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

  async #await<T>(work: () => Promise<T>): Promise<T> {
    this.#elsewhere += 1;
    try {
      return await work();
    } finally {
      this.#elsewhere -= 1;
      this.#health.progress();
    }
  }

  /** Called for every file of an import: only those that it may concern are asked. */
  #itemChanged(item: Entry): void {
    for (const { name, folder } of this.#settings.citations) {
      const mirror = folder === item.folder ? this.#mirrors.get(name) : undefined;
      if (mirror instanceof CitationsMirror) mirror.itemChanged(item);
    }
  }

  /**
   * What a name given by a person stands for: a mirror, or a pattern and all that it brought.
   *
   * @throws MirrorError MIRROR_UNKNOWN, MIRROR_NONE
   */
  #called(name: string): readonly Mirror[] {
    if (this.#mirrors.size === 0) throw new MirrorError('MIRROR_NONE', JSON.stringify(name));
    const called = this.#mirrors.get(name);
    if (called === undefined) {
      const meant = nearest(name, [...this.#mirrors.keys()]);
      const detail = meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`;
      throw new MirrorError('MIRROR_UNKNOWN', JSON.stringify(name), detail);
    }
    if (!(called instanceof PatternMirror)) return [called];
    return [...this.#mirrors.values()].filter(({ plan }) => plan.settings === called.plan.settings);
  }

  async #plansOf(settings: MirrorConfig): Promise<ReadonlyMap<string, Plan>> {
    const plans = new Map<string, Plan>();
    const all = plansOf(settings, this.#deps.state, this.#listed);
    for await (const plan of inTurns(all)) plans.set(plan.name, plan);
    return plans;
  }

  /** Makes the mirrors that are planned and not there yet. No two write the same file. */
  async #update(): Promise<void> {
    await this.#updates.add(async () => {
      const plans = [...(await this.#plansOf(this.#settings)).values()];
      if (plans.every(({ name }) => this.#mirrors.has(name))) return;
      const claims: Claim[] = [];
      for await (const plan of inTurns(plans, MADE_A_TURN)) {
        const { kind, name } = plan;
        // Those write no file of that name.
        if (kind === 'citations' || plan.role === 'pattern') continue;
        claims.push({
          owner: name,
          wanted: wantedPath(plan),
          held: records.of(this.#deps.state, name)?.path,
          granted: this.#mirrors.get(name)?.identity.path,
          neighbours: plan.settings.versions > 0 || (plan.kind === 'table' && plan.settings.edit),
        });
      }
      const paths = await grantPaths(claims);
      for await (const plan of inTurns(plans, MADE_A_TURN)) {
        const known = this.#mirrors.get(plan.name);
        const mirror = known ?? this.#make(plan, paths.get(plan.name) ?? wantedPath(plan));
        if (known === undefined) this.#scheduler.add(mirror);
        // In the order of the plans.
        this.#mirrors.delete(plan.name);
        this.#mirrors.set(plan.name, mirror);
      }
    });
  }

  #make(plan: Plan, target: TargetPath): Mirror {
    const deps: MirrorDeps = { ...this.#deps };
    if (plan.kind === 'citations') return new CitationsMirror(plan, target, deps);
    if (plan.role === 'pattern') return new PatternMirror(plan, target, deps);
    if (plan.kind === 'share') return new ShareMirror(plan, target, deps);
    return plan.settings.edit
      ? new TwoWayTable(plan, target, deps)
      : new TableMirror(plan, target, deps);
  }

  /** Forgets what is kept of mirrors that are not configured any more. Their files stay. */
  #forgetStrays(): void {
    const { log, state } = this.#deps;
    for (const name of records.names(state).filter((name) => !this.#mirrors.has(name))) {
      const said = `mirror ${name} is not configured any more: it is forgotten, its file stays`;
      log.info({ event: 'mirror', mirror: name }, said);
      for (const kept of [records, passes]) kept.keep(state, name, undefined);
    }
  }
}

/** The peer works, and says something about this one request: nobody else has to wait for that. */
const OF_THE_REQUEST = ['PEER_ANSWER', 'PEER_ANSWER_TOO_LARGE', 'PEER_REFUSED'];

/** What the peer answered, be it an error: for the queue that is an answer. */
async function answerOf<T>(work: Promise<T>): Promise<() => T> {
  try {
    const value = await work;
    return () => value;
  } catch (error) {
    if (!(error instanceof PeerError) || !OF_THE_REQUEST.includes(error.code)) throw error;
    return () => {
      throw error;
    };
  }
}
