import { spawn } from 'node:child_process';
import type { Config } from '../config/config.js';
import { messageOf } from '../lib/errors.js';
import type { HealthCheck, Stuck } from '../lib/health.js';
import { withConfig } from '../lib/hint.js';
import { durationText } from '../lib/units.js';
import type { Live } from '../report/live.js';
import { statusSentence } from '../report/status.js';
import type { DiskFailure } from '../report/status-report.js';
import type { Notifier } from './notifier.js';

/** Default time that a loop may be busy without progress, in ms. */
const LIMIT_MS = 90_000;
/** Maximum of that limit, as a share of the time that systemd waits for a sign of life. */
const LIMIT_SHARE = 0.75;
/** Number of checks within the limit. */
const CHECKS_PER_LIMIT = 9;
/**
 * Number of checks without progress after which the disks are probed, so that a hung disk is
 * reported before a loop counts as stuck.
 */
const CHECKS_UNTIL_PROBE = 2;
const DISK_TIMEOUT_MS = 5_000;

export interface WatchdogDeps {
  /** Returns the current health checks, which a reload may replace. */
  readonly health: () => readonly HealthCheck[];
  readonly notifier: Notifier;
  /**
   * Resolves when the disk responds.
   * @default probeDisk
   */
  readonly probe?: (disk: Disk) => Promise<void>;
}

/**
 * Sends signs of life to systemd as long as every loop makes progress.
 *
 * - *Healthy*, the initial mode: no loop is busy without progress. Three signs of life are sent
 *   within the time that systemd waits for one.
 * - *Waiting for a disk*, entered when a loop makes no progress and the disk of a directory does
 *   not respond. It is logged once. Signs of life continue, because a restarted daemon would wait
 *   for the disk as well.
 * - *Stuck*, entered when a loop made no progress for its limit while all disks respond. It is
 *   logged once. No signs of life are sent, so that systemd restarts the daemon.
 *
 * Each check enters the mode that its result calls for, from any other mode.
 *
 * A blocked event loop or a stopped process sends no signs of life. That time does not count
 * against a loop. No sign is sent if a check fails.
 */
export class Watchdog {
  /** Empty unless the mode is *stuck*. */
  stuck: readonly Stuck[] = [];
  /** Set only while *waiting for a disk*. */
  diskFailure: DiskFailure | undefined;
  readonly #limitMs: number;
  readonly #intervalMs: number;
  /** Paths of the disks that were probed and have not responded. */
  readonly #unanswered = new Set<string>();
  readonly #stopping = new AbortController();
  /** Time that the process was able to run, in ms: at most two intervals per check. */
  #ranMs = 0;
  #signAt = Number.NEGATIVE_INFINITY;
  /** The disk or the loops that were logged last; empty while healthy. */
  #logged = '';

  constructor(
    private readonly live: Live,
    private readonly deps: WatchdogDeps,
  ) {
    const { systemdWatchdogMs: watchdogMs = Number.POSITIVE_INFINITY } = deps.notifier;
    this.#limitMs = Math.min(LIMIT_MS, watchdogMs * LIMIT_SHARE);
    this.#intervalMs = this.#limitMs / CHECKS_PER_LIMIT;
  }

