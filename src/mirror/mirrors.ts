import type { MirrorConfig } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import { HealthCheck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import { nearest } from '../lib/text.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { Entry } from '../state/entry.js';
import type { State } from '../state/state.js';
import { MirrorError } from './errors.js';
import { Leftovers } from './leftovers.js';
import { MirrorSet } from './mirror-set.js';
import type { Mirror, MirrorPeer, MirrorTools } from './parts.js';
import { PatternMirror } from './pattern-mirror.js';
import type { MirrorReport } from './record.js';
import { recordOf } from './records.js';
import { reportOf } from './report.js';
import { Rounds } from './rounds.js';
import { Runner } from './runner.js';

/** How many runs that a person asked for are under way at a time. */
const AT_ONCE = 4;
/** So long a run may go without a request to the peer, in ms: large tables are merged in seconds. */
const LONGEST_SILENCE_MS = 15 * 60_000;

export interface MirrorsParts {
  readonly settings: MirrorConfig;
  /** Absolute: the directory of the state, for temporary files and for what edited tables were last. */
  readonly stateDir: string;
  readonly state: State;
  /** @default that of `state` */
  readonly commit?: () => Promise<void>;
  readonly queue: Pick<RequestQueue, 'run'>;
  readonly peer: MirrorPeer;
  readonly clock: Clock;
  readonly log: Logger;
  /** From 0 to 1, for jitter. @default Math.random */
  readonly random?: () => number;
}

interface Asked {
  readonly signal?: AbortSignal;
}

/**
 * What comes from the peer: shared objects, tables and citations as files that follow it.
 *
 * Life: made from its parts; `start` lets each mirror run again and again (see `Rounds`); `stop` calls off what is under way and
 * resolves when nothing is. `configure` changes which mirrors there are in between. `run` and `accept` work with and without `start`. A failure of one mirror is in its record and
 * ends no other.
 */
export class Mirrors {
  readonly #parts: MirrorsParts;
  #settings: MirrorConfig;
  readonly #set: MirrorSet;
  readonly #runner: Runner;
  readonly #rounds: Rounds;
  readonly #leftovers: Leftovers;
  readonly #health = new HealthCheck('mirror runs', 'mirrors under way ask the peer for nothing', {
    limitMs: LONGEST_SILENCE_MS,
    busy: () => this.#rounds.underWay > 0 && this.#elsewhere === 0,
  });
  /** Requests and commits under way, which have health checks of their own. */
  #elsewhere = 0;
  readonly #stopping = new AbortController();
  #unsubscribe = (): void => {};
  #isStarted = false;
  #starting: Promise<void> = Promise.resolve();
  #prepared: Promise<void> | undefined;

  constructor(parts: MirrorsParts) {
    const { settings, stateDir, queue, peer, clock, log, state, random = Math.random } = parts;
    const kept: MirrorTools['state'] = {
      entries: state.entries,
      get: (folder, path) => state.get(folder, path),
      meta: (name) => state.meta(name),
      setMeta: (name, value) => state.setMeta(name, value),
      commit: () => this.#await(parts.commit ?? (() => state.commit())),
    };
    const counting: MirrorTools['queue'] = {
      run: (lane, work, options) => this.#await(() => queue.run(lane, work, options)),
    };
    const root = () => this.#settings.root;
    const tools: MirrorTools = {
      ...{ peer, queue: counting, state: kept, stateDir, clock, log },
      get root() {
        return root();
      },
    };
    this.#parts = parts;
    this.#settings = settings;
    this.#runner = new Runner(tools);
    const onNew = (mirrors: readonly Mirror[]): void => {
      if (this.#isStarted) this.#rounds.takeUp(mirrors);
    };
    this.#set = new MirrorSet({ settings, state, tools, onNew });
    this.#rounds = new Rounds({ set: this.#set, runner: this.#runner, state, clock, random });
    this.#leftovers = new Leftovers({ set: this.#set, state, stateDir, root, clock, log });
  }

  /** `onFailure` hears of an error that is not one of a single mirror: a disk that fails, a bug. */
  start(onFailure: (error: unknown) => void): void {
    this.#isStarted = true;
    this.#unsubscribe = this.#parts.state.onChange((after, before) => {
      if (after !== undefined && after.status !== before?.status) this.#itemChanged(after);
    });
    this.#starting = this.#prepare().then(() => {
      if (!this.#stopping.signal.aborted) this.#rounds.start(onFailure);
    }, onFailure);
  }

  /**
   * From now on another configuration holds. A mirror that is as before goes on undisturbed, also while it runs; any other is
   * called off, and one of that name begins anew. Those that left are forgotten, their files stay.
   *
   * One after the other: to be awaited before the next call, and before `stop`.
   */
  async configure(settings: MirrorConfig): Promise<void> {
    await this.#starting;
    await this.#prepared?.catch(() => {});
    const leaving = this.#set.notIn(settings);
    await this.#runner.dismiss(leaving);
    await this.#rounds.letGo(leaving);
    for (const mirror of leaving) {
      await mirror.close?.();
      this.#set.remove(mirror.name);
    }
    this.#settings = settings;
    const added = this.#set.configure(settings);
    this.#leftovers.forgetStrays();
    if (this.#isStarted && !this.#stopping.signal.aborted) this.#rounds.takeUp(added);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#unsubscribe();
    await this.#starting;
    await this.#prepared?.catch(() => {});
    await this.#rounds.stop();
    await this.#runner.idle();
    for (const mirror of this.#set.all) await mirror.close?.();
  }

  /**
   * Runs mirrors now, each once, and tells of each as it ends; a pattern first asks for the list, then all that it brought
   * run.
   *
   * @param names all unless given
   * @throws MirrorError MIRROR_UNKNOWN for a name that none has, before anything runs; else as `Runner.run`
   */
  async *run(
    names: readonly string[] | undefined,
    { signal }: Asked = {},
  ): AsyncGenerator<MirrorReport, void> {
    for (const name of names ?? []) this.#called(name);
    await this.#prepare();
    const signals = AbortSignal.any([this.#stopping.signal, ...(signal ? [signal] : [])]);
    const wanted = (): readonly Mirror[] =>
      names === undefined ? this.#set.all : [...new Set(names.flatMap((name) => this.#called(name)))];
    const patterns = wanted().filter((mirror): boolean => mirror instanceof PatternMirror);
    yield* this.#runEach(patterns, signals);
    yield* this.#runEach(
      wanted().filter((mirror) => !patterns.includes(mirror)),
      signals,
    );
  }

  /**
   * A person accepts what raised the alarm of a mirror: it runs now, without that one check.
   *
   * @throws MirrorError MIRROR_UNKNOWN, MIRROR_NO_ALARM; else as `Runner.run`
   */
  async accept(name: string, { signal }: Asked = {}): Promise<MirrorReport> {
    this.#called(name);
    await this.#prepare();
    const mirror = this.#set.get(name);
    const alarm = recordOf(this.#parts.state, name)?.alarm;
    if (mirror === undefined || alarm === undefined) {
      throw new MirrorError('MIRROR_NO_ALARM', { what: JSON.stringify(name), detail: '' });
    }
    const signals = AbortSignal.any([this.#stopping.signal, ...(signal ? [signal] : [])]);
    return this.#runNow(mirror, [alarm.code], signals);
  }

  get health(): readonly HealthCheck[] {
    return [this.#rounds.health, this.#health];
  }

  /** Of all mirrors, in the order of the configuration. */
  get names(): readonly string[] {
    return this.#set.plans.map(({ name }) => name);
  }

  /** Of all mirrors, in the order of the configuration. */
  status(): MirrorReport[] {
    return this.#set.plans.map((plan) => {
      const nextAt = this.#rounds.nextAt(plan.name);
      return {
        ...reportOf(plan, recordOf(this.#parts.state, plan.name)),
        running: this.#runner.isRunning(plan.name),
        ...(nextAt === undefined ? {} : { nextAt }),
      };
    });
  }

  /** Ends early when a run throws, or when nobody wants to know any more: the others are called off then, and waited for. */
  async *#runEach(mirrors: readonly Mirror[], signal: AbortSignal): AsyncGenerator<MirrorReport, void> {
    const ending = new AbortController();
    const signals = AbortSignal.any([ending.signal, signal]);
    const waiting = [...mirrors];
    const underWay = new Map<Mirror, Promise<readonly [Mirror, MirrorReport]>>();
    try {
      for (;;) {
        while (underWay.size < AT_ONCE) {
          const mirror = waiting.shift();
          if (mirror === undefined) break;
          if (this.#set.get(mirror.name) !== mirror) continue;
          underWay.set(
            mirror,
            this.#runNow(mirror, [], signals).then((report) => [mirror, report] as const),
          );
        }
        if (underWay.size === 0) return;
        const [mirror, report] = await Promise.race(underWay.values());
        underWay.delete(mirror);
        yield report;
      }
    } finally {
      ending.abort();
      await Promise.allSettled(underWay.values());
    }
  }

  async #runNow(mirror: Mirror, accepted: readonly string[], signal: AbortSignal): Promise<MirrorReport> {
    const result = await this.#runner.run(mirror, { accepted, isAsked: true, signal });
    if (result.end === 'over' && this.#set.get(mirror.name) === mirror) this.#set.remove(mirror.name);
    if (this.#isStarted) this.#rounds.ended(mirror, result);
    return result.report;
  }

  /** Called for every file of an import: only those that it may concern are asked. */
  async #await<T>(work: () => Promise<T>): Promise<T> {
    this.#elsewhere += 1;
    try {
      return await work();
    } finally {
      this.#elsewhere -= 1;
      this.#health.progress();
    }
  }

  #itemChanged(item: Entry): void {
    for (const { name, folder } of this.#settings.citations) {
      const mirror = folder === item.folder ? this.#set.get(name) : undefined;
      if (mirror?.itemChanged?.(item)) this.#rounds.takeForward(mirror);
    }
  }

  /** @throws MirrorError MIRROR_UNKNOWN */
  #called(name: string): readonly Mirror[] {
    const mirrors = this.#set.called(name);
    if (mirrors.length > 0) return mirrors;
    const meant = nearest(
      name,
      this.#set.all.map((mirror) => mirror.name),
    );
    const detail = meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`;
    throw new MirrorError('MIRROR_UNKNOWN', { what: JSON.stringify(name), detail });
  }

  /** Before anything runs: sweeps what a killed process left, and forgets mirrors that are configured no more. */
  #prepare(): Promise<void> {
    this.#prepared ??= this.#tidy();
    return this.#prepared;
  }

  async #tidy(): Promise<void> {
    await this.#leftovers.sweep();
    this.#leftovers.forgetStrays();
  }
}
