import type { RecentEvent } from '../../report/live.js';
import type { Sample } from '../../report/statistics.js';
import type { StatusReport } from '../../report/status-report.js';
import type { Entry } from '../../state/entry.js';
import type { ApiError } from '../api.js';
import { lostSummary, type Summary, summaryOf, waitingOf, withSamples } from './words.js';

/** Time-out of a query, in ms. Queries are usually answered in milliseconds. */
const QUERY_TIMEOUT_MS = 8_000;

const NO_ANSWER = {
  code: 'NO_ANSWER',
  message: 'peersync did not answer.',
  hint: 'Check whether it runs. This page reconnects by itself.',
};

/**
 * Sends a query.
 *
 * @throws Error whose message is two sentences: what happened, and what to do
 */
export function get<T>(path: string, query = ''): Promise<T> {
  return request<T>(`${path}?${query}`, { signal: AbortSignal.timeout(QUERY_TIMEOUT_MS) });
}

/**
 * Sends a command.
 *
 * @throws Error as `get` does
 */
export function post<T>(path: string, body: object = {}): Promise<T> {
  const headers = { 'content-type': 'application/json' };
  return request<T>(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function request<T>(url: string, init: RequestInit): Promise<T> {
  const response = await fetch(url, { ...init, cache: 'no-store' }).catch(() => undefined);
  if (response?.status === 401) location.assign('/sign-in');
  const answer: unknown = await response?.json().catch(() => undefined);
  if (response?.ok && answer !== undefined) return answer as T;
  const { message, hint } = (answer as ApiError | undefined)?.error ?? NO_ANSWER;
  throw new Error(`${message} ${hint}`);
}

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 20_000;
/** Silence after which the stream counts as lost, in ms. The daemon sends a status every 15 s. */
const SILENCE_MS = 40_000;
const MAX_EVENTS = 200;
/** Differences of the clocks up to this come from the latency of messages, in ms. */
const CLOCK_TOLERANCE_MS = 3_000;
const NOTICE_MS = 7_000;
const MAX_NOTICES = 4;

/** The result of an action, or its failure. */
export interface Notice {
  readonly text: string;
  readonly isFailure: boolean;
}

/** Times are in ms since the epoch, by the clock of the browser. */
export type Connection =
  | { readonly mode: 'connecting' }
  | { readonly mode: 'live' }
  | {
      readonly mode: 'lost';
      /** Time of the last message. */
      readonly since: number;
      /** Time of the next attempt. */
      readonly nextAt: number;
    };

/**
 * The data of the page. It follows the daemon, and calls `onChange` at most once per frame.
 *
 * - *Connecting*, the initial mode.
 * - *Live*, entered by each status, whether the stream or an answer brings it.
 * - *Lost*, entered when the stream fails, or is silent for `SILENCE_MS`, and the daemon does not
 *   answer a query either. The stream is opened again after a wait that doubles each time, and at
 *   once when the network or the window comes back.
 */
export class Model {
  readonly #onChange: () => void;
  #isDrawScheduled = false;
  #stream: EventSource | undefined;
  /** Detects silence while the stream is open; opens it again after it failed. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Number of times in a row that the stream failed. */
  #failures = 0;
  #lastStatusAt = this.localNow();
  /** The clock of the daemon minus that of the browser. */
  #skewMs = 0;
  connection: Connection = { mode: 'connecting' };
  status: StatusReport | undefined;
  /** Samples of the last hour, oldest first. */
  samples: readonly Sample[] = [];
  /** Newest first. */
  events: readonly RecentEvent[] = [];
  notices: readonly Notice[] = [];
  /** The list of files: their status, and their folder or `''` for all folders. */
  listed: { readonly status: Entry['status']; readonly folder: string } = {
    status: 'quarantined',
    folder: '',
  };
  /** The path that is explained; `''` for none. */
  explained = '';

  /** @param onChange draws the page */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
    // Updates the times on the page.
    setInterval(() => this.change(), 1_000);
    addEventListener('online', () => this.#reconnectNow());
    document.addEventListener('visibilitychange', () => {
      this.#draw();
      if (!document.hidden) this.#reconnectNow();
    });
  }

  /** Returns the time by the clock of the daemon, in ms since the epoch. */
  now(): number {
    return this.localNow() + this.#skewMs;
  }

  /** Returns the time by the clock of the browser, in ms since the epoch. */
  localNow(): number {
    return Date.now();
  }

  get summary(): Summary | undefined {
    const { connection, status } = this;
    if (connection.mode === 'lost')
      return lostSummary(connection.since, this.localNow(), status && waitingOf(status));
    return status && summaryOf(status, this.now());
  }

  /** Schedules a draw of the page. */
  change(): void {
    if (this.#isDrawScheduled) return;
    this.#isDrawScheduled = true;
    // A hidden window gets no frames, but its title and icon are visible.
    if (document.hidden) queueMicrotask(() => this.#draw());
    else requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    this.#isDrawScheduled = false;
    this.#onChange();
  }

  connect(): void {
    const stream = new EventSource('/api/live');
    this.#stream = stream;
    const on = <T>(kind: string, take: (data: T) => void) =>
      stream.addEventListener(kind, ({ data }: MessageEvent<string>) => {
        this.#failures = 0;
        this.#restartSilenceTimer(stream);
        take(JSON.parse(data));
        this.change();
      });
    on<StatusReport>('status', (status) => this.#setStatus(status));
    on<Sample[]>('samples', (samples) => {
      const [only] = samples;
      // A single sample was taken a moment ago, so it shows the difference of the clocks.
      const skewMs = only && samples.length === 1 ? only.at - this.localNow() : this.#skewMs;
      this.#skewMs = Math.abs(skewMs) < CLOCK_TOLERANCE_MS ? 0 : skewMs;
      this.samples = withSamples(this.samples, samples);
    });
    on<RecentEvent[]>('recents', (recents) => {
      this.events = [...recents.toReversed(), ...this.events].slice(0, MAX_EVENTS);
    });
    stream.onopen = () => {
      // The daemon sends all samples and events again.
      this.samples = [];
      this.events = [];
    };
    // The retries of the browser itself have no backoff.
    stream.onerror = () => void this.#onStreamFailed(stream);
    this.#restartSilenceTimer(stream);
  }

  /** Performs an action, and shows its result as a notice. */
  async act(work: () => Promise<string>): Promise<void> {
    try {
      this.notify(await work());
      // The page shows the effect of the action at once.
      this.#setStatus(await get<StatusReport>('/api/status'));
    } catch (error) {
      this.notify((error as Error).message, true);
    }
  }

  /** Shows a notice for a moment, or a failure until it is dismissed. */
  notify(text: string, isFailure = false): void {
    const notice = { text, isFailure };
    this.notices = [...this.notices, notice].slice(-MAX_NOTICES);
    if (!isFailure) setTimeout(() => this.dismiss(notice), NOTICE_MS);
    this.change();
  }

  dismiss(notice: Notice): void {
    this.notices = this.notices.filter((one) => one !== notice);
    this.change();
  }

  #setStatus(status: StatusReport): void {
    this.status = status;
    this.connection = { mode: 'live' };
    this.#lastStatusAt = this.localNow();
    this.change();
  }

  #restartSilenceTimer(stream: EventSource): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#onStreamFailed(stream), SILENCE_MS);
  }

  /**
   * Closes the stream and schedules the next attempt. An EventSource does not say why it failed, so
   * a query follows: it leads to the sign-in if the session ended, and it brings the status of a
   * daemon that has too many followers.
   */
  async #onStreamFailed(stream: EventSource): Promise<void> {
    stream.close();
    clearTimeout(this.#timer);
    const backoffMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    const waitMs = backoffMs * (0.75 + Math.random() / 2);
    this.#failures += 1;
    this.#timer = setTimeout(() => this.connect(), waitMs);
    const nextAt = this.localNow() + waitMs;
    const status = await get<StatusReport>('/api/status').catch(() => undefined);
    if (status) this.#setStatus(status);
    else if (this.#stream === stream) {
      const { connection } = this;
      const since = connection.mode === 'lost' ? connection.since : this.#lastStatusAt;
      this.connection = { mode: 'lost', since, nextAt };
    }
    this.change();
  }

  /** Opens the stream again without waiting, if it failed. */
  #reconnectNow(): void {
    if (this.#stream?.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.#timer);
    this.connect();
  }
}
