import { execFile } from 'node:child_process';
import type { Config } from '../config/config.js';
import type { Clock, Timer } from '../lib/clock.js';
import { durationText } from '../lib/duration-text.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { type Duty, Pulse, type Stuck } from '../lib/pulse.js';
import type { Lane } from '../queue/options.js';
import type { SilentDisk } from '../report/live.js';
import type { StatusReport } from '../report/status.js';
import { statusSentence } from '../report/status-sentence.js';
import type { Parts } from './parts.js';
import type { Notifier } from './systemd-notifier.js';

/** How long a duty may be neglected unless it says otherwise, in ms. */
const LIMIT_MS = 90_000;
/** Looks within the limit. */
const LOOKS = 9;
/** Who wants to be watched at shorter intervals wants to hear of trouble sooner, too. */
const SHARE_OF_WATCHDOG = 0.75;
/** A disk that gives no answer within this time is waited for, in ms. */
const DISK_ANSWERS_MS = 5_000;
/** What stands still for so long may wait for a disk; people want to hear of that before it counts as neglect. In ms. */
const SUSPECT_MS = 20_000;

export interface WatchdogParts {
  readonly notifier: Pick<Notifier, 'watchdog' | 'watchdogMs' | 'isUnheard'>;
  /** Asked at each look: a new configuration brings others. */
  readonly duties: () => readonly Duty[];
  /** The directories that the work depends on. */
  readonly disks: () => readonly Disk[];
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a duty may be neglected, in ms. @default 90 s, or three quarters of `watchdogMs` where that is less */
  readonly limitMs?: number;
  /** Resolves when the disk answered. @default see DiskInquiry */
  readonly askDisk?: (disk: Disk) => Promise<void>;
}

/**
 * Gives systemd signs of life for as long as every duty is seen to.
 *
 * - *Well*: each look finds every duty's pulse; a sign of life leaves at half the time that systemd grants, and again at the
 *   next look where it did not arrive.
 * - *Waiting for a disk*: something stands still for a while, and a directory that the work depends on does not answer. It is
 *   said once, and the signs go on: a new start would wait, too.
 * - *Stuck*: something stands still, and all disks answer. It is said once, and no sign leaves any more, so that systemd ends the
 *   process and starts another. Should it move after all, it is well again.
 *
 * A loop of events that is blocked, or a process that is stopped, gives no signs by itself; the time of that counts as nobody's
 * neglect.
 *
 * A duty that fails to tell how it stands is one that nobody is known to see to: it stands still. A look that fails gives no
 * sign, and the next one is taken all the same. Either is said once; a start anew is the way out where it lasts.
 */
