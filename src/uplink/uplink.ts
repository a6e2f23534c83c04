import type { HealthCheck } from '../lib/health.js';
import type { Place } from '../state/entries.js';
import { ConfirmLoop, type NextLook } from './confirm-loop.js';
import type { UplinkDeps } from './deps.js';
import { FailureAttribution } from './failure-attribution.js';
import { Isolation } from './isolation.js';
import { PushLoop } from './push-loop.js';

export interface UplinkStatus {
  /** Items in requests that are under way. */
  readonly inFlight: number;
  /** Items that wait to be shown. */
  readonly confirming: number;
  /** The learned time from a push to its first showing, in ms. */
  readonly timeToVisibleMs: number;
}

/**
 * What goes to the peer: pushes what the state says is pending, confirms what it says is accepted.
 *
 * Life: made from its parts; `start` waits until the peer's dialect is known, takes up what an earlier run left (accepted items
 * are looked up, items in doubt are looked up before they are pushed again) and follows every change of the state from then on;
 * `stop` ends both loops once what is under way has settled, which stopping the queue brings about.
 */
export class Uplink {
  readonly #deps: UplinkDeps;
  readonly #push: PushLoop;
  readonly #confirm: ConfirmLoop;
  readonly #stopping = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();
  #unsubscribe: () => void = () => {};
  #isRunning = false;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
    const isolation = new Isolation(deps);
    const attribution = new FailureAttribution(deps, isolation);
    this.#confirm = new ConfirmLoop(deps, attribution, isolation);
    this.#push = new PushLoop(deps, this.#confirm, attribution, isolation);
  }

  /** Starts both loops. `onFailure` is called with an error that ended one of them, which is a bug or a disk that fails. */
  start(onFailure: (error: unknown) => void): void {
    this.#loops = this.#run(this.#stopping.signal, onFailure).catch(onFailure);
  }

  async #run(signal: AbortSignal, onFailure: (error: unknown) => void): Promise<void> {
    const { dialect, state } = this.#deps;
    // What is to travel, and when it is looked up, depends on it.
    if (!(await dialect.known(signal))) return;
    this.#unsubscribe = state.onChange((after, _before, place) => {
      if (after !== undefined) this.#push.takeUp(after);
      else this.#push.forget(place);
    });
    this.#isRunning = true;
    await Promise.all([this.#push.run(signal).catch(onFailure), this.#confirm.run(signal).catch(onFailure)]);
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#stopping.abort();
    await this.#loops;
    this.#unsubscribe();
  }

  /** Of both loops, while they run. */
  get health(): readonly HealthCheck[] {
    return this.#isRunning ? [this.#push.health, this.#push.packing, this.#confirm.health] : [];
  }

  status(): UplinkStatus {
    return {
      inFlight: this.#push.inFlight,
      confirming: this.#deps.state.counts().accepted,
      timeToVisibleMs: this.#confirm.timeToVisibleMs,
    };
  }

  /** To be called whenever the root of a folder stands otherwise than before. */
  foldersChanged(): void {
    this.#push.foldersChanged();
  }

  /** Whether nothing is left to do until the state changes or a folder is back; false before it has taken up what there is. */
  get isIdle(): boolean {
    return this.#isRunning && this.#push.isIdle && this.#confirm.isIdle;
  }

  /** Whether the item is on its way to the peer at this moment. */
  isInFlight(place: Place): boolean {
    return this.#push.isOut(place);
  }

  /** When the item is looked up next. */
  nextLook(place: Place): NextLook | undefined {
    return this.#confirm.next(place);
  }
}
