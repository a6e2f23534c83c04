/**
 * The text of a document on its way to the peer: its bytes (UTF-8), the same encoded already, or where to get them. A
 * dialect that takes files which are no text takes any bytes.
 */
export type Text = Uint8Array | EncodedText | TextSource;

/** How text is encoded on its way: for a form (`application/x-www-form-urlencoded`), or in base64 with padding. */
export type TextEncoding = 'form' | 'base64';

/** Text that another thread encoded for its way, by `EncodingBuffer`. */
export interface EncodedText {
  /** Bytes of the text in UTF-8. */
  readonly size: number;
  /** Which must be the one that the dialect sends. */
  readonly encoding: TextEncoding;
  readonly encoded: Uint8Array;
}

/** Text that is read while it is sent, so that memory does not grow with it. */
export interface TextSource {
  /** Bytes of the text in UTF-8. */
  readonly size: number;
  /** The text from its beginning, in UTF-8; called once to measure and once for each time it is sent. */
  chunks(): AsyncIterable<Uint8Array>;
}
