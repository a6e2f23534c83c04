import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { PeersyncError } from '../lib/errors.js';
import { inSlices } from '../lib/slices.js';
import { compareByCodePoint, counted, sentence } from '../lib/text.js';
import type { Citation, CitingDocument } from '../peer/citation.js';
import type { ConfirmedItem, Entry, GoneItem } from '../state/entry.js';
import type { Target } from './held-directory.js';
import { type FollowOptions, type FollowResult, Mirror } from './mirror.js';
import { type CitationsPlan, passes } from './plan.js';
import type { MirrorRecord, Pass } from './record.js';
import { fillTemplate } from './target-path.js';
import {
  type ExistingFile,
  hashOf,
  removeWhole,
  replaceWhole,
  stampOfTarget,
} from './whole-file.js';

/** The items between two commits of the position of a pass. */
const SAVE_EVERY = 100;
/** The failures in a row after which a pass waits. */
const MAX_FAILURES = 5;
/** The delay between the confirmation of an item and the request for its citations, in ms. */
const NEW_ITEMS_DELAY_MS = 20_000;
/** Errors about a single item. The pass goes on with the others. */
const ITEM_ERRORS = [
  'PEER_ANSWER',
  'PEER_ANSWER_TOO_LARGE',
  'PEER_REFUSED',
  'PEER_FAILED',
  'MIRROR_BLOCKED',
];
/** The items in memory at a time. */
const PAGE_SIZE = 2_000;
/** The records that are visited between two pauses. */
const RECORDS_PER_SLICE = 5_000;
/** The size of the largest citation file, in bytes. A larger file is not ours. */
const MAX_FILE_BYTES = 64 * 2 ** 20;
/** The digits of the time in the cursor key of an item. */
const TIME_DIGITS = 15;
/** Sorts after all cursor keys. */
const KEYS_END = ':';

/** An item that has, or had, a citation file. */
type CitedItem = ConfirmedItem | GoneItem;

/** One run: the position of its pass, and the items that failed. */
interface Run {
  pass: Pass;
  readonly failures: string[];
  readonly signal: AbortSignal;
}

/**
 * Writes a file for each confirmed item of a folder with the citations that the peer knows.
 *
 * A *pass* visits all items, with one request each. Its position is kept in state, so that the next
 * run continues after a restart, or after the peer was unreachable. A document that the peer does
 * not show keeps its file. The file of an item that is gone is removed. The next pass begins
 * `every` after the beginning of the last, and with each run that a person asks for.
 *
 * Items that are confirmed, or gone, after a pass began are visited soon: in a run of their own, or
 * within the next pass.
 */
export class CitationsMirror extends Mirror<CitationsPlan> {
  /**
   * The time since when there may be new items. At first there may be those of an earlier process.
   */
  #newSince: number | undefined = this.deps.clock.now();

  /** An interrupted pass continues soon. After a complete one the next begins in time. */
  override nextIn(): number | undefined {
    const pass = passes.of(this.deps.state, this.name);
    return pass === undefined || pass.after !== undefined ? undefined : this.#untilNext(pass);
  }

  /** Returns whether there have been new items for a while. */
  override async wantsRun(): Promise<boolean> {
    return (
      this.#newSince !== undefined && this.deps.clock.now() - this.#newSince >= NEW_ITEMS_DELAY_MS
    );
  }

  itemChanged(item: Entry): void {
    if (isCited(item)) this.#newSince ??= this.deps.clock.now();
  }

  async follow(
    before: MirrorRecord | undefined,
    { isAsked, signal }: FollowOptions,
  ): Promise<FollowResult> {
    const now = this.deps.clock.now();
    const known = passes.of(this.deps.state, this.name);
    const isPassDue = isAsked || known === undefined || this.#untilNext(known) === 0;
    const isBegun = known?.after !== undefined;
    const begun = known ?? { beganAt: now, files: 0, changed: false };
    const run: Run = { pass: isBegun ? begun : { ...begun, changed: false }, failures: [], signal };
    if (known !== undefined) await this.#visitAll(run, 'newAfter');
    if (isPassDue) {
      if (!isBegun)
        run.pass = { ...run.pass, beganAt: now, after: '', newAfter: orderKey(now), files: 0 };
      await this.#visitAll(run, 'after');
      this.#keep(run, { ...run.pass, after: undefined });
    }
    // Without a pass the notes of the last one still hold.
    const last = isPassDue ? undefined : before;
    const notes = notesOf(run.failures) ?? last?.notes;
    const facts = {
      rows: run.pass.files,
      notes,
      succeededAt: last?.succeededAt ?? this.deps.clock.now(),
    };
    return { kind: 'current', changed: run.pass.changed, facts };
  }

