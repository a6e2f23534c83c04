import { join } from 'node:path';
import { messageOf, PeersyncError } from '../lib/errors.js';
import { MirrorAlarm } from './alarms.js';
import { EditAlarm } from './edit-alarms.js';
import { MirrorError } from './errors.js';
import { alarmed, failed, followed } from './life.js';
import { MirrorLog } from './mirror-log.js';
import type { Followed, FollowOptions, Mirror, MirrorTools } from './parts.js';
import type { MirrorRecord, MirrorReport } from './record.js';
import { keepRecord, recordOf } from './records.js';
import { RootGuard } from './root-guard.js';
import { sameStamp, stampAt } from './whole-file.js';

export type RunEnd = Followed['kind'] | 'failed';

export interface RunResult {
  readonly end: RunEnd;
  readonly report: MirrorReport;
}

export type RunnerTools = Pick<MirrorTools, 'state' | 'root' | 'clock' | 'log'>;

/**
 * Runs mirrors, each by itself: two runs of the same mirror go one after the other.
 *
 * A mirror that is *dismissed* is called off, and never runs again: another one may have its name by then.
 *
 * What a run came to is in its record, on disk, when it resolves, and never before the file is in place: after a crash
 * between the two the next run finds the file as it should be and only writes the record.
 */
export class Runner {
  readonly #tools: RunnerTools;
  readonly #log: MirrorLog;
  readonly #guard: RootGuard;
  readonly #running = new Map<string, Promise<unknown>>();
  readonly #dismissed = new WeakSet<Mirror>();
  readonly #calledOff = new Map<Mirror, AbortController>();

  constructor(tools: RunnerTools) {
    this.#tools = tools;
    this.#log = new MirrorLog(tools.log);
    this.#guard = new RootGuard(tools);
  }

  isRunning(name: string): boolean {
    return this.#running.has(name);
  }

  /** Resolves when no run is under way. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running.values());
  }

  /**
   * @throws the reason of `signal` when it aborts, MirrorError MIRROR_REPLACED when it was dismissed, QueueError or PeerError when the queue or the peer client is stopped, StateError
   *   when the record cannot be kept; what is wrong with the mirror is in the report
   */
  async run(mirror: Mirror, options: FollowOptions): Promise<RunResult> {
    for (let other = this.#running.get(mirror.name); other; other = this.#running.get(mirror.name)) {
      await other.catch(() => {});
    }
    if (this.#dismissed.has(mirror)) throw replaced(mirror);
    const calledOff = new AbortController();
    this.#calledOff.set(mirror, calledOff);
    const signal = AbortSignal.any([options.signal, calledOff.signal]);
    const run = this.#runAlone(mirror, { ...options, signal });
    this.#running.set(mirror.name, run);
    try {
      return await run;
    } catch (error) {
      throw calledOff.signal.aborted ? replaced(mirror) : error;
    } finally {
      this.#running.delete(mirror.name);
      this.#calledOff.delete(mirror);
    }
  }

  /** Resolves when none of these is under way any more; none of them begins again. */
  async dismiss(mirrors: readonly Mirror[]): Promise<void> {
    const ending = mirrors.map((mirror) => {
      this.#dismissed.add(mirror);
      const calledOff = this.#calledOff.get(mirror);
      calledOff?.abort(replaced(mirror));
      return calledOff === undefined ? undefined : this.#running.get(mirror.name);
    });
    await Promise.allSettled(ending);
  }

  async #runAlone(mirror: Mirror, options: FollowOptions): Promise<RunResult> {
    const { state, clock } = this.#tools;
    const { name, identity } = mirror;
    options.signal.throwIfAborted();
    const before = recordOf(state, name);
    const disturbance = await this.#disturbance(mirror, before);
    const { end, changed, after } = await this.#follow(mirror, before, options);
    keepRecord(state, name, after);
    await state.commit();
    this.#log.tell(name, before, after, { changed, disturbance: changed ? disturbance : undefined });
    const record = after ?? { ...identity, triedAt: clock.now() };
    return { end, report: { name, ...record, changed, ...(end === 'over' ? { isOver: true } : {}) } };
  }

  async #follow(
    mirror: Mirror,
    before: MirrorRecord | undefined,
    options: FollowOptions,
  ): Promise<{ readonly end: RunEnd; readonly changed: boolean; readonly after: MirrorRecord | undefined }> {
    const { clock } = this.#tools;
    const { identity } = mirror;
    try {
      await this.#guard.check();
      const result = await mirror.follow(before, options);
      if (result.kind === 'followed') await this.#guard.wasWritten();
      const now = clock.now();
      switch (result.kind) {
        case 'followed':
          return { end: 'followed', changed: result.changed, after: followed(before, identity, result, now) };
        case 'alarm':
          return { end: 'alarm', changed: false, after: alarmed(before, identity, result, now) };
        case 'later':
          return { end: 'later', changed: false, after: before };
        case 'over':
          return { end: 'over', changed: result.changed, after: undefined };
      }
    } catch (error) {
      if (isCalledOff(error, options.signal)) throw error;
      const now = clock.now();
      if (error instanceof MirrorAlarm || error instanceof EditAlarm) {
        return { end: 'alarm', changed: false, after: alarmed(before, identity, { trouble: error }, now) };
      }
      const trouble = error instanceof PeersyncError ? error : this.#bug(mirror, error);
      return { end: 'failed', changed: false, after: failed(before, identity, trouble, now) };
    }
  }

  /** Nothing that went wrong with one mirror ends the others. */
  #bug({ name }: Mirror, error: unknown): MirrorError {
    this.#tools.log.error({ err: error, mirror: name }, `the mirror ${name} failed: ${messageOf(error)}`);
    return new MirrorError('MIRROR_FAILED', { what: JSON.stringify(name), detail: messageOf(error) }, error);
  }

  /** What somebody did to a file that is only written, since it was. */
  async #disturbance(
    mirror: Mirror,
    before: MirrorRecord | undefined,
  ): Promise<'changed' | 'removed' | undefined> {
    const { identity } = mirror;
    if (mirror.looksEdited !== undefined) return undefined;
    if (before?.file === undefined || before.path !== identity.path) return undefined;
    const stamp = await stampAt(join(this.#tools.root, identity.path)).catch(() => undefined);
    if (stamp === undefined) return 'removed';
    return sameStamp(stamp, before.file) ? undefined : 'changed';
  }
}

function replaced({ name }: Mirror): MirrorError {
  return new MirrorError('MIRROR_REPLACED', { what: JSON.stringify(name), detail: '' });
}

const CALLED_OFF = new Set(['QUEUE_STOPPED', 'PEER_ABORTED', 'MIRROR_REPLACED']);

/** Whether a run ended because it was told to, and not because of the mirror. */
export function isCalledOff(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted || (error instanceof PeersyncError && CALLED_OFF.has(error.code));
}
