import type { AcceptedItem, Trouble } from '../state/entry.js';
import { beginningOf } from '../state/entry.js';
import type { State, StateView } from '../state/state.js';

/**
 * For each reach of which nothing was ever shown: an item that was not shown for long, and since
 * when that is known.
 */
const UNSEEN_META = 'unseenAddresses';

type Unseen = {
  readonly folder: string;
  readonly path: string;
  readonly code: string;
  readonly since: number;
};

/**
 * Why the peer may show no document of some addresses; of each reach the trouble of the item that
 * stands for it.
 */
export function unseenAddresses(
  state: Pick<StateView, 'get' | 'meta'>,
): readonly (Trouble & { readonly since: number })[] {
  return Object.values(recorded(state)).flatMap(({ code, folder, path, since }) => {
    const trouble = state.get(folder, path)?.trouble;
    // The file is gone, has another address, or was given up for another reason.
    return trouble?.code === code ? { ...trouble, since } : [];
  });
}

/** An item has this trouble, which stands for all of its reach. @returns whether that is news */
export function recordUnseen(
  state: Pick<State, 'get' | 'meta' | 'setMeta'>,
  reach: string,
  { code, folder, path, since }: Unseen,
): boolean {
  const all = recorded(state);
  const known = all[reach];
  if (known !== undefined && state.get(known.folder, known.path)?.trouble?.code === known.code)
    return false;
  state.setMeta(UNSEEN_META, { ...all, [reach]: { folder, path, code, since } });
  return true;
}

/** The peer showed a document of this reach. */
export function forgetUnseen(state: Pick<State, 'meta' | 'setMeta'>, reach: string): void {
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

/** When the peer first accepted this version, in ms since the epoch. */
export function firstAcceptedAt({ history, since }: AcceptedItem): number {
  const present = history.slice(beginningOf(history) + 1);
  return present.find(({ status }) => status === 'accepted')?.at ?? since;
}