export class Watchdog {
  readonly #parts: WatchdogParts;
  readonly #limitMs: number;
  readonly #everyMs: number;
  readonly #suspectMs: number;
  readonly #inquiry: DiskInquiry;
  readonly #pulses = new Map<string, Pulse>();
  #stuck: readonly Stuck[] = [];
  #silentDisk: SilentDisk | undefined;
  #told = '';
  /** The duties that failed to tell; nameless for a look. */
  readonly #faults = new Set<string>();
  #lookedAt = 0;
  #fedAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(parts: WatchdogParts) {
    this.#parts = parts;
    const { watchdogMs = Number.POSITIVE_INFINITY } = parts.notifier;
    this.#limitMs = parts.limitMs ?? Math.min(LIMIT_MS, watchdogMs * SHARE_OF_WATCHDOG);
    this.#everyMs = Math.min(this.#limitMs / LOOKS, watchdogMs / 8);
    this.#suspectMs = Math.min(SUSPECT_MS, this.#limitMs);
    const { askDisk: ask, clock, disks } = parts;
    const answersMs = Math.min(DISK_ANSWERS_MS, watchdogMs / 8);
    this.#inquiry = new DiskInquiry({ ask, clock, disks, answersMs });
  }

  start(): void {
    this.#lookedAt = this.#parts.clock.monotonic();
    this.#feed();
    this.#plan();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** What does not go on by itself. */
  stuck(): readonly Stuck[] {
    return this.#stuck;
  }

  /** The disk that is waited for; undefined while none is. */
  silentDisk(): SilentDisk | undefined {
    return this.#silentDisk;
  }

  #plan(): void {
    if (this.#isStopped) return;
    this.#timer = this.#parts.clock.after(this.#everyMs, () => void this.#look(), { background: true });
  }

  async #look(): Promise<void> {
    try {
      await this.#lookAround();
    } catch (error) {
      this.#sayFault('', 'whether everything goes on could not be looked at', error);
    }
    this.#plan();
  }

  async #lookAround(): Promise<void> {
    const still = this.#feelPulses();
    const suspects = [...this.#pulses.values()].flatMap((pulse) => pulse.stillFor(this.#suspectMs) ?? []);
    const path = suspects.length === 0 ? undefined : await this.#inquiry.silent();
    if (this.#isStopped) return;
    this.#stuck = path === undefined ? still : [];
    this.#silentDisk = path === undefined ? undefined : { path, ...oneOf(suspects) };
    this.#tell();
    if (this.#stuck.length === 0) this.#feed();
  }

  #feelPulses(): readonly Stuck[] {
    const { clock, duties } = this.#parts;
    const now = clock.monotonic();
    const elapsed = Math.min(now - this.#lookedAt, 2 * this.#everyMs);
    this.#lookedAt = now;
    return duties().flatMap((duty) => {
      const pulse = this.#pulses.get(duty.name) ?? new Pulse(clock.now());
      this.#pulses.set(duty.name, pulse);
      return pulse.look(this.#asked(duty), elapsed, clock.now(), this.#limitMs) ?? [];
    });
  }

  /** The duty as it stands now; one that fails to tell has no reason to wait. */
  #asked(duty: Duty): Duty {
    try {
      const [moves, what] = [duty.moves(), duty.neglects()];
      return { ...duty, moves: () => moves, neglects: () => what };
    } catch (error) {
      const { name } = duty;
      const what = `whether "${name}" goes on cannot be told`;
      this.#sayFault(name, what, error);
      return { name, moves: () => undefined, neglects: () => what };
    }
  }

  #sayFault(name: string, what: string, error: unknown): void {
    if (this.#faults.has(name)) return;
    this.#faults.add(name);
    this.#parts.log.error({ err: error }, `${what}: ${messageOf(error)}`);
  }

  #feed(): void {
    const { clock, notifier } = this.#parts;
    const now = clock.monotonic();
    if (notifier.watchdogMs === undefined) return;
    // The next look comes before the half is over by more than a quarter.
    const isSoon = now - this.#fedAt < notifier.watchdogMs / 2 - this.#everyMs / 2;
    if (isSoon && !notifier.isUnheard) return;
    this.#fedAt = now;
    notifier.watchdog();
  }

  #tell(): void {
    const { clock, log, notifier } = this.#parts;
    const [still, silent] = [this.#stuck, this.#silentDisk];
    const told = silent?.path ?? still.map(({ name }) => name).join();
    if (told === this.#told) return;
    const hadTold = this.#told !== '';
    this.#told = told;
    if (silent !== undefined) {
      const { path, since, what } = silent;
      const time = durationText(clock.now() - since);
      log.warn(
        { event: 'disk-silent', path },
        `${what}, for ${time}; the disk of ${path} does not answer and is waited for`,
      );
    } else if (still.length > 0) {
      const { since, what } = oneOf(still);
      const end =
        notifier.watchdogMs === undefined ? 'start peersync anew' : 'systemd is left to start peersync anew';
      log.error(
        { event: 'stuck', duties: still.map(({ name }) => name) },
        `stuck: ${what}, for ${durationText(clock.now() - since)}, and nothing keeps it from going on; ${end}`,
      );
    } else if (hadTold) log.info({ event: 'unstuck' }, 'what stood still goes on');
  }
}

/** What stands still, as one. */
function oneOf(still: readonly Omit<Stuck, 'name'>[]): Omit<Stuck, 'name'> {
  return {
    what: still.map(({ what }) => what).join('; '),
    since: Math.min(...still.map(({ since }) => since)),
  };
}

/** A directory that the work depends on, for the disk that it is on. */
export interface Disk {
  readonly path: string;
  /** Whether it is for peersync to write to; where it is not, nothing is ever written. */
  readonly isOwn: boolean;
}

export interface InquiryParts {
  readonly disks: () => readonly Disk[];
  /** Resolves when the disk answered. @default a program asks it */
  readonly ask?: ((disk: Disk) => Promise<void>) | undefined;
  readonly clock: Clock;
  /** A disk that gives no answer for so long is silent, in ms. */
  readonly answersMs: number;
}

/**
 * Finds out whether disks answer.
 *
 * A file system that is frozen, or whose device hangs, still answers to much: what it has in memory is read, and there is
 * nothing to bring to a disk where nothing was changed. So a directory of our own gets a new time, which has to reach the disk.
 */
export class DiskInquiry {
  readonly #parts: InquiryParts;
  readonly #asking = new Map<string, Promise<void>>();

  constructor(parts: InquiryParts) {
    this.#parts = parts;
  }

  /** The first directory whose disk does not answer in time. */
  async silent(): Promise<string | undefined> {
    const { answersMs, clock, disks } = this.#parts;
    const all = disks();
    const silent = new Set(all.map(({ path }) => path));
    const enough = new AbortController();
    const answers = all.map((disk) => this.#ask(disk).then(() => silent.delete(disk.path)));
    await Promise.race([Promise.all(answers), clock.sleep(answersMs, enough.signal)]);
    enough.abort();
    return all.find(({ path }) => silent.has(path))?.path;
  }

  /** One question at a time: there is no need for more that wait. */
  #ask(disk: Disk): Promise<void> {
    const { ask = askByProgram } = this.#parts;
    const asking =
      this.#asking.get(disk.path) ??
      ask(disk)
        .catch(() => {}) // No for an answer is an answer.
        .finally(() => this.#asking.delete(disk.path));
    this.#asking.set(disk.path, asking);
    return asking;
  }
}

/** In a process by itself: the few threads of ours may all wait for one disk, and none could be told from another. */
function askByProgram({ path, isOwn }: Disk): Promise<void> {
  const script = isOwn ? 'touch -m -c -- "$1" && sync -- "$1"' : 'sync -- "$1"';
  return new Promise((resolve) => {
    const child = execFile('sh', ['-c', script, 'sh', path], () => resolve());
    // One that waits for ever keeps nobody from stopping.
    child.unref();
    child.stdout?.destroy();
    child.stderr?.destroy();
  });
}

/** One task at the queue may ask again, with other credentials or for another page. */
const REQUESTS_IN_ONE = 3;
/** Shared objects and tables stream, and may take so many times as long as anything else. */
const STREAMING = 12;
/** Shorter time-outs make no shorter tasks: one that writes a table asks once for each of a thousand rows. In ms. */
const SHORTEST_TOTAL_MS = 5 * 60_000;
/** A commit waits for the one before it, and for a disk that has much to write. In ms. */
const LONGEST_COMMIT_MS = 5 * 60_000;

/** It may have several large batches to read from a disk that is far away; one file or batch is read in seconds. In ms. */
const LONGEST_ORDER_MS = 15 * 60_000;

export type DutifulParts = Pick<Parts, 'queue' | 'commits'> & {
  readonly fileThread: Pick<Parts['fileThread'], 'waiting' | 'answered'>;
} & {
  readonly [part in 'uplink' | 'watcher' | 'mirrors']: Pick<Parts[part], 'duties'>;
};

/** Everything that must not stand still in a daemon. */
export function dutiesOf(
  { queue, uplink, watcher, fileThread, mirrors, commits }: DutifulParts,
  { peer }: Config,
): readonly Duty[] {
  const longestTaskMs = (lane: Lane): number =>
    Math.max(peer.timeouts.total, SHORTEST_TOTAL_MS) * REQUESTS_IN_ONE * (lane === 'mirror' ? STREAMING : 1);
  return [
    ...watcher.duties,
    {
      name: 'file thread',
      moves: () => fileThread.answered,
      neglects: () => (fileThread.waiting > 0 ? 'the thread that reads files gives no answer' : undefined),
      limitMs: LONGEST_ORDER_MS,
    },
    ...uplink.duties,
    ...queue.duties(longestTaskMs),
    ...mirrors.duties,
    {
      name: 'state',
      moves: () => commits.oldest,
      neglects: () => (commits.size > 0 ? 'what is known is not brought to the disk' : undefined),
      limitMs: LONGEST_COMMIT_MS,
    },
  ];
}

/** The directories that the work waits for when their disk does. */
export function disksOf({ state, folders, mirror }: Config): readonly Disk[] {
  const hasMirrors = mirror.shares.length + mirror.tables.length + mirror.citations.length > 0;
  return [
    { path: state.dir, isOwn: true },
    ...folders.map(({ path }) => ({ path, isOwn: false })),
    ...(hasMirrors ? [{ path: mirror.root, isOwn: true }] : []),
  ];
}

/** How often systemd hears how things stand, in ms; only where that changed. */
const STATUS_EVERY_MS = 10_000;

/** What is watched: a daemon, which learns what the watchdog found. */
interface Watched {
  status(): StatusReport;
  duties(): readonly Duty[];
  disks(): readonly Disk[];
  stuck: () => readonly Stuck[];
  silentDisk: () => SilentDisk | undefined;
}

/** Lets systemd know that the daemon lives and how it stands, until the returned function is called. */
export function giveSigns(
  daemon: Watched,
  notifier: Notifier,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): () => void {
  const watchdog = new Watchdog({
    notifier,
    duties: () => daemon.duties(),
    disks: () => daemon.disks(),
    clock,
    log,
  });
  watchdog.start();
  daemon.stuck = () => watchdog.stuck();
  daemon.silentDisk = () => watchdog.silentDisk();
  let told: string | undefined;
  let timer: Timer;
  const tell = (): void => {
    const sentence = statusSentence(daemon.status());
    if (sentence !== told) notifier.status(sentence);
    told = sentence;
    timer = clock.after(STATUS_EVERY_MS, tell, { background: true });
  };
  tell();
  return () => {
    watchdog.stop();
    timer.cancel();
  };
}
