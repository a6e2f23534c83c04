import { counted } from '../../lib/text.js';
import { formatBytes } from '../../lib/units.js';
import type { MemberBudget } from './budget.js';
import { TextCollector } from './document-reader.js';

/** A file in an archive. */
export interface Member {
  /** The name that the archive has for it. It is text and never a path of this machine. */
  readonly name: string;
  /** Declared size, in bytes. `read` returns no more. */
  readonly size: number;
  readonly isEncrypted: boolean;
  /**
   * Returns the content.
   * @throws MemberError, or an error of zlib
   */
  read(): Uint8Array | Promise<Uint8Array>;
}

/**
 * Thrown if a member, or the rest of an archive, cannot be read. The message is a reason without a
 * full stop.
 */
export class MemberError extends Error {}

/**
 * Collects the text of many members, each under a heading with its name, and what was left out of
 * it. It spends the budget of the whole document.
 */
export class MemberText {
  readonly #text = new TextCollector();
  /** Sentences about what was left out. */
  readonly #cuts = new Set<string>();
  #members = 0;
  #isFull = false;

  /** @param enough number of characters after which the rest may be left out, without a word */
  constructor(
    readonly budget: MemberBudget,
    private readonly enough: number,
  ) {
    budget.start();
  }

  /** Whether no further member has room. */
  get isFull(): boolean {
    return this.#isFull || this.#text.length > this.enough;
  }

  /** Returns whether there is time for the text of another member; records it if there is not. */
  hasTime(): boolean {
    return this.budget.hasTime();
  }

  /** Number of bytes of text for which there is room, in UTF-8. */
  get room(): number {
    return Math.max(0, this.budget.limits.textBytes - this.budget.textBytes);
  }

  /** Number of members so far. */
  get members(): number {
    return this.#members;
  }

  /** Records what was left out, as a sentence. */
  cut(sentence: string): void {
    this.#cuts.add(sentence);
    this.budget.cuts.add(sentence);
  }

  /** Records why everything that follows is left out, as a sentence. */
  stop(sentence: string): void {
    this.cut(sentence);
    this.#isFull = true;
  }

  /**
   * Records that everything that follows is left out because of its number.
   * @param what the name of one: `member`, `message`
   */
  stopAt(limit: number, what: string): void {
    this.stop(`There are more than ${counted(limit, what)}.`);
  }

  /** Reads a document within. Its text counts when it is added here, and not before. */
  async nested<T>(read: () => Promise<T>): Promise<T> {
    const { textBytes } = this.budget;
    try {
      return await read();
    } finally {
      this.budget.textBytes = textBytes;
    }
  }

  /**
   * Adds the heading of a member.
   * @returns whether there was room for it
   */
  heading(name: string): boolean {
    if (this.isFull) return false;
    this.#members += 1;
    this.#add(`\n\n${name.replace(/\s+/g, ' ').trim()}\n`);
    return true;
  }

  /** Adds the text of the member whose heading was added last. */
  add(text: string): void {
    this.#add(`${text}\n`);
  }

  /** Returns the text. If something was left out, its last line says so. */
  end(): string {
    const text = this.#text.end();
    // The time may have ended within a member.
    const { cuts, lateness } = this.budget;
    if (cuts.has(lateness)) this.#cuts.add(lateness);
    if (this.#cuts.size === 0) return text;
    return `${text}\n\nA part is left out here. ${[...this.#cuts].join(' ')}`;
  }

  #add(text: string): void {
    const { room } = this;
    const size = Buffer.byteLength(text);
    this.budget.textBytes += size;
    if (size <= room) {
      this.#text.add(text);
      return;
    }
    const begin = Buffer.from(text.slice(0, room)).subarray(0, room);
    // A character that is cut is left out.
    this.#text.add(new TextDecoder().decode(begin, { stream: true }));
    this.stop(`There are more than ${formatBytes(this.budget.limits.textBytes)} of text.`);
  }
}
