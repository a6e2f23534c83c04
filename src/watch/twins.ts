import type { Entry } from '../state/entry.js';
import { trouble } from './trouble.js';
import type { WatchState } from './watch-state.js';

const ASCII = /^[\0-\x7f]*$/;

/**
 * Files of one folder whose paths are the same but for their Unicode form: `ü` as one character (NFC) or as two (NFD).
 * They have one URL, so they would be one document, now with the one content and now with the other.
 *
 * The first that is taken *holds* the document; the others wait in quarantine until it is gone or passed over.
 */
export class Twins {
  readonly #folder: string;
  readonly #state: WatchState;
  /** Paths that are not in NFC, by their NFC form; those in NFC are found in state. */
  readonly #others = new Map<string, Set<string>>();

  constructor(folder: string, state: WatchState) {
    this.#folder = folder;
    this.#state = state;
    for (const path of state.entries.paths(folder)) this.met(path);
  }

  /** To be told of every path that is put into state. */
  met(path: string): void {
    if (ASCII.test(path)) return;
    const form = path.normalize('NFC');
    if (form === path) return;
    const known = this.#others.get(form);
    if (known === undefined) this.#others.set(form, new Set([path]));
    else known.add(path);
  }

  /** The other path that holds the document of `path`, if one does. */
  holderOf(path: string): string | undefined {
    return this.#twinsOf(path).find((twin) => {
      const entry = this.#state.get(this.#folder, twin);
      if (entry === undefined || Twins.waits(entry)) return false;
      return entry.status !== 'gone' && entry.status !== 'passed';
    });
  }

  /** The paths that wait for the document of `path`. */
  waitingFor(path: string): string[] {
    return this.#twinsOf(path).filter((twin) => {
      const entry = this.#state.get(this.#folder, twin);
      return entry !== undefined && Twins.waits(entry);
    });
  }

  /** Whether a twin has the document of this file. */
  static waits(entry: Entry): boolean {
    return entry.status === 'quarantined' && entry.trouble.code === trouble.sameDocument('').code;
  }

  #twinsOf(path: string): string[] {
    if (ASCII.test(path)) return [];
    const form = path.normalize('NFC');
    return [form, ...(this.#others.get(form) ?? [])].filter((twin) => twin !== path);
  }
}