  /** Checks the loops until `stop` is called. Does not reject. */
  async start(): Promise<void> {
    const { clock, log } = this.live;
    const { signal } = this.#stopping;
    const failed = (error: unknown) =>
      log.error({ err: error }, `The health of the loops is unknown: ${messageOf(error)}`);
    let checkedAt = clock.now();
    await this.#report().catch(failed);
    while (!signal.aborted) {
      await clock.sleep(this.#intervalMs, signal);
      const now = clock.now();
      this.#ranMs += Math.min(now - checkedAt, 2 * this.#intervalMs);
      checkedAt = now;
      if (!signal.aborted) await this.#check().catch(failed);
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #check(): Promise<void> {
    const { clock } = this.live;
    const idle: Stuck[] = [];
    const overdue: Stuck[] = [];
    for (const check of this.deps.health()) {
      const ms = check.look(this.#ranMs);
      const stuck = { name: check.name, what: check.what, since: clock.now() - ms };
      if (ms >= CHECKS_UNTIL_PROBE * this.#intervalMs) idle.push(stuck);
      if (ms >= (check.options.limitMs ?? this.#limitMs)) overdue.push(stuck);
    }
    const disk = idle.length === 0 ? undefined : await this.#findSilentDisk();
    if (this.#stopping.signal.aborted) return;
    this.stuck = disk === undefined ? overdue : [];
    this.diskFailure = disk && diskFailure(disk, idle);
    this.#logChange();
    if (this.stuck.length === 0) await this.#report();
  }

  /** Sends the status, and a sign of life if it is time for one. */
  async #report(): Promise<void> {
    const { notifier } = this.deps;
    const sentence = () => withConfig(statusSentence(this.live.status()), this.live.configFile);
    await notifier.status(sentence);
    const now = this.live.clock.now();
    if (now - this.#signAt < (notifier.systemdWatchdogMs ?? Number.POSITIVE_INFINITY) / 3) return;
    this.#signAt = now;
    await notifier.watchdog();
  }

  #logChange(): void {
    const { clock, log } = this.live;
    const loops = this.stuck.map(({ name }) => name);
    const before = this.#logged;
    this.#logged = this.diskFailure?.path ?? loops.join();
    if (this.#logged === before) return;
    if (this.diskFailure !== undefined) {
      const { message, path, since } = this.diskFailure;
      const time = durationText(clock.now() - since);
      log.warn({ event: 'disk-silent', path }, `${message} Waiting for it, for ${time} so far.`);
    } else if (loops.length > 0) {
      const { since, what } = combined(this.stuck);
      const time = durationText(clock.now() - since);
      const isWatched = this.deps.notifier.systemdWatchdogMs !== undefined;
      const end = isWatched ? 'systemd restarts peersync' : 'restart peersync';
      log.error(
        { event: 'stuck', loops },
        `stuck: ${what}, for ${time}, although all disks answer; ${end}`,
      );
    } else log.info({ event: 'unstuck' }, 'all loops make progress again');
  }

  /**
   * Probes the disks, and returns the first that does not respond in time. A disk is not probed
   * again before it responds.
   */
  async #findSilentDisk(): Promise<Disk | undefined> {
    const { probe = probeDisk } = this.deps;
    const { clock, current } = this.live;
    const disks = disksOf(current.config);
    for (const disk of disks) {
      if (this.#unanswered.has(disk.path)) continue;
      this.#unanswered.add(disk.path);
      const responded = () => void this.#unanswered.delete(disk.path);
      void probe(disk).then(responded, responded); // An error is a response.
    }
    await clock.sleep(Math.min(DISK_TIMEOUT_MS, this.#intervalMs), this.#stopping.signal);
    return disks.find(({ path }) => this.#unanswered.has(path));
  }
}

function diskFailure({ path }: Disk, idle: readonly Stuck[]): DiskFailure {
  const { since, what } = combined(idle);
  return {
    code: 'DISK_SILENT',
    path,
    since,
    message: `The disk of ${path} does not answer: ${what}.`,
    hint: 'Nothing is lost, and the work continues by itself when the disk answers. Check it: the server may be away, the device may have errors (`dmesg`), or the file system may be frozen.',
  };
}

/** Combines several stuck loops into one. */
function combined(loops: readonly Stuck[]): Omit<Stuck, 'name'> {
  return {
    what: loops.map(({ what }) => what).join('; '),
    since: Math.min(...loops.map(({ since }) => since)),
  };
}

/** A directory that the work depends on. It stands for the disk that it is on. */
export interface Disk {
  readonly path: string;
  /** Whether the directory belongs to peersync. Nothing is written into any other. */
  readonly isOwn: boolean;
}

export function disksOf({ state, folders, mirror }: Config): readonly Disk[] {
  const hasMirrors = mirror.shares.length + mirror.tables.length + mirror.citations.length > 0;
  return [
    { path: state.dir, isOwn: true },
    ...folders.map(({ path }) => ({ path, isOwn: false })),
    ...(hasMirrors ? [{ path: mirror.root, isOwn: true }] : []),
  ];
}

/**
 * Resolves when the disk of a directory responds.
 *
 * A frozen file system still responds from memory, and has nothing to sync unless something was
 * changed. A directory of our own therefore gets a new time first, which must reach the disk. The
 * probe is a process of its own, because all threads of this one may wait for another disk.
 */
export function probeDisk({ path, isOwn }: Disk): Promise<void> {
  const script = isOwn ? 'touch -m -c -- "$1" && sync -- "$1"' : 'sync -- "$1"';
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', script, 'sh', path], { stdio: 'ignore' });
    child.on('exit', () => resolve()).on('error', () => resolve());
    // A probe that never ends does not delay the exit of the daemon.
    child.unref();
  });
}
