import type { Clock } from '../lib/clock.js';
import type { Stuck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { PeerClient } from '../peer/client.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { Trouble } from '../state/entry.js';
import type { Uplink } from '../uplink/uplink.js';
import type { Watcher } from '../watch/watcher.js';
import type { Statistics } from './statistics.js';

/** A disk that gives no answer, and what waits for it. */
export interface SilentDisk {
  readonly path: string;
  /** The beginning of a sentence. */
  readonly what: string;
  /** Since when it waits, in ms since the epoch. */
  readonly since: number;
}

/** What of a running daemon is told. */
export interface Live {
  /** In ms since the epoch. */
  readonly startedAt: number;
  /** All dates here are of its steady time. */
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly current: {
    /** The keys of the configuration whose new values wait for a restart. */
    readonly restart: readonly string[];
    readonly report: ConfigurationReport;
  };
  readonly parts: {
    /** Also of the embedded peer, which only has it while it runs. */
    readonly peerUrl: string;
    readonly client: Pick<PeerClient, 'dialect'>;
    readonly queue: Pick<RequestQueue, 'status'>;
    readonly uplink: Pick<Uplink, 'status' | 'isInFlight' | 'nextLook'>;
    readonly watcher: Pick<Watcher, 'status' | 'problems'>;
    readonly mirrors: Pick<Mirrors, 'status'>;
    readonly statistics: Pick<Statistics, 'report'>;
  };
  readonly page?: { readonly url: string | undefined } | undefined;
  readonly watchdog?:
    | { readonly silentDisk: SilentDisk | undefined; readonly stuck: readonly Stuck[] }
    | undefined;
}

/** What a reload of the configuration did. */
export interface ReloadReport {
  /** What takes effect from now on, a line each. */
  readonly changes: readonly string[];
  /** The keys whose new values wait for a restart. */
  readonly restart: readonly string[];
}

/** What is wrong with a changed configuration, of which nothing was taken; when that was, in ms since the epoch. */
export type Refused = Trouble & { readonly at: number };

/** How a running daemon stands to the file of its configuration. */
export interface ConfigurationReport {
  /** When the file was last taken up, by a start or a reload, in ms since the epoch. */
  readonly takenUpAt: number;
  /** Why the last reload took nothing of it; only where that is so. */
  readonly refused?: Refused | undefined;
}

/** What waits for a disk that does not answer, and since when in ms since the epoch. */
export type DiskTrouble = Trouble & { readonly since: number };

/** A line of the log that a person may want to see on the page. */
export interface RecentEvent {
  /** Grows by one with each. */
  readonly id: number;
  /** In ms since the epoch. */
  readonly at: number;
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  /** What kind of event it is, where it says so. */
  readonly event?: string | undefined;
}

const EVENTS_KEPT = 200;

/** A logger that also remembers the last lines from `info` up, for who looks later. */
export class RecentEvents implements Logger {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #events: RecentEvent[] = [];
  #count = 0;
  readonly info = this.#keeping('info');
  readonly warn = this.#keeping('warn');
  readonly error = this.#keeping('error');

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Oldest first. */
  list(): readonly RecentEvent[] {
    return this.#events;
  }

  debug(fields: object, message: string): void {
    this.#log.debug(fields, message);
  }

  #keeping(level: RecentEvent['level']): Logger['info'] {
    return (fields, message) => {
      this.#count += 1;
      const event = 'event' in fields && typeof fields.event === 'string' ? fields.event : undefined;
      this.#events.push({ id: this.#count, at: this.#clock.now(), level, message, event });
      if (this.#events.length > EVENTS_KEPT) this.#events.shift();
      this.#log[level](fields, message);
    };
  }
}
