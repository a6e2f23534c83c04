/** Texts are kept in steps of so many bytes. */
const UNIT = 16;
/** Before each text stand its length in bytes and the units of its place, 4 bytes each. */
const HEADER = 8;
const SLAB_UNITS = 65_536;

/**
 * Keeps lines of text outside of the heap of V8, by number. A million strings that change a few
 * times each leave a heap full of holes and keep its collector busy: 427 MB of heap for 289 MB of
 * strings, and pauses of 50 to 90 ms. Here a line is written over itself while it fits, and the
 * place of one that went is taken by the next of its size.
 *
 * Memory is taken 1 MiB at a time and never given back.
 */
export class LineStore {
  readonly #slabs: Buffer[] = [];
  /** Free places by their units. */
  readonly #free = new Map<number, number[]>();
  /** Units taken of the last slab. */
  #taken = SLAB_UNITS;

  get(at: number): string {
    const slab = this.#slabOf(at);
    const start = offsetOf(at) + HEADER;
    return slab.toString('utf8', start, start + slab.readUInt32LE(start - HEADER));
  }

  /**
   * @param room how much the line is likely to grow, in bytes, where it needs a place
   * @param at the number of the line that it replaces
   * @returns the number of the line, until it is put anew or removed
   */
  put(line: string, room: number, at?: number): number {
    const bytes = Buffer.byteLength(line);
    let to = at;
    if (to === undefined || HEADER + bytes > UNIT * this.#unitsOf(to)) {
      if (to !== undefined) this.remove(to);
      to = this.#take(Math.ceil((HEADER + bytes + room) / UNIT));
    }
    const slab = this.#slabOf(to);
    slab.writeUInt32LE(bytes, offsetOf(to));
    slab.write(line, offsetOf(to) + HEADER);
    return to;
  }

  remove(at: number): void {
    const units = this.#unitsOf(at);
    const free = this.#free.get(units);
    if (free === undefined) this.#free.set(units, [at]);
    else free.push(at);
  }

  /** A free place, or a new one at the end; a slab for itself where it is larger than one. */
  #take(units: number): number {
    const free = this.#free.get(units)?.pop();
    if (free !== undefined) return free;
    if (this.#taken + units > SLAB_UNITS) {
      this.#slabs.push(Buffer.allocUnsafeSlow(UNIT * Math.max(SLAB_UNITS, units)));
      this.#taken = 0;
    }
    const at = (this.#slabs.length - 1) * SLAB_UNITS + this.#taken;
    this.#taken += units;
    this.#slabOf(at).writeUInt32LE(units, offsetOf(at) + 4);
    return at;
  }

  #unitsOf(at: number): number {
    return this.#slabOf(at).readUInt32LE(offsetOf(at) + 4);
  }

  #slabOf(at: number): Buffer {
    const slab = this.#slabs[Math.floor(at / SLAB_UNITS)];
    if (slab === undefined) throw new Error(`there is no line ${at}`);
    return slab;
  }
}

/** Of a place in its slab, in bytes. */
function offsetOf(at: number): number {
  return UNIT * (at % SLAB_UNITS);
}
