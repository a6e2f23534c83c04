import { basename, join } from 'node:path';
import type { FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import { openUnchanged, type ReadOrder, type Refusal, refusalFor } from '../content/file-reader.js';
import type { OriginalAnswer } from '../embedded/daemon-link.js';
import type { Clock } from '../lib/clock.js';
import { withConfig } from '../lib/hint.js';
import { escapeInvisible, sentence, shellWord } from '../lib/text.js';
import type { CurrentConfig } from '../report/live.js';
import {
  type ConfirmedItem,
  type Entry,
  isAway,
  isItem,
  isMissing,
  keptOutFor,
} from '../state/entry.js';
import type { State } from '../state/state.js';
import { rootAt } from '../watch/root.js';
import { UNNAMED } from '../watch/rules/failures.js';
import { FolderRules } from '../watch/rules/folder-rules.js';
import type { Watcher } from '../watch/watcher.js';

export interface OriginalsDeps {
  readonly state: Pick<State, 'committed'>;
  readonly watcher: Pick<Watcher, 'folderState' | 'isUnmounted'>;
  readonly current: Pick<CurrentConfig, 'config'>;
  readonly clock: Pick<Clock, 'after'>;
  /** The configuration file, if commands have to name it with `-c`. */
  readonly configFile?: string | undefined;
  /** @default openUnchanged */
  readonly openFile?: typeof openUnchanged;
}

/** Why an original is not served. */
interface Unserved {
  readonly status: 404 | 409 | 503;
  /** One sentence. */
  readonly why: string;
  /** One sentence; the command that explains the file unless given. */
  readonly hint?: string;
}

/** The most files that are being opened. While a mount hangs, each keeps a thread of Node. */
const MAX_OPENING = 2;
/** The longest wait until fewer files are being opened, in ms. */
const MAX_WAIT_MS = 10_000;

const AGAIN = 'Try again in a moment.';
/** Stands where a command with the path of the file would show its name. */
const SEE_STATUS = 'See `peersync status`.';
const CROWDED: Unserved = {
  status: 503,
  why: 'Other files are being opened, and their disk or network mount does not answer.',
  hint: AGAIN,
};
const HELD: Unserved = {
  status: 409,
  why: 'The folder of the file is not there, or is another one than before.',
  hint: '`peersync status` says what is wrong with it.',
};
/** Answers about files that could not be opened as they were confirmed. */
const UNOPENED: Readonly<Record<Exclude<Refusal['kind'], 'unreadable'>, Unserved>> = {
  raced: {
    status: 409,
    why: 'The file was changed or moved after it was confirmed.',
  },
  busy: { status: 503, why: 'The system has no more open files or memory.', hint: AGAIN },
  vanished: { status: 404, why: 'The file is not there any more.' },
  notRegular: {
    status: 409,
    why: 'Something else than the file stands at its path, such as a symbolic link.',
  },
};

/**
 * Opens the files of confirmed documents, for the pages of the embedded peer.
 *
 * A file is named by the URL of its document alone: no path from outside is opened. It is served
 * only if the state on disk has it as confirmed, the rules of its folder take it now, the folder is
 * the one that was scanned, and the open file stands at that path, through no link, in the version
 * that was confirmed.
 *
 * At most MAX_OPENING files are being opened at a time. The others wait, each for MAX_WAIT_MS.
 */
export class Originals {
  #opening = 0;
  /** Called in this order when a file has been opened or refused. */
  readonly #waiting = new Set<() => void>();

  constructor(private readonly deps: OriginalsDeps) {}

  /** Whether `open` is likely to open a file. Looks only at the state. */
  has(url: string): boolean {
    if (!this.#areServed) return false;
    const entry = this.#recordOf(url);
    return entry?.status === 'confirmed' && this.#folderOf(entry) !== undefined;
  }

  async open(url: string): Promise<OriginalAnswer> {
    if (!(await this.#begin())) return this.#refused(CROWDED);
    try {
      return await this.#openNow(url);
    } finally {
      this.#end();
    }
  }

  /** Waits until a file may be opened. @returns false if that takes too long */
  #begin(): Promise<boolean> | true {
    if (this.#opening < MAX_OPENING) {
      this.#opening += 1;
      return true;
    }
    return new Promise((resolve) => {
      const begin = (): void => {
        timer.cancel();
        resolve(true);
      };
      const giveUp = (): void => {
        this.#waiting.delete(begin);
        resolve(false);
      };
      const timer = this.deps.clock.after(MAX_WAIT_MS, giveUp, { background: true });
      this.#waiting.add(begin);
    });
  }

  /** Leaves the place to the file that has waited longest. */
  #end(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#opening -= 1;
    else {
      this.#waiting.delete(next);
      next();
    }
  }

  async #openNow(url: string): Promise<OriginalAnswer> {
    if (!this.#areServed)
      return this.#refused({
        status: 404,
        why: 'Files are not opened here: `peer.embedded.originals` is false.',
        hint: 'Open the file by its path.',
      });
    const entry = this.#recordOf(url);
    if (entry === undefined)
      return this.#refused({
        status: 404,
        why: 'No folder has the file of this document: it was pushed by itself, or by another peersync.',
        hint: '`peersync list` names the files of the folders.',
      });
    if (entry.status !== 'confirmed') return this.#refused(unconfirmed(entry), entry);
    const folder = this.#folderOf(entry);
    if (folder === undefined) return this.#refused(HELD, entry);
    const order = await this.#orderOf(entry, folder);
    if (!('file' in order)) return this.#refused(order, entry);
    try {
      const { handle } = await (this.deps.openFile ?? openUnchanged)(order);
      const { encoding, sha256 } = entry.version;
      const name = basename(entry.path);
      return { kind: 'opened', handle, name, stat: order.stat, sha256, encoding };
    } catch (error) {
      const refusal = refusalFor(error);
      if (refusal.kind !== 'unreadable') return this.#refused(UNOPENED[refusal.kind], entry);
      const why = `The file cannot be read (${refusal.code}).`;
      return this.#refused({ status: 409, why }, entry);
    }
  }

  get #areServed(): boolean {
    return this.deps.current.config.peer.embedded.originals;
  }

  /**
   * Returns the record with this URL: that of a confirmed file if there is one. A file that was
   * skipped or moved has the URL of its document, too.
   */
  #recordOf(url: string): Entry | undefined {
    let other: Entry | undefined;
    for (const entry of this.deps.state.committed.entries.mayBeAt(url)) {
      const ownUrl = isItem(entry) ? entry.url : entry.sent?.url;
      if (ownUrl !== url) continue;
      if (entry.status === 'confirmed') return entry;
      if (other === undefined || isAway(other)) other = entry;
    }
    return other;
  }

  /** Returns the folder of a file; undefined if it is away or has another URL now. */
  #folderOf({ folder, path, url }: ConfirmedItem): FolderConfig | undefined {
    const { current, watcher } = this.deps;
    const found = current.config.folders.find(({ name }) => name === folder);
    if (found === undefined || documentUrl(found.url, path) !== url) return undefined;
    const isThere = watcher.folderState(folder) === 'there';
    return isThere && !watcher.isUnmounted({ folder, path }) ? found : undefined;
  }

  /** Returns how to open the file, or the reason why a rule or the folder forbids it. */
  async #orderOf(
    { path, version }: ConfirmedItem,
    folder: FolderConfig,
  ): Promise<ReadOrder | Unserved> {
    const rules = new FolderRules(folder);
    await rules.ignoreFiles.readAllAbove(path);
    const decision = rules.decide(path);
    if (!decision.take)
      return {
        status: 404,
        why: `A rule keeps the file out: ${sentence(decision.rule)}`,
        hint: SEE_STATUS,
      };
    // The watcher looks at the root every few seconds, which is too seldom for this.
    const root = await rootAt(folder, this.deps.state.committed).catch(() => undefined);
    if (root === undefined || root.replaced !== undefined) return HELD;
    const { real } = root.found;
    const linksWithin = folder.followSymlinks ? real : undefined;
    return { file: join(real, path), stat: version, linksWithin };
  }

  #refused({ hint, status, why }: Unserved, entry?: Entry): OriginalAnswer {
    const { configFile, current } = this.deps;
    const root = current.config.folders.find(({ name }) => name === entry?.folder)?.path;
    const command =
      entry === undefined || root === undefined
        ? SEE_STATUS
        : `\`${whyCommand(join(root, entry.path))}\` says more about it.`;
    return {
      kind: 'refused',
      status,
      message: withConfig(`${why} ${hint ?? command}`, configFile),
    };
  }
}

/** Returns the command that explains a file, without the configuration. */
export function whyCommand(path: string): string {
  return `peersync why ${shellWord(escapeInvisible(path))}`;
}

function unconfirmed(entry: Entry): Unserved {
  const failure = entry.status === 'quarantined' ? entry.failure : keptOutFor(entry);
  if (failure !== undefined) {
    const state = entry.status === 'removing' ? 'kept out' : entry.status;
    const why = `The file is ${state}: ${sentence(failure.message)}`;
    return { status: 409, why, ...(UNNAMED.has(failure.code) && { hint: SEE_STATUS }) };
  }
  if (isMissing(entry)) return { status: 404, why: 'The file was removed from its folder.' };
  return { status: 409, why: 'The newest version of the file is not confirmed yet.' };
}
