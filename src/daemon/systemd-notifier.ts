import { execFile } from 'node:child_process';
import { durationText } from '../lib/duration-text.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/** How long one call of the program may take, in ms: it waits until systemd has read the words, for 5 s at most. */
const LONGEST_CALL_MS = 8_000;

export type Environment = Readonly<Record<string, string | undefined>>;

export interface NotifyOptions {
  readonly log: Logger;
  /** Brings assignments such as `READY=1` to systemd. @default the program `systemd-notify` */
  readonly send?: (assignments: readonly string[], env: Environment) => Promise<void>;
  /** The monotonic clock of the system, in µs. @default that of the kernel, which systemd reads too */
  readonly monotonicUsec?: () => bigint;
}

/**
 * Tells systemd how the daemon is; does nothing where systemd did not ask (`NOTIFY_SOCKET`).
 *
 * Words leave in the order they came, one call at a time, for what systemd believes is what it heard last. Of sentences that
 * wait only the newest is sent, and of several signs of life one. A call that fails is told once and never ends anything.
 */
export interface Notifier {
  ready(): void;
  /** A new configuration is being read; `ready` says when that is over. */
  reloading(): void;
  stopping(): void;
  /** One sentence for `systemctl status`. */
  status(sentence: string): void;
  /** A sign of life. */
  watchdog(): void;
  /** Without a sign of life for so long systemd kills us; undefined where it does not watch. */
  readonly watchdogMs: number | undefined;
  /** Whether the last call failed, so that a sign of life may not have reached systemd. */
  readonly isUnheard: boolean;
  /** Resolves when everything that was to be said is said. */
  idle(): Promise<void>;
}

export function createNotifier(env: Environment, options: NotifyOptions): Notifier {
  if (!env.NOTIFY_SOCKET) return MUTE;
  return new SystemdNotifier(env, options);
}

const MUTE: Notifier = {
  ready() {},
  reloading() {},
  stopping() {},
  status() {},
  watchdog() {},
  watchdogMs: undefined,
  isUnheard: false,
  idle: () => Promise.resolve(),
};

class SystemdNotifier implements Notifier {
  readonly watchdogMs: number | undefined;
  readonly #env: Environment;
  readonly #log: Logger;
  readonly #send: NonNullable<NotifyOptions['send']>;
  readonly #monotonicUsec: () => bigint;
  /** What waits to be said, by kind; in the order it came. */
  readonly #waiting = new Map<string, readonly string[]>();
  #order = 0;
  #speaking: Promise<void> | undefined;
  #hasFailed = false;

  constructor(env: Environment, { log, send = sendByProgram, monotonicUsec = kernelUsec }: NotifyOptions) {
    this.#env = env;
    this.#log = log;
    this.#send = send;
    this.#monotonicUsec = monotonicUsec;
    this.watchdogMs = watchdogMsOf(env);
  }

  ready(): void {
    this.#say(this.#next(), ['READY=1']);
  }

  reloading(): void {
    this.#say(this.#next(), ['RELOADING=1', `MONOTONIC_USEC=${this.#monotonicUsec()}`]);
  }

  stopping(): void {
    this.#say(this.#next(), ['STOPPING=1']);
  }

  status(sentence: string): void {
    this.#say('status', [`STATUS=${sentence.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')}`]);
  }

  watchdog(): void {
    this.#say('watchdog', ['WATCHDOG=1']);
  }

  get isUnheard(): boolean {
    return this.#hasFailed;
  }

  async idle(): Promise<void> {
    await this.#speaking;
  }

  #next(): string {
    this.#order += 1;
    return String(this.#order);
  }

  #say(kind: string, assignments: readonly string[]): void {
    this.#waiting.set(`${kind}`, assignments);
    this.#speaking ??= this.#speak();
  }

  async #speak(): Promise<void> {
    for (;;) {
      const [next] = this.#waiting;
      if (next === undefined) break;
      const [kind, assignments] = next;
      this.#waiting.delete(kind);
      try {
        await this.#send(assignments, this.#env);
        this.#hasFailed = false;
      } catch (error) {
        this.#failed(error);
      }
    }
    this.#speaking = undefined;
  }

  #failed(error: unknown): void {
    if (!this.#hasFailed)
      this.#log.warn(
        { event: 'notify', error: messageOf(error) },
        `systemd could not be told how peersync is: ${messageOf(error)}; see that the program systemd-notify is installed, and that the unit has NotifyAccess=all`,
      );
    this.#hasFailed = true;
  }
}

/** The time within which systemd wants a sign of life from this very process. */
function watchdogMsOf({ WATCHDOG_USEC, WATCHDOG_PID }: Environment): number | undefined {
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(process.pid)) return undefined;
  const usec = Number(WATCHDOG_USEC);
  return Number.isFinite(usec) && usec > 0 ? usec / 1_000 : undefined;
}

function kernelUsec(): bigint {
  return process.hrtime.bigint() / 1_000n;
}

/** Node has no datagram sockets of the kind that systemd listens on. */
function sendByProgram(assignments: readonly string[], env: Environment): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...env }, timeout: LONGEST_CALL_MS, killSignal: 'SIGKILL' } as const;
    execFile('systemd-notify', [...assignments], options, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else if (error.killed) reject(new Error(`no answer within ${durationText(LONGEST_CALL_MS)}`));
      else reject(new Error(stderr.trim() || error.message));
    });
  });
}