  /** Returns the ms until the next pass, 0 if the last was interrupted. */
  #untilNext({ after, beganAt }: Pass): number {
    const now = this.deps.clock.now();
    // A time in the future is of an earlier run with a wrong clock.
    return after === undefined ? Math.max(0, Math.min(now, beganAt) + this.every - now) : 0;
  }

  /**
   * Visits the items of the pass (`after`), or those that changed since it began (`newAfter`). The
   * position does not advance past a failed item: the next run continues from there.
   */
  async #visitAll(run: Run, cursor: 'after' | 'newAfter'): Promise<void> {
    const isPass = cursor === 'after';
    if (!isPass) this.#newSince = undefined;
    const began = orderKey(run.pass.beganAt);
    let last = run.pass[cursor] ?? began;
    let failed = 0;
    let visited = 0;
    for await (const item of this.#itemsAfter(last, isPass ? began : undefined)) {
      run.signal.throwIfAborted();
      const failure = await this.#tryVisit(run, item, isPass);
      if (failure !== undefined) failed += 1;
      // The peer is not asked about an item that is gone.
      else if (item.status === 'confirmed') failed = 0;
      if (failed === MAX_FAILURES && failure !== undefined) throw failure;
      last = orderKey(item.since, item.path);
      this.#keep(run, failed === 0 ? { ...run.pass, [cursor]: last } : run.pass);
      visited += 1;
      if (visited % SAVE_EVERY === 0) await this.deps.requests.commit();
      if (isPass && (await this.wantsRun())) await this.#visitAll(run, 'newAfter');
    }
    this.#keep(run, { ...run.pass, [cursor]: last });
  }

  /**
   * Visits an item, and counts its file. Notes a failure that is about this item alone.
   *
   * @returns the failure
   * @throws any other error
   */
  async #tryVisit(run: Run, item: CitedItem, isPass: boolean): Promise<PeersyncError | undefined> {
    try {
      const { files, changed } = await this.#visit(item, isPass, run.signal);
      run.pass = {
        ...run.pass,
        files: run.pass.files + files,
        changed: run.pass.changed || changed,
      };
      return undefined;
    } catch (error) {
      if (!isOfThisItem(error)) throw error;
      run.failures.push(`${item.path}: ${error.message}`);
      return error;
    }
  }

  #keep(run: Run, pass: Pass): void {
    run.pass = pass;
    passes.keep(this.deps.state, this.name, pass);
  }

  /**
   * Updates the file of one item. A document that the peer does not show keeps its file, and a pass
   * does not count it.
   *
   * @returns the change of the number of files: a pass counts all of them anew
   */
  async #visit(
    item: CitedItem,
    isPass: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly files: number; readonly changed: boolean }> {
    const { folder, filter, ch, path: template } = this.plan.settings;
    const { root, peer, requests } = this.deps;
    const { path } = fillTemplate(template, { folder, path: item.path.split('/') });
    const target = { root, path };
    const counted = !isPass && (await stampOfTarget(target)) !== undefined ? 1 : 0;
    if (item.status === 'gone') {
      // Makes no directories for an item without a file.
      const onReplace = (_: unknown, old?: ExistingFile) => this.#keepUnlessOurs(target, old);
      const changed =
        (await stampOfTarget(target)) !== undefined && (await removeWhole(target, { onReplace }));
      return { files: -counted, changed };
    }
    const citation = await requests.run(signal, (signal) =>
      peer.citation({ url: item.url }, { filter, ch, signal }),
    );
    if (citation === undefined) return { files: 0, changed: false };
    const body = jsonOf(citation, item.url);
    const onReplace = (_: unknown, old?: ExistingFile) => this.#keepUnlessOurs(target, old, body);
    const { changed } = await replaceWhole(target, [signed(body)], { signal, onReplace });
    return { files: 1 - counted, changed };
  }

  /**
   * Saves an edited file as a conflict file.
   *
   * @param body of the file that replaces it
   */
  async #keepUnlessOurs(
    target: Target,
    old: ExistingFile | undefined,
    body?: string,
  ): Promise<void> {
    if (old === undefined) return;
    const text = old.stamp.size > MAX_FILE_BYTES ? '' : await readFile(old.path, 'utf8');
    const end = SIGNED.exec(text);
    const isOurs = end !== null && text === signed(text.slice(0, end.index));
    // A file of an earlier release has no sha256.
    if (!isOurs && text !== `${body}\n}\n`) await this.keepEdits(target, await hashOf(old.path));
  }

  /**
   * Yields the confirmed and the gone items of the folder after the key `last`, up to `end`, in
   * order. Memory is bounded: all records of the folder are visited once per page.
   */
  async *#itemsAfter(last: string, end = KEYS_END): AsyncGenerator<CitedItem> {
    const { state } = this.deps;
    const { folder } = this.plan.settings;
    for (;;) {
      let keys: string[] = [];
      let limit = end;
      for await (const group of inSlices(state.entries.all(folder), RECORDS_PER_SLICE)) {
        for (const entry of group) {
          const key = isCited(entry) ? orderKey(entry.since, entry.path) : '';
          if (key > last && key < limit) keys.push(key);
        }
        if (keys.length < 2 * PAGE_SIZE) continue;
        keys = keys.sort().slice(0, PAGE_SIZE);
        limit = keys.at(-1) ?? limit;
      }
      const page = keys.sort().slice(0, PAGE_SIZE);
      for (const key of page) {
        const item = state.get(folder, key.slice(TIME_DIGITS));
        if (item !== undefined && isCited(item) && orderKey(item.since, item.path) === key)
          yield item;
      }
      if (page.length < PAGE_SIZE) return;
      last = page.at(-1) ?? last;
    }
  }
}

