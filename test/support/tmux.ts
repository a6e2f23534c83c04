import { execFileSync, spawnSync } from 'node:child_process';
import { afterwards } from './afterwards.js';
import { peersyncInPath } from './system-tool.js';
import { until } from './wait.js';

let count = 0;

/** Whether there is a tmux to test in. */
export const hasTmux = spawnSync('tmux', ['-V']).status === 0;

/**
 * A real terminal, of a size that can be changed, with a shell in it that is in a directory and
 * knows `peersync`. Nothing of the user's own tmux is touched.
 */
export class Tmux {
  readonly #socket: string;
  readonly #env = { ...process.env, ...peersyncInPath() };

  constructor(columns: number, rows: number, cwd: string) {
    count += 1;
    this.#socket = `peersync-test-${process.pid}-${count}`;
    const at = ['-c', cwd, '-x', String(columns), '-y', String(rows)];
    this.#tmux('-f', '/dev/null', 'new-session', '-d', ...at, "env PS1='$ ' bash --norc");
    afterwards('test', () => {
      this.#tmux('kill-server');
    });
  }

  /** Types a line. */
  enter(line: string): void {
    this.#tmux('send-keys', '-l', line);
    this.press('Enter');
  }

  /** Presses a key by the name that tmux has for it: `q`, `C-c`. */
  press(key: string): void {
    this.#tmux('send-keys', key);
  }

  resize(columns: number, rows: number): void {
    this.#tmux('resize-window', '-x', String(columns), '-y', String(rows));
  }

  /** The lines of the screen, without blank ones at its end. */
  get screen(): string[] {
    return lines(this.#tmux('capture-pane', '-p'));
  }

  /** The same with what has left the screen at the top. */
  get everything(): string[] {
    return lines(this.#tmux('capture-pane', '-p', '-S', '-'));
  }

  get cursorIsShown(): boolean {
    return this.#tmux('display-message', '-p', '#{cursor_flag}').trim() === '1';
  }

  get isAlternate(): boolean {
    return this.#tmux('display-message', '-p', '#{alternate_on}').trim() === '1';
  }

  /** Waits until the screen shows something. */
  async shows(what: RegExp): Promise<void> {
    try {
      await until(() => what.test(this.screen.join('\n')), `the terminal shows ${what}`);
    } catch (error) {
      throw new Error(`${error}:\n${this.everything.join('\n')}`);
    }
  }

  #tmux(...args: readonly string[]): string {
    return execFileSync('tmux', ['-L', this.#socket, ...args], {
      encoding: 'utf8',
      env: this.#env,
    });
  }
}

function lines(text: string): string[] {
  return text.replace(/\n+$/, '').split('\n');
}
