import type { Clock, Timer } from '../lib/clock.js';
import { forEachLimited } from './limited.js';
import { joinPath } from './paths.js';
import type { Scanner } from './scan.js';
import type { Seen } from './settling.js';
import type { WatchPolicy } from './watch-policy.js';

export interface GatheringParts {
  readonly scanner: Pick<Scanner, 'path' | 'directory'>;
  readonly policy: WatchPolicy;
  readonly clock: Clock;
  /** So much was gathered that to scan the whole folder costs less than to look at each. */
  readonly onTooMuch: () => void;
  readonly onError: (error: unknown) => void;
  /** Everything that was gathered was looked at. */
  readonly onQuiet: () => void;
}

/**
 * Where in a folder is to be looked: what hints named, and what settled. It is *gathered* for a moment, so that many
 * hints of one path cost one look, and then *looked at*, a few paths at a time; what comes meanwhile is next.
 */
export class Gathering {
  readonly #parts: GatheringParts;
  /** Names by directory, or that anything in a directory may have changed. */
  readonly #changes = new Map<string, Set<string> | 'anything'>();
  #paths = 0;
  #rounds = 0;
  /** Files whose rest may be over by now, and those that were found out of date. */
  #again: { readonly path: string; readonly seen: Seen | undefined }[] = [];
  #looking: Promise<void> | undefined;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(parts: GatheringParts) {
    this.#parts = parts;
  }

  get busy(): boolean {
    return this.#looking !== undefined || this.#changes.size > 0 || this.#again.length > 0;
  }

  /** Whether something was gathered that is not being looked at. */
  get waits(): boolean {
    return (
      !this.#stopped && this.#looking === undefined && (this.#changes.size > 0 || this.#again.length > 0)
    );
  }

  /** How often it was begun to look at what was gathered. */
  get rounds(): number {
    return this.#rounds;
  }

  /** Something happened to a name in a directory, or, without a name, to anything in it. */
  add(directory: string, name: string | undefined): void {
    const known = this.#changes.get(directory);
    // A name that is not valid UTF-8 cannot be looked up.
    const isNameless = name === undefined || name.includes('\ufffd');
    if (known === 'anything' || (!isNameless && known?.has(name))) return;
    if (isNameless) this.#changes.set(directory, 'anything');
    else if (known === undefined) this.#changes.set(directory, new Set([name]));
    else known.add(name);
    this.#paths += 1;
    if (this.#paths > this.#parts.policy.mostGathered) {
      this.#changes.clear();
      this.#paths = 0;
      this.#parts.onTooMuch();
    }
    this.#lookSoon();
  }

  /** A file is to be looked at again; `seen` is how it looked while it settled. */
  again(path: string, seen: Seen | undefined): void {
    this.#again.push({ path, seen });
    this.#lookSoon();
  }

  /** Forgets what was gathered. */
  clear(): void {
    this.#changes.clear();
    this.#paths = 0;
    this.#again = [];
  }

  /** Forgets what was gathered, and resolves when nothing is looked at any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.clear();
    await this.#looking;
  }

  #lookSoon(): void {
    if (this.#looking !== undefined || this.#stopped) return;
    this.#timer ??= this.#parts.clock.after(this.#parts.policy.gatherMs, () => {
      this.#timer = undefined;
      if (this.busy) this.#looking = this.#lookAround();
    });
  }

  async #lookAround(): Promise<void> {
    while ((this.#changes.size > 0 || this.#again.length > 0) && !this.#stopped) {
      try {
        await this.#lookOnce();
      } catch (error) {
        this.#parts.onError(error);
      }
    }
    this.#looking = undefined;
    this.#parts.onQuiet();
  }

  async #lookOnce(): Promise<void> {
    const { scanner, policy } = this.#parts;
    this.#rounds += 1;
    const again = this.#again;
    const changes = [...this.#changes];
    this.clear();
    await forEachLimited(again, policy.looksAtOnce, ({ path, seen }) => scanner.path(path, 'change', seen));
    for (const [directory, names] of changes) {
      if (names === 'anything') {
        await scanner.directory(directory);
        continue;
      }
      await forEachLimited(names, policy.looksAtOnce, (name) =>
        scanner.path(joinPath(directory, name), 'change'),
      );
    }
  }
}
