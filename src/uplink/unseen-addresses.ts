import type { Failure } from '../state/entry.js';
import type { State, StateView } from '../state/state.js';

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
export function recordUnseen(
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
