/** The text of a document on its way to the peer: its bytes (UTF-8), the same encoded already, or where to get them. */
export type Text = Uint8Array | EncodedText | TextSource;

/** Text that another thread encoded for a form, by `EncodingBuffer`. */
export interface EncodedText {
  /** Bytes of the text in UTF-8. */
  readonly size: number;
  readonly encoded: Uint8Array;
}

/** Text that is read while it is sent, so that memory does not grow with it. */
export interface TextSource {
  /** Bytes of the text in UTF-8. */
  readonly size: number;
  /** The text from its beginning, in UTF-8; called once to measure and once for each time it is sent. */
  chunks(): AsyncIterable<Uint8Array>;
}
