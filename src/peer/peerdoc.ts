/** Which document: by its URL, or by a hash that the peer told earlier. */
export type PeerdocQuery = { readonly url: string } | { readonly urlhash: string };

export interface PeerdocOptions {
  /** Passed on as it is; its meaning is the peer's. */
  readonly html?: string;
  readonly signal?: AbortSignal;
}

/** What the peer shows of one document. Fields that the peer did not show are absent. */
export interface Peerdoc {
  readonly url?: string;
  readonly urlhash?: string;
  readonly title?: string;
  /** Bytes. */
  readonly size?: number;
  readonly words?: number;
  /** sha256 of the content as it was pushed, lower-case hex. */
  readonly digest?: string;
  /** ms since the epoch. */
  readonly lastModified?: number;
  /** When the peer got the document, by its clock, in ms since the epoch. */
  readonly loadDate?: number;
  readonly collections?: readonly string[];
  /** When the answer came, by our clock, in ms since the epoch. */
  readonly at: number;
  /** The same moment by the peer's clock (whole seconds, as ms), where its answers carry a date. */
  readonly peerAt?: number;
  /** All fields under the peer's own names, each with every value it was given. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
}
