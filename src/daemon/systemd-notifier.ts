import { execFile } from 'node:child_process';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/** How long one call of `systemd-notify` may take, in ms: it waits until systemd has read it, for 5 s at most. */
const LONGEST_CALL_MS = 8_000;

export type Environment = Readonly<Record<string, string | undefined>>;

export interface NotifierDeps {
  readonly log: Logger;
  /** Brings assignments such as `READY=1` to systemd. @default the program `systemd-notify`: Node has no such sockets */
  readonly send?: (assignments: readonly string[], env: Environment) => Promise<void>;
}

/**
 * Tells systemd how the daemon is; does nothing where systemd did not ask (`NOTIFY_SOCKET`).
 *
 * Calls go out one at a time, in order. Of sentences that wait only the newest is sent, and of several signs of life one. The
 * first of several calls that fail is logged.
 */
export class Notifier {
  /** Without a sign of life for so long systemd ends the process; undefined where it does not watch. */
  readonly watchdogMs: number | undefined;
  readonly #env: Environment;
  readonly #deps: NotifierDeps;
  /** What waits to be sent, by kind. */
  readonly #waiting = new Map<string, readonly string[]>();
  #calls = 0;
  #sentence = '';
  #sending: Promise<void> | undefined;
  #hasFailed = false;

  constructor(env: Environment, deps: NotifierDeps) {
    this.#env = env;
    this.#deps = deps;
    const { NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID = String(process.pid) } = env;
    const ms = Number(WATCHDOG_USEC) / 1_000;
    if (NOTIFY_SOCKET && ms > 0 && WATCHDOG_PID === String(process.pid)) this.watchdogMs = ms;
  }

  ready(): void {
    this.#say('READY=1');
  }

  /** A new configuration is being read; `ready` says when that is over. */
  reloading(): void {
    this.#say('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`);
  }

  stopping(): void {
    this.#say('STOPPING=1');
  }

  /** One sentence for `systemctl status`, where it is another one; asked for only where systemd reads it. */
  status(sentence: () => string): void {
    if (!this.#env.NOTIFY_SOCKET) return;
    const text = sentence().replace(/[\p{Cc}\u2028\u2029]+/gu, ' ');
    if (text === this.#sentence) return;
    this.#sentence = text;
    this.#say(`STATUS=${text}`);
  }

  /** A sign of life. */
  watchdog(): void {
    this.#say('WATCHDOG=1');
  }

  /** Resolves when everything was sent. */
  async idle(): Promise<void> {
    await this.#sending;
  }

  #say(...assignments: readonly string[]): void {
    if (!this.#env.NOTIFY_SOCKET) return;
    const [kind = ''] = /^(STATUS|WATCHDOG)/.exec(assignments.join()) ?? [String(++this.#calls)];
    this.#waiting.set(kind, assignments);
    this.#sending ??= this.#send();
  }

  async #send(): Promise<void> {
    const { log, send = sendByProgram } = this.#deps;
    for (const [kind, assignments] of this.#waiting) {
      this.#waiting.delete(kind);
      try {
        await send(assignments, this.#env);
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
    this.#sending = undefined;
  }
}

function sendByProgram(assignments: readonly string[], env: Environment): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...env }, timeout: LONGEST_CALL_MS, killSignal: 'SIGKILL' } as const;
    execFile('systemd-notify', [...assignments], options, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else if (error.killed) reject(new Error(`no answer within ${LONGEST_CALL_MS / 1_000} s`));
      else reject(new Error(stderr.trim() || error.message));
    });
  });
}
