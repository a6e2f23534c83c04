import { execFile, spawn } from 'node:child_process';
import type { Config } from '../config/config.js';
import { messageOf } from '../lib/errors.js';
import type { HealthCheck, Stuck } from '../lib/health.js';
import { withConfig } from '../lib/hint.js';
import type { Logger } from '../lib/logger.js';
import { durationText } from '../lib/units.js';
import type { Live } from '../report/live.js';
import { statusSentence } from '../report/status.js';
import type { DiskFailure } from '../report/status-report.js';

/** How long a loop may be busy without progress unless its check says otherwise, in ms. */
const LIMIT_MS = 90_000;
/** Of the time that systemd grants without a sign of life. */
const LIMIT_SHARE = 0.75;
const LOOKS_A_LIMIT = 9;
/**
 * After so many looks without progress the disks are asked: people want to hear of a hung disk
 * before anything is stuck.
 */
const LOOKS_UNTIL_DISKS = 2;
const DISK_ANSWERS_MS = 5_000;

export interface WatchdogDeps {
  /** Asked at each look: a new configuration brings others. */
  readonly health: () => readonly HealthCheck[];
  readonly notifier: Notifier;
  /** Resolves when the disk answered. @default askDisk */
  readonly ask?: (disk: Disk) => Promise<void>;
}

/**
 * Feeds the watchdog of systemd for as long as every loop goes on.
 *
 * - *Well*: no loop is busy without progress. A sign of life leaves three times in the time that
 *   systemd grants.
 * - *Waiting for a disk*: a loop stands still, and the disk of a directory does not answer. The log
 *   says so once, and the signs go on: after a restart the loop would wait, too.
 * - *Stuck*: a loop has stood still for its limit, and all disks answer. The log says so once, and
 *   no sign leaves any more, so that systemd restarts the daemon. Should the loop go on after all,
 *   it is well again.
 *
 * A blocked event loop and a stopped process give no signs by themselves; that time does not count
 * against a loop. A look that fails gives no sign either.
 */
export class Watchdog {
  stuck: readonly Stuck[] = [];
  /** The disk that is waited for. */
  diskFailure: DiskFailure | undefined;
  readonly #limitMs: number;
  readonly #everyMs: number;
  /** The disks that were asked and have not answered. */
  readonly #asked = new Set<string>();
  readonly #stopping = new AbortController();
  /** The time that the process had, in ms: at most two intervals a look. */
  #ranMs = 0;
  #fedAt = Number.NEGATIVE_INFINITY;
  #logged = '';

  constructor(
    private readonly live: Live,
    private readonly deps: WatchdogDeps,
  ) {
    const { watchdogMs = Number.POSITIVE_INFINITY } = deps.notifier;
    this.#limitMs = Math.min(LIMIT_MS, watchdogMs * LIMIT_SHARE);
    this.#everyMs = this.#limitMs / LOOKS_A_LIMIT;
  }

