import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Place } from '../state/entries.js';
import { forEachLimited } from './limited.js';

const AT_ONCE = 8;

/** Paths that are to be looked at because somebody asked: however many there are, a few at a time. */
export class Looks {
  readonly #look: (place: Place) => Promise<void>;
  readonly #log: Logger;
  #waiting: Place[] = [];
  #asked = 0;
  #ended = 0;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(look: (place: Place) => Promise<void>, log: Logger) {
    this.#look = look;
    this.#log = log;
  }

  /** How many wait or are under way. */
  get size(): number {
    return this.#asked - this.#ended;
  }

  /** How many were looked at. */
  get ended(): number {
    return this.#ended;
  }

  add(place: Place): void {
    this.#asked += 1;
    this.#waiting.push(place);
    this.#running ??= this.#run();
  }

  /** Forgets what waits; resolves when no look is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const places = this.#waiting;
      this.#waiting = [];
      await forEachLimited(places, AT_ONCE, async (place) => {
        await this.#lookAt(place);
        this.#ended += 1;
      });
    }
    this.#running = undefined;
  }

  async #lookAt(place: Place): Promise<void> {
    if (this.#stopped) return;
    try {
      await this.#look(place);
    } catch (error) {
      const { folder, path } = place;
      this.#log.error(
        { folder, path, err: error },
        `${folder}/${path} could not be looked at: ${messageOf(error)}`,
      );
    }
  }
}
