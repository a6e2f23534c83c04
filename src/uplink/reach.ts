import { withFile } from '../lib/hint.js';
import type { AddressFailure, AddressPolicy } from '../peer/dialects/dialect.js';
import type { AcceptedItem, Failure } from '../state/entry.js';
import { beginningOf } from '../state/history.js';
import type { State, StateView } from '../state/state.js';
import type { UplinkDeps } from './deps.js';

/** The key of the state value that keeps, for each reach, a URL that the peer showed. */
const SHOWN_META = 'shownBelow';

type ReachMode = 'open' | 'unknown' | 'gated';

/**
 * Tracks which reaches of addresses the peer shows.
 *
 * Some peers accept documents of every address, and drop those of one reach without an error (see
 * AddressPolicy). A reach has one of three modes:
 *
 * - *unknown*: the peer showed no document of any reach. Each reach begins so. The user is warned
 *   when an item of it is late.
 * - *gated*: the peer showed documents of the other reach, and none of this one. Entered from
 *   unknown.
 * - *open*: the peer showed a document of this reach. Entered from unknown and gated, and never
 *   left. Every reach is open if the peer has no address policy.
 *
 * The modes follow from the shown documents, which the state keeps across restarts.
 */
export class Reaches {
  readonly #deps: UplinkDeps;
  /** The URL of the first document that was shown, for each reach. */
  readonly #shown: string[];

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
    this.#shown = Object.keys((deps.state.meta(SHOWN_META) ?? {}) as object);
  }

  get #policy(): AddressPolicy | undefined {
    return this.#deps.dialect.current?.addresses;
  }

  /** Returns the mode of the reach of a URL. */
  modeOf(url: string): ReachMode {
    const policy = this.#policy;
    if (policy === undefined) return 'open';
    const reach = policy.reachOf(url);
    if (this.#shown.some((each) => policy.reachOf(each) === reach)) return 'open';
    return this.#shown.length === 0 ? 'unknown' : 'gated';
  }

  /** Opens the reach of a URL: the peer shows the document there for good. */
  shown(url: string): void {
    const { state } = this.#deps;
    const policy = this.#policy;
    if (policy === undefined || this.modeOf(url) === 'open') return;
    this.#shown.push(url);
    state.setMeta(SHOWN_META, Object.fromEntries(this.#shown.map((each) => [each, 0])));
    forgetUnseen(state, policy.reachOf(url));
  }

  /**
   * Called when a look-up did not show an accepted item. Warns the user once that the peer may drop
   * its reach, if the item is late by twice the usual time and its reach is not open.
   *
   * @param usualMs how long the peer takes at most to show an accepted document
   */
  late(item: AcceptedItem, usualMs: number): void {
    const { clock, log, queue, state } = this.#deps;
    const { folder, path, url } = item;
    const policy = this.#policy;
    if (policy === undefined || this.modeOf(url) === 'open') return;
    const lateMs = Math.min(clock.now() - firstAcceptedAt(item), queue.answeringForMs);
    if (lateMs < 2 * usualMs) return;
    const failure = policy.unseen(url);
    const { code, hint, message } = failure;
    if (item.failure?.code !== code) state.put({ ...item, failure });
    const since = clock.now();
    const what = withFile(hint, `${folder}/${path}`);
    if (recordUnseen(state, policy.reachOf(url), { folder, path, code, since }))
      log.warn({ event: 'addresses-unseen', folder, path, url, code }, `${message} ${what}`);
  }

  /** Returns why the peer drops documents at this URL; undefined unless its reach is gated. */
  dropped(url: string): AddressFailure | undefined {
    return this.modeOf(url) === 'gated' ? this.#policy?.dropped(url) : undefined;
  }

  /** Returns why the peer may drop documents at this URL; undefined if its reach is open. */
  unseen(url: string): AddressFailure | undefined {
    return this.modeOf(url) === 'open' ? undefined : this.#policy?.unseen(url);
  }

  /** Returns what to do about addresses that the peer drops; undefined if it drops none. */
  hint(url: string): string | undefined {
    return this.#policy?.hint(this.#policy.reachOf(url));
  }
}

/** Returns when the peer first accepted this version, in ms since the epoch. */
function firstAcceptedAt({ history, since }: AcceptedItem): number {
  const present = history.slice(beginningOf(history) + 1);
  return present.find(({ status }) => status === 'accepted')?.at ?? since;
}

/**
 * The key of the state value that keeps, for each reach of which the peer never showed a document,
 * one item that was not shown in time, and since when that is known.
 */
const UNSEEN_META = 'unseenAddresses';

type Unseen = {
  readonly folder: string;
  readonly path: string;
  readonly code: string;
  readonly since: number;
};

/** Returns, for each reach that the peer may never show, the failure of its recorded item. */
export function unseenAddresses(
  state: Pick<StateView, 'get' | 'meta'>,
): readonly (Failure & { readonly since: number })[] {
  return Object.values(recorded(state)).flatMap(({ code, folder, path, since }) => {
    const failure = state.get(folder, path)?.failure;
    // The file is gone, has another URL, or failed for another reason.
    return failure?.code === code ? { ...failure, since } : [];
  });
}

/**
 * Records that this item's failure concerns its whole reach.
 * @returns whether that is new
 */
function recordUnseen(
  state: Pick<State, 'get' | 'meta' | 'setMeta'>,
  reach: string,
  { code, folder, path, since }: Unseen,
): boolean {
  const all = recorded(state);
  const known = all[reach];
  if (known !== undefined && state.get(known.folder, known.path)?.failure?.code === known.code)
    return false;
  state.setMeta(UNSEEN_META, { ...all, [reach]: { folder, path, code, since } });
  return true;
}

/** Called when the peer showed a document of this reach. */
function forgetUnseen(state: Pick<State, 'meta' | 'setMeta'>, reach: string): void {
  const { [reach]: known, ...others } = recorded(state);
  if (known !== undefined) state.setMeta(UNSEEN_META, { ...others });
}

function recorded(state: Pick<StateView, 'meta'>): Record<string, Unseen> {
  const all = Object.entries(state.meta(UNSEEN_META) ?? {});
  return Object.fromEntries(all.flatMap(([reach, one]) => (isUnseen(one) ? [[reach, one]] : [])));
}

function isUnseen(value: unknown): value is Unseen {
  if (typeof value !== 'object' || value === null) return false;
  const hasPlace = 'folder' in value && typeof value.folder === 'string' && 'path' in value;
  return hasPlace && typeof value.path === 'string' && 'code' in value && 'since' in value;
}
