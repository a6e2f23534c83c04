import type { FolderConfig } from '../config/config.js';
import type { Clock, Timer } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { Trouble } from '../state/entry.js';
import type { Root } from './root.js';
import { trouble } from './trouble.js';

/** How a root stands: `missing` also before it was looked at for the first time. */
export type Standing = 'there' | 'doubtful' | 'missing';

export interface RootGuardParts {
  readonly folder: FolderConfig;
  readonly root: Root;
  readonly clock: Clock;
  readonly log: Logger;
  readonly intervalMs: number;
  /** The root is not what it was, and is there: everything is to be looked at. */
  readonly onChanged: () => void;
  /** Something of the root was put into state. */
  readonly onRemembered: () => void;
  /** The root went away: there is nothing to wait for. */
  readonly onMissing: () => void;
  /** It stands otherwise than before. */
  readonly onStanding: () => void;
}

/**
 * Checks the root of a folder every few seconds, and says once what is wrong with it.
 *
 * The folder is *held* while its root is *missing* (or cannot be listed), and then nothing is looked at; or while it is
 * *doubtful*, and then new files are taken and none counts as removed.
 */
export class RootGuard {
  readonly #parts: RootGuardParts;
  #held: Trouble | undefined;
  #missing = false;
  #standing: Standing = 'missing';
  #scanIsDue = false;
  #timer: Timer | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #checks = 0;
  #stopped = false;

  constructor(parts: RootGuardParts) {
    this.#parts = parts;
  }

  /** Why the folder is held, if it is. */
  get held(): Trouble | undefined {
    return this.#held;
  }

  get missing(): boolean {
    return this.#missing;
  }

  get standing(): Standing {
    return this.#standing;
  }

  /** Whether the time of the next check is over. */
  get isOverdue(): boolean {
    return !this.#stopped && this.#parts.clock.monotonic() > this.#dueAt;
  }

  /** How often the root was checked. */
  get checks(): number {
    return this.#checks;
  }

  start(): void {
    const { clock, intervalMs } = this.#parts;
    this.#dueAt = clock.monotonic() + intervalMs;
    this.#timer = clock.after(intervalMs, async () => {
      await this.follow();
      if (!this.#stopped) this.start();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** The root could not be listed, though the last check was fine: the next one leads to a scan. */
  wasUnseen(): void {
    this.#scanIsDue = true;
  }

  /** Checks the root, and calls `onChanged` when it is there and not what it was. */
  async follow(): Promise<void> {
    if ((await this.check()) === 'changed') this.#scanIsDue = true;
    if (!this.#scanIsDue || this.#missing || this.#stopped) return;
    this.#scanIsDue = false;
    this.#parts.onChanged();
  }

  /** Checks the root. For a caller that is about to look at everything. */
  async check(): Promise<'same' | 'changed'> {
    const { root } = this.#parts;
    const found = await root.check();
    this.#checks += 1;
    if (this.#stopped) return 'same';
    const { path } = this.#parts.folder;
    const before = this.#held;
    if (found.kind === 'missing') this.#held = trouble.rootMissing(path, found.code, root.wasSeen());
    else if (found.kind === 'doubtful') this.#held = trouble.rootReplaced(path);
    else this.#held = undefined;
    const wasMissing = this.#missing;
    this.#missing = found.kind === 'missing';
    this.#stand(found.kind === 'same' || found.kind === 'replaced' ? 'there' : found.kind);
    if (found.kind === 'replaced' || (found.kind === 'doubtful' && before?.code !== this.#held?.code)) {
      await this.#remember(found.kind);
    }
    this.#say(before);
    if (this.#missing && !wasMissing) this.#parts.onMissing();
    return before?.code !== this.#held?.code || found.kind === 'replaced' ? 'changed' : 'same';
  }

  #stand(standing: Standing): void {
    if (standing === this.#standing) return;
    this.#standing = standing;
    this.#parts.onStanding();
  }

  async #remember(found: 'replaced' | 'doubtful'): Promise<void> {
    const { root, onRemembered } = this.#parts;
    try {
      await (found === 'replaced' ? root.accept() : root.doubt());
      onRemembered();
    } catch {
      // It went away again, which the next check sees.
      this.#scanIsDue = true;
    }
  }

  #say(before: Trouble | undefined): void {
    const { folder, log } = this.#parts;
    if (this.#held !== undefined && this.#held.code !== before?.code) {
      log.warn({ folder: folder.name, code: this.#held.code }, `${this.#held.message} ${this.#held.hint}`);
    }
    if (this.#held === undefined && before !== undefined) {
      log.info({ folder: folder.name }, `The folder ${folder.path} is back and is scanned.`);
    }
  }
}
