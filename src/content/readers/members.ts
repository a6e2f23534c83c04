import { counted } from '../../lib/text.js';
import { formatBytes } from '../../lib/units.js';
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
 * Limits of what is read from one archive or mail folder, and from what is nested in it. Beyond
 * them, a part of it is left out, and the text says so.
 */
export const MEMBER_LIMITS = {
  /** Nesting of archives in archives and messages. Deeper ones give only their names. */
  depth: 3,
  /** Number of members, or of messages. */
  members: 10_000,
  /** Size of one member, in bytes. A larger one gives only its name. */
  memberBytes: 32 * 2 ** 20,
  /** Number of bytes unpacked. Unpacking that many zeros takes 0.6 s. */
  bytes: 512 * 2 ** 20,
  /**
   * Size of the text in UTF-8, in bytes. As a page, it is usually smaller than the largest document
   * that a YaCy takes (20 MB): a page has more bytes for each line and each `<`.
   */
  textBytes: 8 * 2 ** 20,
  /**
   * Processor time, in ms. After it, members give only their names. It is less than the limit of
   * the process (`MAX_CPU_MS`), which would refuse the whole document.
   */
  cpuMs: 40_000,
};
export type MemberLimits = typeof MEMBER_LIMITS;

/**
 * Collects the text of many members, each under a heading with its name, and what was left out of
 * it.
 */
export class MemberText {
  readonly #text = new TextCollector();
  /** Sentences about what was left out. */
  readonly #cuts = new Set<string>();
  readonly #cpuEndMs: number;
  #members = 0;
  /** Size of the text, in bytes. */
  #bytes = 0;
  #isFull = false;

  /** @param enough number of characters after which the rest may be left out, without a word */
  constructor(
    readonly limits: MemberLimits,
    private readonly enough: number,
  ) {
    this.#cpuEndMs = cpuMs() + limits.cpuMs;
  }

  /** Whether no further member has room. */
  get isFull(): boolean {
    return this.#isFull || this.#text.length > this.enough;
  }

  /** Returns whether there is time for the text of another member; records it if there is not. */
  hasTime(): boolean {
    if (cpuMs() <= this.#cpuEndMs) return true;
    this.cut(`Reading took longer than ${this.limits.cpuMs / 1000} s.`);
    return false;
  }

  /** Number of bytes of text for which there is room, in UTF-8. */
  get room(): number {
    return Math.max(0, this.limits.textBytes - this.#bytes);
  }

  /** Number of members so far. */
  get members(): number {
    return this.#members;
  }

  /** Records what was left out, as a sentence. */
  cut(sentence: string): void {
    this.#cuts.add(sentence);
  }

  /** Records why everything that follows is left out, as a sentence. */
  stop(sentence: string): void {
    this.cut(sentence);
    this.#isFull = true;
  }

  /**
   * Adds the heading of a member.
   * @returns whether there was room for it
   */
  heading(name: string): boolean {
    if (this.#members >= this.limits.members)
      this.stop(`There are more than ${counted(this.limits.members, 'member')}.`);
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
    if (this.#cuts.size === 0) return text;
    return `${text}\n\nA part is left out here. ${[...this.#cuts].join(' ')}`;
  }

  #add(text: string): void {
    const { room } = this;
    const size = Buffer.byteLength(text);
    this.#bytes += size;
    if (size <= room) {
      this.#text.add(text);
      return;
    }
    const begin = Buffer.from(text.slice(0, room)).subarray(0, room);
    // A character that is cut is left out.
    this.#text.add(new TextDecoder().decode(begin, { stream: true }));
    this.stop(`There are more than ${formatBytes(this.limits.textBytes)} of text.`);
  }
}

/** Returns the processor time of this process, in ms. */
function cpuMs(): number {
  const { system, user } = process.cpuUsage();
  return (system + user) / 1000;
}
