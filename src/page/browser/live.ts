import type { Sample } from '../../report/statistics.js';
import type { RecentEvent, StatusReport } from '../../report/status.js';
import { get } from './ask.js';
import type { PageClock } from './clock.js';
import type { Model } from './model.js';

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 20_000;
/** A status comes every 15 s; who says nothing for so long is not there any more. */
const SILENCE_MS = 40_000;

/**
 * Follows the daemon.
 *
 * - *Connecting*: an EventSource was made. Its first event makes it *open*; an error or silence makes it *lost*.
 * - *Open*: events come. An error, or silence, makes it *lost*.
 * - *Lost*: waits, each time twice as long, then connects; at once when the network or the window is back.
 */
export class Live {
  readonly #model: Model;
  readonly #clock: PageClock;
  #source: EventSource | undefined;
  #state: 'connecting' | 'open' | 'lost' = 'lost';
  #failures = 0;
  #cancelRetry: () => void = () => {};
  #cancelSilence: () => void = () => {};

  constructor(model: Model, clock: PageClock) {
    this.#model = model;
    this.#clock = clock;
    addEventListener('online', () => this.hurry());
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.hurry();
    });
  }

  connect(): void {
    this.#state = 'connecting';
    const source = new EventSource('/api/live');
    this.#source = source;
    const on = (kind: string, take: (data: unknown) => void) => {
      source.addEventListener(kind, (event) => {
        if (source !== this.#source) return;
        this.#heard();
        take(JSON.parse((event as MessageEvent<string>).data));
      });
    };
    on('status', (data) => this.#model.onStatus(data as StatusReport));
    on('samples', (data) => this.#model.onSamples(data as Sample[]));
    on('recents', (data) => this.#model.onRecents(data as RecentEvent[]));
    // The browser's own retries neither back off nor end.
    source.addEventListener('error', () => this.#lose(source));
    this.#listen(source);
  }

  /** Ends the wait for the next try. */
  hurry(): void {
    if (this.#state !== 'lost') return;
    this.#cancelRetry();
    this.connect();
  }

  #heard(): void {
    if (this.#state !== 'open') {
      this.#state = 'open';
      this.#failures = 0;
      this.#model.onOpen();
    }
    if (this.#source !== undefined) this.#listen(this.#source);
  }

  #listen(source: EventSource): void {
    this.#cancelSilence();
    this.#cancelSilence = this.#clock.after(SILENCE_MS, () => this.#lose(source));
  }

  #lose(source: EventSource): void {
    if (source !== this.#source) return;
    source.close();
    this.#source = undefined;
    this.#cancelSilence();
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures) * (0.75 + Math.random() / 2);
    this.#failures += 1;
    this.#state = 'lost';
    this.#cancelRetry = this.#clock.after(wait, () => this.connect());
    void this.#findOut(this.#clock.now() + wait);
  }

  /**
   * An EventSource does not say why it failed. A question does: a session that is over leads to the sign-in, and a daemon
   * that answers, but has too many followers already, is asked with each try.
   */
  async #findOut(nextAt: number): Promise<void> {
    const status = await get<StatusReport>('/api/status').catch(() => undefined);
    if (this.#state === 'open') return;
    if (status === undefined) this.#model.onLost(nextAt);
    else this.#model.onStatus(status);
  }
}
