/** Which shared object: its name and, where the peer has several groups of them, the group. */
export interface ShareQuery {
  readonly data: string;
  readonly c?: string;
}

/** A shared object as it comes in. */
export interface ShareStream {
  /** Media type in lower case, without parameters; undefined where the peer gave none. */
  readonly type: string | undefined;
  /** Bytes, where the peer said so. */
  readonly size: number | undefined;
  /** By the peer, in ms since the epoch. */
  readonly lastModified: number | undefined;
  readonly chunks: AsyncIterable<Uint8Array>;
}
