import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { messageOf, PeersyncError } from '../lib/errors.js';
import { inSlices } from '../lib/slices.js';
import { compareByCodePoint, counted, sentence } from '../lib/text.js';
import type { Citation, CitingDocument } from '../peer/citation.js';
import type { ConfirmedItem, Entry, GoneItem } from '../state/entry.js';
import { type Followed, type FollowOptions, Mirror } from './mirror.js';
import type { Target } from './place.js';
import { type CitationsPlan, passes } from './plan.js';
import type { MirrorRecord, Pass } from './record.js';
import { fillTemplate } from './target-path.js';
import { hashOf, removeWhole, replaceWhole, type Standing, stampOfTarget } from './whole-file.js';

/** How many items are looked at between two saves of where the pass stands. */
const SAVE_EVERY = 100;
/** So many items in a row that fail are no accident: the pass waits. */
const MOST_FAILURES = 5;
/**
 * So long after an item was confirmed the peer is asked for it, and for all that were confirmed
 * meanwhile, in ms.
 */
const SOON_MS = 20_000;
const OF_AN_ITEM = [
  'PEER_ANSWER',
  'PEER_ANSWER_TOO_LARGE',
  'PEER_REFUSED',
  'PEER_FAILED',
  'MIRROR_BLOCKED',
];
/** How many items are held at a time. */
const PAGE = 2_000;
/** How many records are looked at without a pause. */
const SLICE = 5_000;
/** Bytes: a larger file is none that a citation became. */
const LARGEST = 64 * 2 ** 20;
const TIME_DIGITS = 15;
/** Behind all keys of items. */
const KEYS_END = ':';

/** An item that has, or had, a citation file. */
type CitedItem = ConfirmedItem | GoneItem;

/** One run: how far its pass is, and what could not be looked at. */
interface Run {
  pass: Pass;
  readonly failures: string[];
  readonly signal: AbortSignal;
}

/**
 * A file for each confirmed item of a folder with what the peer knows of its citations.
 *
 * A *pass* goes over all items, one request each; where it stands is kept in state, so that the
 * next run goes on after a restart, or after the peer was away. A document that the peer does not
 * show keeps its file, an item that is gone loses it. The next pass begins `every` after the
 * beginning of the last, and with each run that a person asks for.
 *
 * What is confirmed, or gone, after a pass began is looked at soon, in a run of its own or in the
 * middle of the next pass.
 */
export class CitationsMirror extends Mirror<CitationsPlan> {
  /**
   * Since when there may be new items to look at. At first there may be those of an earlier
   * process.
   */
  #newSince: number | undefined = this.deps.clock.now();

  /** A pass that was cut short goes on soon; one that ended keeps its distance to the next. */
  override nextIn(): number | undefined {
    const pass = passes.of(this.deps.state, this.name);
    return pass === undefined || pass.after !== undefined ? undefined : this.#untilNext(pass);
  }

  /** Whether there have been new items for a while. */
  override async wantsRun(): Promise<boolean> {
    return this.#newSince !== undefined && this.deps.clock.now() - this.#newSince >= SOON_MS;
  }

  itemChanged(item: Entry): void {
    if (isCited(item)) this.#newSince ??= this.deps.clock.now();
  }

  async follow(
    before: MirrorRecord | undefined,
    { isAsked, signal }: FollowOptions,
  ): Promise<Followed> {
    const now = this.deps.clock.now();
    const known = passes.of(this.deps.state, this.name);
    const isPassDue = isAsked || known === undefined || this.#untilNext(known) === 0;
    const isBegun = known?.after !== undefined;
    const begun = known ?? { beganAt: now, files: 0, changed: false };
    const run: Run = { pass: isBegun ? begun : { ...begun, changed: false }, failures: [], signal };
    if (known !== undefined) await this.#lookAt(run, 'newAfter');
    if (isPassDue) {
      if (!isBegun)
        run.pass = { ...run.pass, beganAt: now, after: '', newAfter: keyOf(now), files: 0 };
      await this.#lookAt(run, 'after');
      this.#keep(run, { ...run.pass, after: undefined });
    }
    // Of the items that were not looked at nothing new is known.
    const last = isPassDue ? undefined : before;
    const notes = notesOf(run.failures) ?? last?.notes;
    const facts = {
      rows: run.pass.files,
      notes,
      succeededAt: last?.succeededAt ?? this.deps.clock.now(),
    };
    return { kind: 'followed', changed: run.pass.changed, facts };
  }

