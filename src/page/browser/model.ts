import type { RecentEvent } from '../../report/live.js';
import type { Sample } from '../../report/statistics.js';
import type { StatusReport } from '../../report/status-report.js';
import type { Entry } from '../../state/entry.js';
import type { ApiError } from '../api.js';
import { lostWorld, type World, waitingOf, withSamples, worldOf } from './words.js';

/** Questions are answered in milliseconds; who does not in this time, in ms, is stuck. */
const PATIENCE_MS = 8_000;

const NO_ANSWER = {
  code: 'NO_ANSWER',
  message: 'peersync did not answer.',
  hint: 'Look whether it runs; the page connects again by itself.',
};

/** Asks for something. @throws Error with two sentences: what happened, and what to do */
export function get<T>(path: string, query = ''): Promise<T> {
  return ask<T>(`${path}?${query}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
}

/** Asks for something to be done. @throws Error as `get` does */
export function post<T>(path: string, body: object = {}): Promise<T> {
  const headers = { 'content-type': 'application/json' };
  return ask<T>(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function ask<T>(url: string, init: RequestInit): Promise<T> {
  const response = await fetch(url, { ...init, cache: 'no-store' }).catch(() => undefined);
  if (response?.status === 401) location.assign('/sign-in');
  const answer: unknown = await response?.json().catch(() => undefined);
  if (response?.ok && answer !== undefined) return answer as T;
  const { message, hint } = (answer as ApiError | undefined)?.error ?? NO_ANSWER;
  throw new Error(`${message} ${hint}`);
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 20_000;
/** A status comes every 15 s; who says nothing for so long, in ms, is not there any more. */
const SILENCE_MS = 40_000;
const KEPT_EVENTS = 200;
/** Differences up to this, in ms, are the time that a message travels. */
const SAME_CLOCK_MS = 3_000;
const NOTICE_MS = 7_000;
const MOST_NOTICES = 4;

/** What was done for a person, or went wrong. */
export interface Notice {
  readonly words: string;
  readonly isFailure: boolean;
}

/**
 * What the page knows. It follows the daemon, and has the page drawn at most once a frame.
 *
 * - *Connected*: events come. An error, or silence, makes it *lost*.
 * - *Lost*: waits, each time twice as long, then connects; at once when the network or the window
 *   is back.
 */
export class Model {
  readonly #onChange: () => void;
  #isDue = false;
  #source: EventSource | undefined;
  /** Ends the silence while it is connected, and the wait while it is lost. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #heardAt = this.here();
  /** The daemon's clock less this one. */
  #skewMs = 0;
  status: StatusReport | undefined;
  /** Of the last hour, oldest first. */
  samples: readonly Sample[] = [];
  /** The newest first. */
  events: readonly RecentEvent[] = [];
  notices: readonly Notice[] = [];
  /**
   * While the daemon does not answer: since when, and when it is tried again, by this machine's
   * clock.
   */
  lost: { readonly at: number; readonly nextAt: number } | undefined;
  /** Which files are listed: those of a status, in one folder or in all (`''`). */
  listed: { readonly status: Entry['status']; readonly folder: string } = {
    status: 'quarantined',
    folder: '',
  };
  /** The path that is explained; `''` for none. */
  explained = '';

  /** @param onChange draws the page */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
    // What counts on screen counts on.
    setInterval(() => this.change(), 1_000);
    addEventListener('online', () => this.#hurry());
    document.addEventListener('visibilitychange', () => {
      this.#draw();
      if (!document.hidden) this.#hurry();
    });
  }

  /** The time by the daemon's clock, in ms since the epoch. */
  now(): number {
    return this.here() + this.#skewMs;
  }

  /** The time by this machine's clock, in ms since the epoch. */
  here(): number {
    return Date.now();
  }

  get world(): World | undefined {
    const { lost, status } = this;
    if (lost) return lostWorld(lost.at, this.here(), status && waitingOf(status));
    return status && worldOf(status, this.now());
  }

  change(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    // A window that is not seen draws no frames, but its title and icon are.
    if (document.hidden) queueMicrotask(() => this.#draw());
    else requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    this.#isDue = false;
    this.#onChange();
  }

  connect(): void {
    const source = new EventSource('/api/live');
    this.#source = source;
    const on = <T>(kind: string, take: (data: T) => void) =>
      source.addEventListener(kind, ({ data }: MessageEvent<string>) => {
        this.#failures = 0;
        this.#listen(source);
        take(JSON.parse(data));
        this.change();
      });
    on<StatusReport>('status', (status) => this.#take(status));
    on<Sample[]>('samples', (samples) => {
      const [only] = samples;
      // A single one was made a moment ago.
      const skew = only && samples.length === 1 ? only.at - this.here() : this.#skewMs;
      this.#skewMs = Math.abs(skew) < SAME_CLOCK_MS ? 0 : skew;
      this.samples = withSamples(this.samples, samples);
    });
    on<RecentEvent[]>('recents', (recents) => {
      this.events = [...recents.toReversed(), ...this.events].slice(0, KEPT_EVENTS);
    });
    // All samples and events come anew.
    source.onopen = () => {
      [this.samples, this.events] = [[], []];
    };
    // The browser's own retries neither back off nor end.
    source.onerror = () => void this.#lose(source);
    this.#listen(source);
  }

  /** Does something for a person, and says what came of it. */
  async act(work: () => Promise<string>): Promise<void> {
    try {
      this.say(await work());
      // What is listed next belongs to what was done.
      this.#take(await get<StatusReport>('/api/status'));
    } catch (error) {
      this.say((error as Error).message, true);
    }
  }

  /** Says for a moment that something was done; what failed, until it is dismissed. */
  say(words: string, isFailure = false): void {
    const notice = { words, isFailure };
    this.notices = [...this.notices, notice].slice(-MOST_NOTICES);
    if (!isFailure) setTimeout(() => this.dismiss(notice), NOTICE_MS);
    this.change();
  }

  dismiss(notice: Notice): void {
    this.notices = this.notices.filter((one) => one !== notice);
    this.change();
  }

  #take(status: StatusReport): void {
    [this.status, this.lost, this.#heardAt] = [status, undefined, this.here()];
    this.change();
  }

  #listen(source: EventSource): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#lose(source), SILENCE_MS);
  }

  /**
   * An EventSource does not say why it failed. A question does: a session that is over leads to the
   * sign-in, and a daemon that answers, but has too many followers already, is asked with each try.
   */
  async #lose(source: EventSource): Promise<void> {
    source.close();
    clearTimeout(this.#timer);
    const wait =
      Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures) * (0.75 + Math.random() / 2);
    this.#failures += 1;
    this.#timer = setTimeout(() => this.connect(), wait);
    const nextAt = this.here() + wait;
    const status = await get<StatusReport>('/api/status').catch(() => undefined);
    if (status) this.#take(status);
    else if (this.#source === source) this.lost = { at: this.lost?.at ?? this.#heardAt, nextAt };
    this.change();
  }

  #hurry(): void {
    if (this.#source?.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.#timer);
    this.connect();
  }
}
