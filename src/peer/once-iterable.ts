/** Read a second time, an iterator that is through would look like an empty answer. */
export class OnceIterable implements AsyncIterable<Buffer> {
  readonly #pieces: AsyncGenerator<Buffer, void, undefined>;
  #taken = false;

  constructor(pieces: AsyncGenerator<Buffer, void, undefined>) {
    this.#pieces = pieces;
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer> {
    if (this.#taken) throw new TypeError('An answer that is read while it comes can be read only once.');
    this.#taken = true;
    return this.#pieces;
  }
}