function orderKey(since: number, path = ''): string {
  return String(since).padStart(TIME_DIGITS, '0') + path;
}

function isCited(entry: Entry): entry is CitedItem {
  return entry.status === 'confirmed' || entry.status === 'gone';
}

/** Returns whether an error is about this item alone. */
function isOfThisItem(error: unknown): error is PeersyncError {
  return error instanceof PeersyncError && ITEM_ERRORS.includes(error.code);
}

function notesOf(failures: readonly string[]): string[] | undefined {
  const [first] = failures;
  if (first === undefined) return undefined;
  return [
    `${counted(failures.length, 'document')} could not be looked up, the first of them ${sentence(first)}`,
  ];
}

/**
 * Returns the text of a citation file without the end that `signed` adds. The order of the answer
 * does not matter.
 */
function jsonOf(citation: Citation, itemUrl: string): string {
  const { url = itemUrl, urlhash, title, citing, similar } = citation;
  const documents = (all: readonly CitingDocument[]) =>
    all
      .toSorted((a, b) => compareByCodePoint(a.url, b.url))
      .map(({ url, title, sentences }) => ({ url, title, sentences }));
  const sentences = citation.sentences
    .toSorted((a, b) => a.number - b.number || compareByCodePoint(a.text, b.text))
    .map(({ number, text, appearsIn }) => ({
      number,
      text,
      appearsIn: appearsIn.toSorted(compareByCodePoint),
    }));
  const sorted = {
    url,
    urlhash,
    title,
    sentences,
    citing: documents(citing),
    similar: documents(similar),
  };
  return JSON.stringify(sorted, undefined, 2).slice(0, -'\n}'.length);
}

/** Appends the sha256 of the text. It tells a file of ours from an edited one. */
function signed(body: string): string {
  const sha256 = createHash('sha256').update(body).digest('hex');
  return `${body},\n  "sha256": "${sha256}"\n}\n`;
}

const SIGNED = /,\n {2}"sha256": "[\da-f]{64}"\n\}\n$/;
