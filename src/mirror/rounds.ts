import type { Clock } from '../lib/clock.js';
import { HealthCheck } from '../lib/health.js';
import type { StateView } from '../state/state.js';
import { Bell } from './bell.js';
import type { MirrorSet } from './mirror-set.js';
import type { Mirror } from './parts.js';
import { recordOf } from './records.js';
import { isCalledOff, type Runner, type RunResult } from './runner.js';
import { Schedule } from './schedule.js';

/** Files that are worked on at a time; passes over citations go beside them. */
const AT_ONCE = 4;
/** How often files that a person edits are looked at, in ms. */
const LOOK_MS = 2_000;
/** How long after somebody was seen writing a file it is tried again, in ms. */
const LATER_MS = 3_000;
/** Longest sleep, in ms: timers bear no more than 24 days. */
const LONGEST_SLEEP_MS = 3_600_000;

export interface RoundsParts {
  readonly set: Pick<MirrorSet, 'all' | 'get' | 'remove'>;
  readonly runner: Pick<Runner, 'run' | 'isRunning'>;
  readonly state: Pick<StateView, 'meta'>;
  readonly clock: Clock;
  readonly random: () => number;
}

/**
 * Runs each mirror when its time comes: soon after the start, then every `every` or so; earlier after a failure, and when a
 * person edited its file.
 *
 * Life: `start` begins, `stop` calls off what is under way and resolves when nothing is. Mirrors that come up later are told
 * by `takeUp`, runs by others by `ended`, at any time.
 */
export class Rounds {
  readonly health = new HealthCheck('mirrors', 'mirrors that are due do not begin', {
    busy: () => this.#mayBegin(),
  });
  readonly #parts: RoundsParts;
  readonly #schedule: Schedule;
  readonly #bell: Bell;
  /** Rings when there may be more files that a person edits. */
  readonly #editsBell: Bell;
  readonly #stopping = new AbortController();
  /** Due, and waiting for room. */
  readonly #waiting = new Set<Mirror>();
  readonly #underWay = new Map<Mirror, Promise<void>>();
  #loops: Promise<unknown> = Promise.resolve();
  #isStarted = false;

  constructor(parts: RoundsParts) {
    this.#parts = parts;
    this.#schedule = new Schedule(parts.clock, parts.random);
    this.#bell = new Bell(parts.clock);
    this.#editsBell = new Bell(parts.clock);
  }

