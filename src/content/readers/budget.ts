/**
 * Limits of what is read from the archives and mail folders of one document, wherever they are in
 * it. Beyond them, a part is left out, and the text says so.
 */
export const MEMBER_LIMITS = {
  /** Nesting of archives in archives and messages. Deeper ones give only their names. */
  depth: 3,
  /** Number of members of archives. */
  members: 10_000,
  /** Number of messages of each mail folder. The limits of text and time end most earlier. */
  messages: 100_000,
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
   * Processor time from the first archive on, in ms. After it, members give only their names. It is
   * less than the limit of the process (`MAX_CPU_MS`), which would refuse the whole document.
   */
  cpuMs: 40_000,
};
export type MemberLimits = typeof MEMBER_LIMITS;

/** How much of the limits one document has used, with all that is nested in it. */
export class MemberBudget {
  /** Sentences about what was left out. */
  readonly cuts = new Set<string>();
  /** Number of members of archives so far. */
  members = 0;
  /** Number of bytes unpacked so far. */
  bytes = 0;
  /** Size of the text of archives and mail folders so far, in bytes. */
  textBytes = 0;
  #cpuEndMs = Number.POSITIVE_INFINITY;

  constructor(readonly limits: MemberLimits = MEMBER_LIMITS) {}

  /** Must be called before an archive or a mail folder is read: from the first one, time counts. */
  start(): void {
    this.#cpuEndMs = Math.min(this.#cpuEndMs, cpuMs() + this.limits.cpuMs);
  }

  /** Returns whether there is time to go on; records it if there is not. */
  hasTime(): boolean {
    if (cpuMs() <= this.#cpuEndMs) return true;
    this.cuts.add(this.lateness);
    return false;
  }

  /** The sentence that `hasTime` records. */
  get lateness(): string {
    return `Reading took longer than ${this.limits.cpuMs / 1000} s.`;
  }
}

/** Returns the processor time of this process, in ms. */
function cpuMs(): number {
  const { system, user } = process.cpuUsage();
  return (system + user) / 1000;
}
