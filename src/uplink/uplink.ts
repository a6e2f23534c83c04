import type { HealthCheck } from '../lib/health.js';
import type { Place } from '../state/entries.js';
import type { Entry } from '../state/entry.js';
import { ConfirmLoop } from './confirm-loop.js';
import { Isolation } from './isolation.js';
import type { NextLook } from './looks.js';
import { placeOf, type UplinkParts } from './parts.js';
import { PushLoop } from './push-loop.js';
import { Hold } from './visibility.js';

/** So many records are taken up without a pause. */
const SLICE = 5_000;

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
 * Life: made from its parts; `start` waits until the peer's dialect is known, takes up what an earlier run left (accepted items are looked up, items in doubt are looked
 * up before they are pushed again) and follows every change of the state from then on; `stop` ends both loops once what is
 * under way has settled, which stopping the queue brings about.
 */
export class Uplink {
  readonly #parts: UplinkParts;
  readonly #push: PushLoop;
  readonly #confirm: ConfirmLoop;
  readonly #stopping = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();
  #unsubscribe: () => void = () => {};
  #isRunning = false;

  constructor(parts: UplinkParts) {
    this.#parts = parts;
    const hold = new Hold(parts);
    const isNeeded = () => parts.dialect.current?.losesUpdates === true && hold.ms > 0;
    const isolation = new Isolation({ ...parts, isNeeded }, hold);
    this.#confirm = new ConfirmLoop(parts, hold, isolation);
    this.#push = new PushLoop(parts, this.#confirm, isolation);
  }

  /** Starts both loops. `onFailure` hears of an error that ended one of them, which is a bug or a disk that fails. */
  start(onFailure: (error: unknown) => void): void {
    this.#loops = this.#run(this.#stopping.signal, onFailure).catch(onFailure);
  }

  async #run(signal: AbortSignal, onFailure: (error: unknown) => void): Promise<void> {
    const { clock, dialect, state } = this.#parts;
    // What is to travel, and when it is looked up, depends on it.
    if (!(await dialect.known(signal))) return;
    this.#unsubscribe = state.onChange((after, _before, place) => {
      if (after === undefined) this.#push.forget(place);
      else this.#takeUp(after);
    });
    let seen = 0;
    for (const entry of state.entries.all()) {
      seen += 1;
      if (seen % SLICE === 0) await clock.sleep(0, signal);
      if (signal.aborted) return;
      this.#push.met(entry);
      this.#takeUp(entry);
      if (entry.status === 'confirmed') this.#confirm.known(entry, entry.sent);
    }
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
      confirming: this.#confirm.size,
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

  #takeUp(entry: Entry): void {
    // The push loop decides about what it has taken when it gives it back.
    if (this.#push.isOut(placeOf(entry))) return;
    if (entry.status === 'pending') {
      if (entry.doubt === undefined) this.#push.add(entry);
      else this.#confirm.doubt(entry, entry.doubt);
      return;
    }
    this.#push.forget(placeOf(entry), entry.status === 'accepted');
    if (entry.status === 'accepted') this.#confirm.resume(entry);
  }
}
