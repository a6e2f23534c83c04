import type { ReadStream } from 'node:tty';

/** What is done for a key. */
export interface KeyWork {
  q(): void;
  p(): void;
  /** Ctrl-L. */
  redraw(): void;
  /** Ctrl-Z: before the process stops, and when it goes on. */
  suspend(): void;
  resume(): void;
}

const CTRL_C = '\x03';
const CTRL_D = '\x04';
const CTRL_L = '\x0c';
const CTRL_Z = '\x1a';

/** The keys of a terminal, each as it is pressed; where the input is none there are no keys. Closed, it is as before. */
export class Keys {
  readonly #input: ReadStream;
  readonly #work: KeyWork;
  #isOpen = false;

  constructor(input: ReadStream, work: KeyWork) {
    this.#input = input;
    this.#work = work;
  }

  open(): void {
    if (!this.#input.isTTY || this.#isOpen) return;
    this.#isOpen = true;
    this.#input.setRawMode(true);
    this.#input.setEncoding('utf8').on('data', this.#pressed);
    this.#input.resume();
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#input.off('data', this.#pressed);
    this.#input.setRawMode(false);
    this.#input.pause();
    // A terminal that is only paused keeps the process alive.
    this.#input.unref();
  }

  readonly #pressed = (text: string): void => {
    // An arrow key or something pasted is none of ours.
    if (text.length > 1) return;
    switch (text) {
      case 'q':
      case 'Q':
      case CTRL_C:
      case CTRL_D:
        this.#work.q();
        return;
      case 'p':
      case 'P':
        this.#work.p();
        return;
      case CTRL_L:
        this.#work.redraw();
        return;
      case CTRL_Z:
        this.#suspend();
        return;
      default:
    }
  };

  #suspend(): void {
    this.#input.setRawMode(false);
    this.#work.suspend();
    process.once('SIGCONT', () => {
      if (!this.#isOpen) return;
      this.#input.setRawMode(true);
      this.#work.resume();
    });
    process.kill(process.pid, 'SIGTSTP');
  }
}
