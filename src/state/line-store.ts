/** Slots are a multiple of this size, in bytes. */
const UNIT_BYTES = 16;
/**
 * Header of a slot: the length of its text in bytes and the size of the slot in units, 4 bytes
 * each.
 */
const HEADER_BYTES = 8;
const SLAB_UNITS = 65_536;

/**
 * Stores lines of text by number, outside the heap of V8. A million strings that change a few times
 * each fragment the heap and keep the garbage collector busy: 427 MB of heap for 289 MB of strings,
 * and pauses of 50 to 90 ms. Here a line is overwritten in its slot while it fits, and a freed slot
 * is reused for the next line of its size.
 *
 * Memory is allocated 1 MiB at a time and never freed.
 */
export class LineStore {
  readonly #slabs: Buffer[] = [];
  /** Free slots by their size in units. */
  readonly #free = new Map<number, number[]>();
  /** Units used in the last slab. */
  #usedUnits = SLAB_UNITS;

  get(at: number): string {
    const slab = this.#slabOf(at);
    const start = offsetOf(at) + HEADER_BYTES;
    return slab.toString('utf8', start, start + slab.readUInt32LE(start - HEADER_BYTES));
  }

  /**
   * @param room how much the line is likely to grow, in bytes, if it needs a new slot
   * @param at the number of the line that it replaces
   * @returns the number of the line, valid until the line is replaced or removed
   */
  put(line: string, room: number, at?: number): number {
    const bytes = Buffer.byteLength(line);
    let to = at;
    if (to === undefined || HEADER_BYTES + bytes > UNIT_BYTES * this.#unitsOf(to)) {
      if (to !== undefined) this.remove(to);
      to = this.#allocate(Math.ceil((HEADER_BYTES + bytes + room) / UNIT_BYTES));
    }
    const slab = this.#slabOf(to);
    slab.writeUInt32LE(bytes, offsetOf(to));
    slab.write(line, offsetOf(to) + HEADER_BYTES);
    return to;
  }

  remove(at: number): void {
    const units = this.#unitsOf(at);
    const free = this.#free.get(units);
    if (free === undefined) this.#free.set(units, [at]);
    else free.push(at);
  }

  /**
   * Returns a free slot of this size, or a new one at the end. A slot larger than a slab gets a
   * slab of its own.
   */
  #allocate(units: number): number {
    const free = this.#free.get(units)?.pop();
    if (free !== undefined) return free;
    if (this.#usedUnits + units > SLAB_UNITS) {
      this.#slabs.push(Buffer.allocUnsafeSlow(UNIT_BYTES * Math.max(SLAB_UNITS, units)));
      this.#usedUnits = 0;
    }
    const at = (this.#slabs.length - 1) * SLAB_UNITS + this.#usedUnits;
    this.#usedUnits += units;
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

/** Returns the offset of a slot in its slab, in bytes. */
function offsetOf(at: number): number {
  return UNIT_BYTES * (at % SLAB_UNITS);
}