  /** How long until the next pass, in ms; 0 where the last was cut short. */
  #untilNext({ after, beganAt }: Pass): number {
    const now = this.deps.clock.now();
    // A time ahead is of an earlier run whose clock was wrong.
    return after === undefined ? Math.max(0, Math.min(now, beganAt) + this.every - now) : 0;
  }

  /**
   * Looks at the items of the pass (`after`), or at those that changed since it began (`newAfter`),
   * one after the other. Behind one that fails nothing is safe: the next run goes on from there.
   */
  async #lookAt(run: Run, cursor: 'after' | 'newAfter'): Promise<void> {
    const isPass = cursor === 'after';
    if (!isPass) this.#newSince = undefined;
    const began = keyOf(run.pass.beganAt);
    let last = run.pass[cursor] ?? began;
    let failed = 0;
    let looked = 0;
    for await (const item of this.#itemsBehind(last, isPass ? began : undefined)) {
      run.signal.throwIfAborted();
      try {
        const { files, changed } = await this.#look(item, isPass, run.signal);
        run.pass = {
          ...run.pass,
          files: run.pass.files + files,
          changed: run.pass.changed || changed,
        };
        if (item.status === 'confirmed') failed = 0;
      } catch (error) {
        if (!isOfThisItem(error)) throw error;
        failed += 1;
        run.failures.push(`${item.path}: ${messageOf(error)}`);
        if (failed === MOST_FAILURES) throw error;
      }
      last = keyOf(item.since, item.path);
      this.#keep(run, failed === 0 ? { ...run.pass, [cursor]: last } : run.pass);
      looked += 1;
      if (looked % SAVE_EVERY === 0) await this.deps.commit();
      if (isPass && (await this.wantsRun())) await this.#lookAt(run, 'newAfter');
    }
    this.#keep(run, { ...run.pass, [cursor]: last });
  }

  #keep(run: Run, pass: Pass): void {
    run.pass = pass;
    passes.keep(this.deps.state, this.name, pass);
  }

  /**
   * A document that the peer does not show keeps its file, which counts as none in a pass.
   *
   * @returns how many files there are more than were counted before: a pass counts all of them anew
   */
  async #look(
    item: CitedItem,
    isPass: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly files: number; readonly changed: boolean }> {
    const { folder, filter, ch, path: template } = this.plan.settings;
    const { root, peer, ask } = this.deps;
    const { path } = fillTemplate(template, { folder, path: item.path.split('/') });
    const target = { root, path };
    const counted = !isPass && (await stampOfTarget(target)) !== undefined ? 1 : 0;
    if (item.status === 'gone') {
      // No directories are made for what never had a file.
      const onReplace = (_: unknown, old?: Standing) => this.#keepUnlessOurs(target, old);
      const changed =
        (await stampOfTarget(target)) !== undefined && (await removeWhole(target, { onReplace }));
      return { files: -counted, changed };
    }
    const citation = await ask(signal, (signal) =>
      peer.citation({ url: item.url }, { filter, ch, signal }),
    );
    if (citation === undefined) return { files: 0, changed: false };
    const body = jsonOf(citation, item.url);
    const onReplace = (_: unknown, old?: Standing) => this.#keepUnlessOurs(target, old, body);
    const { changed } = await replaceWhole(target, [signed(body)], { signal, onReplace });
    return { files: 1 - counted, changed };
  }

  /**
   * Saves a file that somebody edited as a conflict file. @param body of the file that replaces it
   */
  async #keepUnlessOurs(target: Target, old: Standing | undefined, body?: string): Promise<void> {
    if (old === undefined) return;
    const text = old.stamp.size > LARGEST ? '' : await readFile(old.path, 'utf8');
    const end = SIGNED.exec(text);
    const isOurs = end !== null && text === signed(text.slice(0, end.index));
    // A file without the sum is one of an earlier release.
    if (!isOurs && text !== `${body}\n}\n`) await this.keepEdits(target, await hashOf(old.path));
  }

  /**
   * The confirmed and the gone items of the folder behind the key `last`, up to `end`, in order. In
   * bounded memory, at the price of looking at all records of the folder once a page.
   */
  async *#itemsBehind(last: string, end = KEYS_END): AsyncGenerator<CitedItem> {
    const { state } = this.deps;
    const { folder } = this.plan.settings;
    for (;;) {
      let keys: string[] = [];
      let limit = end;
      for await (const group of inSlices(state.entries.all(folder), SLICE)) {
        for (const entry of group) {
          const key = isCited(entry) ? keyOf(entry.since, entry.path) : '';
          if (key > last && key < limit) keys.push(key);
        }
        if (keys.length < 2 * PAGE) continue;
        keys = keys.sort().slice(0, PAGE);
        limit = keys.at(-1) ?? limit;
      }
      const page = keys.sort().slice(0, PAGE);
      for (const key of page) {
        const item = state.get(folder, key.slice(TIME_DIGITS));
        if (item !== undefined && isCited(item) && keyOf(item.since, item.path) === key) yield item;
      }
      if (page.length < PAGE) return;
      last = page.at(-1) ?? last;
    }
  }
}

function keyOf(since: number, path = ''): string {
  return String(since).padStart(TIME_DIGITS, '0') + path;
}

function isCited(entry: Entry): entry is CitedItem {
  return entry.status === 'confirmed' || entry.status === 'gone';
}

/** Whether only this item fails, as far as one can see; then the others may go on. */
function isOfThisItem(error: unknown): boolean {
  return error instanceof PeersyncError && OF_AN_ITEM.includes(error.code);
}

function notesOf(failures: readonly string[]): string[] | undefined {
  const [first] = failures;
  if (first === undefined) return undefined;
  return [
    `${counted(failures.length, 'document')} could not be looked at, the first of them ${sentence(first)}`,
  ];
}

/**
 * The same knowledge is the same text, in whatever order the peer sends it. @returns the text up to
 * what `signed` adds
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

/**
 * The file says the sha256 of what stands in it, by which it is told from one that somebody edited.
 */
function signed(body: string): string {
  const sha256 = createHash('sha256').update(body).digest('hex');
  return `${body},\n  "sha256": "${sha256}"\n}\n`;
}

const SIGNED = /,\n {2}"sha256": "[\da-f]{64}"\n\}\n$/;
