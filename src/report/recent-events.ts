import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';

/** A line of the log that a person may want to see on the page. */
export interface RecentEvent {
  /** Grows by one with each. */
  readonly id: number;
  /** In ms since the epoch. */
  readonly at: number;
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  /** What kind of event it is, where it says so. */
  readonly event?: string;
}

const KEPT = 200;

/** A logger that also remembers the last lines from `info` up, for who looks later. */
export class RecentEvents implements Logger {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #events: RecentEvent[] = [];
  readonly #listeners = new Set<(event: RecentEvent) => void>();
  #count = 0;

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Oldest first. */
  list(): readonly RecentEvent[] {
    return this.#events;
  }

  /** Calls `listener` with each new event; returns how to stop that. It must not log. */
  onEvent(listener: (event: RecentEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  debug(fields: object, message: string): void {
    this.#log.debug(fields, message);
  }

  info(fields: object, message: string): void {
    this.#keep('info', fields, message);
    this.#log.info(fields, message);
  }

  warn(fields: object, message: string): void {
    this.#keep('warn', fields, message);
    this.#log.warn(fields, message);
  }

  error(fields: object, message: string): void {
    this.#keep('error', fields, message);
    this.#log.error(fields, message);
  }

  #keep(level: RecentEvent['level'], fields: object, message: string): void {
    this.#count += 1;
    const named = 'event' in fields && typeof fields.event === 'string' ? { event: fields.event } : {};
    const event: RecentEvent = { id: this.#count, at: this.#clock.now(), level, message, ...named };
    this.#events.push(event);
    if (this.#events.length > KEPT) this.#events.shift();
    for (const listener of this.#listeners) listener(event);
  }
}
