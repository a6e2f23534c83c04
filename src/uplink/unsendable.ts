import { AWAITS_PROGRAM } from '../content/helpers/readable.js';
import { fileStat } from '../lib/file.js';
import type { ContentRules } from '../peer/dialects/dialect.js';
import { type Failure, itemName, type PendingItem } from '../state/entry.js';
import { wasSkippedFor } from '../state/history.js';
import { returned, skipped } from '../state/transitions.js';
import type { UplinkDeps } from './deps.js';
import { type Unsendable, withoutWords } from './documents.js';
import type { FailureAttribution } from './failure-attribution.js';

/** Delay before a file that changed while it was read is read again, in ms. */
const CHANGED_FILE_DELAY_MS = 2_000;

/**
 * Stores in the state what becomes of items whose files have nothing to send: they are skipped,
 * quarantined, or looked at again.
 */
export class Unsendables {
  constructor(
    private readonly deps: UplinkDeps,
    private readonly attribution: FailureAttribution,
  ) {}

  reject(item: PendingItem, why: Unsendable, rules: ContentRules): void {
    const isHere = this.deps.folders.stateOf(item.folder) === 'there';
    // A version without a hash makes the next scan that can read the file take it up again.
    const stat = fileStat(item.version);
    if (why.kind === 'wordless') this.#skip(item, withoutWords(why.reader));
    else if (why.kind === 'refused' && AWAITS_PROGRAM.has(why.failure.code))
      this.#skip(item, why.failure);
    else if (why.kind === 'refused') this.attribution.quarantine(item, why.failure);
    else if (why.kind === 'tooLarge')
      this.attribution.quarantine(item, tooLarge(stat.size, why.textBytes, rules.maxBytes));
    else if (why.kind === 'unreadable' && isHere)
      this.attribution.quarantine(item, unreadable(why.code), stat);
    else if (why.kind === 'stale' && isHere) this.postpone(item);
  }

  /** Postpones an item whose file changed while it was read, and has the file looked at again. */
  postpone(item: PendingItem): void {
    const { clock, folders, state } = this.deps;
    state.put(returned(item, clock.now() + CHANGED_FILE_DELAY_MS));
    folders.recheck(item);
  }

  #skip(item: PendingItem, why: Failure): void {
    const { clock, log, state } = this.deps;
    const { folder, path } = item;
    state.put(skipped(item, item, fileStat(item.version), why, clock.now()));
    if (wasSkippedFor(item, why)) return;
    const words = `skipped ${itemName(item)}: ${why.message} ${why.hint}`;
    log.info({ event: 'skipped', folder, path, code: why.code }, words);
  }
}

function tooLarge(fileBytes: number, textBytes: number | undefined, most = 0): Failure {
  const has =
    textBytes === undefined ? `file has ${fileBytes}` : `text of the file has ${textBytes}`;
  return {
    code: 'TOO_LARGE_FOR_PEER',
    message: `The ${has} bytes, and this kind of peer takes ${most} at most in one document.`,
    hint: 'Split it, or keep such files from being taken up with maxFileSize of the folder.',
  };
}

function unreadable(code: string): Failure {
  return {
    code: 'UNREADABLE',
    message: `The file could not be read: ${code}.`,
    hint: 'Let the user that peersync runs as read it; it is noticed at the next scan, or at once by `peersync retry PATH`.',
  };
}
