import { execFile } from 'node:child_process';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/**
 * Longest duration of one call of `systemd-notify`, in ms. The program waits up to 5 s until
 * systemd has read the message.
 */
const MAX_CALL_MS = 8_000;

export interface NotifierDeps {
  readonly log: Logger;
  /**
   * Sends assignments such as `READY=1` to systemd.
   * @default the program `systemd-notify`, because Node does not support such sockets
   */
  readonly send?: (assignments: readonly string[], env: NodeJS.ProcessEnv) => Promise<void>;
}

/**
 * Reports the state of the daemon to systemd. Does nothing if systemd did not ask for it
 * (`NOTIFY_SOCKET`).
 *
 * Calls are sent one at a time, in order. Each resolves when it was sent, and none rejects. Of
 * several failed calls in a row, the first is logged.
 */
export class Notifier {
  /** systemd restarts a daemon that is silent for this long. Undefined if it watches none. */
  readonly systemdWatchdogMs: number | undefined;
  #sentence = '';
  #last: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(
    private readonly env: NodeJS.ProcessEnv,
    private readonly deps: NotifierDeps,
  ) {
    const { NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID = String(process.pid) } = env;
    const ms = Number(WATCHDOG_USEC) / 1_000;
    if (NOTIFY_SOCKET && ms > 0 && WATCHDOG_PID === String(process.pid))
      this.systemdWatchdogMs = ms;
  }

  ready(): Promise<void> {
    return this.#notify('READY=1');
  }

  /** Reports that a reload begins. `ready` ends it. */
  reloading(): Promise<void> {
    return this.#notify('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`);
  }

  stopping(): Promise<void> {
    return this.#notify('STOPPING=1');
  }

  /**
   * Sends one sentence for `systemctl status` if it changed. `sentence` is called only if systemd
   * reads it.
   */
  async status(sentence: () => string): Promise<void> {
    if (!this.env.NOTIFY_SOCKET) return;
    const text = sentence().replace(/[\p{Cc}\u2028\u2029]+/gu, ' ');
    if (text === this.#sentence) return;
    this.#sentence = text;
    await this.#notify(`STATUS=${text}`);
  }

  /** Sends a sign of life. */
  watchdog(): Promise<void> {
    return this.#notify('WATCHDOG=1');
  }

  #notify(...assignments: readonly string[]): Promise<void> {
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
          `the status could not be sent to systemd: ${messageOf(error)}; check that the program systemd-notify is installed and that the unit has NotifyAccess=all`,
        );
      this.#hasFailed = true;
    }
  }
}

function sendByProgram(assignments: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...env }, timeout: MAX_CALL_MS, killSignal: 'SIGKILL' } as const;
    execFile('systemd-notify', [...assignments], options, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else if (error.killed) reject(new Error(`no answer within ${MAX_CALL_MS / 1_000} s`));
      else reject(new Error(stderr.trim() || error.message));
    });
  });
}
