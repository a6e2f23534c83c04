import type { Sample } from '../../report/statistics.js';
import type { RecentEvent, StatusReport } from '../../report/status.js';
import type { PageClock } from './clock.js';
import { withSamples } from './words.js';

const KEPT_EVENTS = 200;
/** Differences up to this are the time a message travels. */
const SAME_CLOCK_MS = 3_000;

/** What a part of the page may want to follow. A `tick` comes each second, for what counts on screen. */
export type Topic = 'status' | 'samples' | 'recents' | 'connection' | 'tick';

/**
 * What the page knows. The parts of the page follow the topics that they show; however much comes, each is told at most
 * once a frame.
 */
export class Model {
  readonly #clock: PageClock;
  readonly #followers: { readonly topics: readonly Topic[]; readonly draw: () => void }[] = [];
  readonly #changed = new Set<Topic>();
  /** The daemon's clock less this one. */
  #skewMs = 0;
  status: StatusReport | undefined;
  /** Of the last hour, oldest first. */
  samples: readonly Sample[] = [];
  /** The newest first. */
  events: readonly RecentEvent[] = [];
  /** Set while the daemon does not answer: since when, and when it is tried again, by this machine's clock. */
  lost: { readonly at: number; readonly nextAt: number } | undefined;
  #heardAt: number;

  constructor(clock: PageClock) {
    this.#clock = clock;
    this.#heardAt = clock.now();
    clock.every(1_000, () => this.#change('tick'));
    // A window that is not seen draws no frames, but its title and icon are.
    document.addEventListener('visibilitychange', () => this.#draw());
  }

  /** By the daemon's clock. */
  now(): number {
    return this.#clock.now() + this.#skewMs;
  }

  /** By this machine's clock. */
  here(): number {
    return this.#clock.now();
  }

  /** Calls `draw` when one of the topics changed. */
  follow(topics: readonly Topic[], draw: () => void): void {
    this.#followers.push({ topics, draw });
  }

  /** The next events belong to a new connection: all samples and events come anew. */
  onOpen(): void {
    this.samples = [];
    this.events = [];
    this.#change('samples');
    this.#change('recents');
  }

  onStatus(status: StatusReport): void {
    this.status = status;
    this.#heardAt = this.#clock.now();
    if (this.lost !== undefined) {
      this.lost = undefined;
      this.#change('connection');
    }
    this.#change('status');
  }

  onSamples(samples: readonly Sample[]): void {
    const [only] = samples;
    if (only !== undefined && samples.length === 1) this.#compareClocks(only.at);
    this.samples = withSamples(this.samples, samples);
    this.#change('samples');
  }

  onRecents(recents: readonly RecentEvent[]): void {
    this.events = [...recents.toReversed(), ...this.events].slice(0, KEPT_EVENTS);
    this.#change('recents');
  }

  /** Nothing comes any more. */
  onLost(nextAt: number): void {
    this.lost = { at: this.lost?.at ?? this.#heardAt, nextAt };
    this.#change('connection');
  }

  /** A single sample was made a moment ago. */
  #compareClocks(at: number): void {
    const skew = at - this.#clock.now();
    this.#skewMs = Math.abs(skew) < SAME_CLOCK_MS ? 0 : skew;
  }

  #change(topic: Topic): void {
    if (this.#changed.size === 0) {
      if (document.hidden) queueMicrotask(() => this.#draw());
      else requestAnimationFrame(() => this.#draw());
    }
    this.#changed.add(topic);
  }

  #draw(): void {
    const changed = new Set(this.#changed);
    this.#changed.clear();
    for (const { topics, draw } of this.#followers) if (topics.some((topic) => changed.has(topic))) draw();
  }
}