  /** `onFailure` hears of an error that is not one of a single mirror: a disk that fails, a bug. */
  start(onFailure: (error: unknown) => void): void {
    this.#isStarted = true;
    this.takeUp(this.#parts.set.all);
    this.#loops = Promise.all([this.#work(onFailure), this.#lookForEdits()]).catch(onFailure);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#bell.ring();
    this.#editsBell.ring();
    await this.#loops;
    await Promise.all(this.#underWay.values());
  }

  /** How many mirrors are being worked on. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /** In ms since the epoch, for show. */
  nextAt(name: string): number | undefined {
    return this.#schedule.nextAt(name);
  }

  /** They run soon. */
  takeUp(mirrors: readonly Mirror[]): void {
    for (const mirror of mirrors) {
      const ms = mirror.nextIn?.();
      if (ms === undefined) this.#schedule.first(mirror.name, mirror.every);
      else this.#schedule.in(mirror.name, ms);
    }
    this.#bell.ring();
    this.#editsBell.ring();
  }

  /** It says when it runs next. Its own end plans that while it runs, and a failure is tried again at its own pace. */
  takeForward(mirror: Mirror): void {
    const { runner, state } = this.#parts;
    const ms = mirror.nextIn?.();
    if (ms === undefined || runner.isRunning(mirror.name)) return;
    if (recordOf(state, mirror.name)?.failure !== undefined) return;
    this.#schedule.in(mirror.name, ms);
    this.#bell.ring();
  }

  /** They run no more. To be told after their runs were called off; resolves when nothing of them is under way. */
  async letGo(mirrors: readonly Mirror[]): Promise<void> {
    for (const mirror of mirrors) {
      this.#waiting.delete(mirror);
      await this.#underWay.get(mirror);
      this.#schedule.forget(mirror.name);
    }
  }

  /** A run of a mirror ended: plans the next. */
  ended(mirror: Mirror, { end, report }: RunResult): void {
    const { name, every } = mirror;
    if (this.#parts.set.get(name) !== mirror) return;
    switch (end) {
      case 'failed':
        this.#schedule.retry(name, every, report.failures ?? 1);
        break;
      case 'later':
        this.#schedule.in(name, LATER_MS);
        break;
      case 'over':
        this.#schedule.forget(name);
        this.#parts.set.remove(name);
        break;
      default: {
        const ms = mirror.nextIn?.();
        if (ms === undefined) this.#schedule.next(name, every);
        else this.#schedule.in(name, ms);
      }
    }
    this.#bell.ring();
  }

  async #work(onFailure: (error: unknown) => void): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      for (const name of this.#schedule.due()) {
        this.#schedule.forget(name);
        const mirror = this.#parts.set.get(name);
        if (mirror !== undefined) this.#waiting.add(mirror);
      }
      for (const mirror of this.#waiting) {
        if (this.#hasRoomFor(mirror)) this.#begin(mirror, onFailure);
      }
      // Who waits for room hears of it: the end of a run rings.
      await this.#bell.wait(Math.min(this.#schedule.untilNext(), LONGEST_SLEEP_MS));
    }
  }

  #mayBegin(): boolean {
    if (!this.#isStarted || this.#stopping.signal.aborted) return false;
    return this.#schedule.untilNext() === 0 || [...this.#waiting].some((mirror) => this.#hasRoomFor(mirror));
  }

  #hasRoomFor(mirror: Mirror): boolean {
    if (this.#underWay.has(mirror)) return false;
    return isPass(mirror) || [...this.#underWay.keys()].filter((each) => !isPass(each)).length < AT_ONCE;
  }

  #begin(mirror: Mirror, onFailure: (error: unknown) => void): void {
    this.#waiting.delete(mirror);
    this.health.progress();
    const run = this.#run(mirror)
      .catch(onFailure)
      .finally(() => {
        this.#underWay.delete(mirror);
        this.#bell.ring();
      });
    this.#underWay.set(mirror, run);
  }

  async #run(mirror: Mirror): Promise<void> {
    const { signal } = this.#stopping;
    try {
      this.ended(mirror, await this.#parts.runner.run(mirror, { accepted: [], signal }));
    } catch (error) {
      if (signal.aborted) return;
      this.#schedule.retry(mirror.name, mirror.every, 1);
      if (!isCalledOff(error, signal)) throw error;
    }
  }

  /** What a person did to a file is not left until the next round. */
  async #lookForEdits(): Promise<void> {
    const { set, runner, state } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      const edited = set.all.filter((mirror) => mirror.looksEdited !== undefined);
      for (const mirror of edited) {
        // Where the last run failed, the next try comes by itself.
        const mayRun = !runner.isRunning(mirror.name) && recordOf(state, mirror.name)?.failure === undefined;
        if (!mayRun || !(await looksEdited(mirror))) continue;
        this.#schedule.in(mirror.name, 0);
        this.#bell.ring();
      }
      await this.#editsBell.wait(edited.length > 0 ? LOOK_MS : LONGEST_SLEEP_MS);
    }
  }
}

/** What cannot be looked at is for a run to find out and to tell: it concerns this one mirror. */
async function looksEdited(mirror: Mirror): Promise<boolean> {
  try {
    return (await mirror.looksEdited?.()) ?? false;
  } catch {
    return true;
  }
}

/** A pass takes as long as there are items, and asks for one at a time. */
function isPass({ identity }: Mirror): boolean {
  return identity.kind === 'citations';
}
