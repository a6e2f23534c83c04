import type { Text } from './text.js';

/** One document for the index. */
export interface PushItem {
  readonly url: string;
  readonly collection: string;
  readonly data: Text;
}

export interface PushOptions {
  /** Ask the peer to index before it answers. */
  readonly synchronous?: boolean;
  /** Ask the peer to make it searchable at once. */
  readonly commit?: boolean;
  readonly signal?: AbortSignal;
}

/** What the peer said of one item: accepted (which proves nothing about search), or not, in its own words. */
export type PushResult = { readonly ok: true } | { readonly ok: false; readonly message: string };

export interface PushAnswer {
  /** When the request began, by the peer's clock, in whole seconds (as ms since the epoch); never later than it was. */
  readonly peerTime?: number;
  /** One for each item, in their order. */
  readonly results: readonly PushResult[];
}
