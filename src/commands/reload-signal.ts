import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

/**
 * SIGHUP, which asks a daemon to read its configuration anew.
 *
 * One that comes before `listen` is heard then: it must not end a daemon that is starting. Where the terminal was closed that
 * the process was started in, it means that, and ends the process as it always did: there is nobody left to tell anything.
 */
export class ReloadSignal {
  readonly #hadTerminal = [0, 1, 2].some((fd) => isatty(fd));
  #isAsked = false;
  #reload: () => Promise<void> = async () => {
    this.#isAsked = true;
  };
  readonly #heard = () => {
    if (!this.#hadTerminal || !isTerminalGone()) {
      void this.#reload();
      return;
    }
    this.stop();
    process.kill(process.pid, 'SIGHUP');
  };

  constructor() {
    process.on('SIGHUP', this.#heard);
  }

  /** Calls `reload`, which does not reject, at each signal. */
  listen(reload: () => Promise<void>): void {
    this.#reload = reload;
    if (this.#isAsked) void reload();
  }

  stop(): void {
    process.off('SIGHUP', this.#heard);
  }
}

function isTerminalGone(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return false;
  } catch {
    return true;
  }
}