  /** Looks until it is stopped; does not reject. */
  async start(): Promise<void> {
    const { clock, log } = this.live;
    const { signal } = this.#stopping;
    const failed = (error: unknown) =>
      log.error({ err: error }, `The health of the loops is unknown: ${messageOf(error)}`);
    let lookedAt = clock.now();
    await this.#feed().catch(failed);
    while (!signal.aborted) {
      await clock.sleep(this.#everyMs, signal);
      const now = clock.now();
      this.#ranMs += Math.min(now - lookedAt, 2 * this.#everyMs);
      lookedAt = now;
      if (!signal.aborted) await this.#look().catch(failed);
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #look(): Promise<void> {
    const { clock } = this.live;
    const still: Stuck[] = [];
    const overdue: Stuck[] = [];
    for (const check of this.deps.health()) {
      const ms = check.look(this.#ranMs);
      const stuck = { name: check.name, what: check.what, since: clock.now() - ms };
      if (ms >= LOOKS_UNTIL_DISKS * this.#everyMs) still.push(stuck);
      if (ms >= (check.options.limitMs ?? this.#limitMs)) overdue.push(stuck);
    }
    const disk = still.length === 0 ? undefined : await this.#findSilentDisk();
    if (this.#stopping.signal.aborted) return;
    this.stuck = disk === undefined ? overdue : [];
    this.diskFailure = disk && diskFailure(disk, still);
    this.#say();
    if (this.stuck.length === 0) await this.#feed();
  }

  async #feed(): Promise<void> {
    const { notifier } = this.deps;
    const sentence = () => withConfig(statusSentence(this.live.status()), this.live.configFile);
    await notifier.status(sentence);
    const now = this.live.clock.now();
    if (now - this.#fedAt < (notifier.watchdogMs ?? Number.POSITIVE_INFINITY) / 3) return;
    this.#fedAt = now;
    await notifier.watchdog();
  }

  #say(): void {
    const { clock, log } = this.live;
    const loops = this.stuck.map(({ name }) => name);
    const before = this.#logged;
    this.#logged = this.diskFailure?.path ?? loops.join();
    if (this.#logged === before) return;
    if (this.diskFailure !== undefined) {
      const { message, path, since } = this.diskFailure;
      const time = durationText(clock.now() - since);
      log.warn({ event: 'disk-silent', path }, `${message} It is waited for, for ${time} so far.`);
    } else if (loops.length > 0) {
      const { since, what } = asOne(this.stuck);
      const time = durationText(clock.now() - since);
      const isWatched = this.deps.notifier.watchdogMs !== undefined;
      const end = isWatched ? 'systemd is left to restart peersync' : 'restart peersync';
      log.error(
        { event: 'stuck', loops },
        `stuck: ${what}, for ${time}, and nothing keeps it from going on; ${end}`,
      );
    } else log.info({ event: 'unstuck' }, 'what stood still goes on');
  }

  /**
   * The first directory whose disk does not answer in time. A disk that was asked is not asked
   * again before it answers.
   */
  async #findSilentDisk(): Promise<Disk | undefined> {
    const { ask = askDisk } = this.deps;
    const { clock, current } = this.live;
    const disks = disksOf(current.config);
    for (const disk of disks) {
      if (this.#asked.has(disk.path)) continue;
      this.#asked.add(disk.path);
      const answered = () => void this.#asked.delete(disk.path);
      void ask(disk).then(answered, answered); // An error is an answer.
    }
    await clock.sleep(Math.min(DISK_ANSWERS_MS, this.#everyMs), this.#stopping.signal);
    return disks.find(({ path }) => this.#asked.has(path));
  }
}

function diskFailure({ path }: Disk, still: readonly Stuck[]): DiskFailure {
  const { since, what } = asOne(still);
  return {
    code: 'DISK_SILENT',
    path,
    since,
    message: `The disk of ${path} does not answer: ${what}.`,
    hint: 'Nothing is lost, and the work goes on by itself when it answers. See whether it is well: a server that is away, a device with errors (`dmesg`), a file system that was frozen.',
  };
}

/** What stands still, as one. */
function asOne(still: readonly Stuck[]): Omit<Stuck, 'name'> {
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

export function disksOf({ state, folders, mirror }: Config): readonly Disk[] {
  const hasMirrors = mirror.shares.length + mirror.tables.length + mirror.citations.length > 0;
  return [
    { path: state.dir, isOwn: true },
    ...folders.map(({ path }) => ({ path, isOwn: false })),
    ...(hasMirrors ? [{ path: mirror.root, isOwn: true }] : []),
  ];
}

/**
 * Resolves when the disk of a directory answers.
 *
 * A frozen file system still answers from memory, and has nothing to sync where nothing was
 * changed. So a directory of our own gets a new time, which has to reach the disk. A process of its
 * own asks: the threads of this one may all wait for another disk.
 */
export function askDisk({ path, isOwn }: Disk): Promise<void> {
  const script = isOwn ? 'touch -m -c -- "$1" && sync -- "$1"' : 'sync -- "$1"';
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', script, 'sh', path], { stdio: 'ignore' });
    child.on('exit', () => resolve()).on('error', () => resolve());
    // One that waits for ever keeps nobody from stopping.
    child.unref();
  });
}

/**
 * How long one call of `systemd-notify` may take, in ms: it waits until systemd has read it, for 5
 * s at most.
 */
const LONGEST_CALL_MS = 8_000;

export interface NotifierDeps {
  readonly log: Logger;
  /**
   * Brings assignments such as `READY=1` to systemd. @default the program `systemd-notify`: Node
   * has no such sockets
   */
  readonly send?: (assignments: readonly string[], env: NodeJS.ProcessEnv) => Promise<void>;
}

/**
 * Tells systemd how the daemon is; does nothing where systemd did not ask (`NOTIFY_SOCKET`).
 *
 * Calls go out one at a time, in order; each resolves when it was made, and none rejects. The first
 * of several calls that fail is logged.
 */
export class Notifier {
  /**
   * Without a sign of life for so long systemd ends the process; undefined where it does not watch.
   */
  readonly watchdogMs: number | undefined;
  #sentence = '';
  #last: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(
    private readonly env: NodeJS.ProcessEnv,
    private readonly deps: NotifierDeps,
  ) {
    const { NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID = String(process.pid) } = env;
    const ms = Number(WATCHDOG_USEC) / 1_000;
    if (NOTIFY_SOCKET && ms > 0 && WATCHDOG_PID === String(process.pid)) this.watchdogMs = ms;
  }

  ready(): Promise<void> {
    return this.#say('READY=1');
  }

  /** A new configuration is being read; `ready` says when that is over. */
  reloading(): Promise<void> {
    return this.#say('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`);
  }

  stopping(): Promise<void> {
    return this.#say('STOPPING=1');
  }

  /**
   * One sentence for `systemctl status`, where it is another one; asked for only where systemd
   * reads it.
   */
  async status(sentence: () => string): Promise<void> {
    if (!this.env.NOTIFY_SOCKET) return;
    const text = sentence().replace(/[\p{Cc}\u2028\u2029]+/gu, ' ');
    if (text === this.#sentence) return;
    this.#sentence = text;
    await this.#say(`STATUS=${text}`);
  }

  /** A sign of life. */
  watchdog(): Promise<void> {
    return this.#say('WATCHDOG=1');
  }

  #say(...assignments: readonly string[]): Promise<void> {
    if (this.env.NOTIFY_SOCKET) this.#last = this.#last.then(() => this.#send(assignments));
    return this.#last;
  }

  async #send(assignments: readonly string[]): Promise<void> {
    const { log, send = sendByProgram } = this.deps;
    try {
      await send(assignments, this.env);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed)
        log.warn(
          { event: 'notify', error: messageOf(error) },
          `systemd could not be told how peersync is: ${messageOf(error)}; see that the program systemd-notify is installed, and that the unit has NotifyAccess=all`,
        );
      this.#hasFailed = true;
    }
  }
}

function sendByProgram(assignments: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...env }, timeout: LONGEST_CALL_MS, killSignal: 'SIGKILL' } as const;
    execFile('systemd-notify', [...assignments], options, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else if (error.killed) reject(new Error(`no answer within ${LONGEST_CALL_MS / 1_000} s`));
      else reject(new Error(stderr.trim() || error.message));
    });
  });
}
