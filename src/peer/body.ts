/** The body of a request: of known length, and given again from its beginning for each time it is sent. */
export interface Body {
  /** Content-Type. */
  readonly type: string;
  /** Bytes. */
  readonly length: number;
  /** The whole body, where it is small enough to be held. */
  readonly bytes?: Buffer;
  /**
   * The whole body, piece by piece.
   *
   * @throws PeerError PEER_SOURCE when a text cannot be read, or is not what it was when it was measured; then never
   *   as many bytes as `length` were given
   */
  chunks(): AsyncIterable<Uint8Array>;
}
