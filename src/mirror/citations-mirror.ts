import { join } from 'node:path';
import type { CitationsMirrorConfig } from '../config/config.js';
import { messageOf, type PeersyncError } from '../lib/errors.js';
import { compareByCodePoint, sentence } from '../lib/text.js';
import type { Citation, CitingDocument } from '../peer/citation.js';
import { PeerError } from '../peer/errors.js';
import type { Entry } from '../state/entry.js';
import {
  byPath,
  byTime,
  type ItemOrder,
  isLooked,
  itemsBehind,
  keepPass,
  type Looked,
  type Pass,
  passOf,
} from './citations-pass.js';
import { MirrorError } from './errors.js';
import type { Identity } from './life.js';
import type { Followed, FollowOptions, Mirror, MirrorTools } from './parts.js';
import { placeOf } from './place.js';
import type { MirrorRecord } from './record.js';
import type { Spot } from './root.js';
import { throughQueue } from './through-queue.js';
import { type FileStamp, removeWhole, replaceWhole, stampAt } from './whole-file.js';

/** How many items are looked at between two saves of where the pass stands. */
const SAVE_EVERY = 100;
/** So many items in a row that fail are no accident: the pass waits. */
const MOST_FAILURES = 5;
/** So long after an item was confirmed the peer is asked for it, and for all that were confirmed meanwhile, in ms. */
const SOON_MS = 20_000;

/**
 * A file for each confirmed item of a folder with what the peer knows of its citations.
 *
 * A *pass* goes over all items by path, one request each; where it stands is kept in state, so that the next run goes on
 * after a restart, or after the peer was away. A document that the peer does not show keeps its file, an item that is gone
 * loses it. The next pass begins `every` after the beginning of the last, and with each run that a person asks for.
 *
 * What is confirmed, or gone, after a pass came by is looked at soon, in a run of its own or in the middle of the next pass.
 */
export class CitationsMirror implements Mirror {
  readonly name: string;
  readonly identity: Identity;
  readonly every: number;
  readonly #settings: CitationsMirrorConfig;
  readonly #tools: MirrorTools;
  /** Since when there may be new items to look at. At first there may be those of an earlier process. */
  #newSince: number | undefined;

  constructor(settings: CitationsMirrorConfig, tools: MirrorTools) {
    this.name = settings.name;
    this.identity = { kind: 'citations', path: settings.path };
    this.every = settings.every;
    this.#settings = settings;
    this.#tools = tools;
    this.#newSince = tools.clock.now();
  }

  /** A pass that was cut short goes on soon; one that ended keeps its distance to the next. */
  nextIn(): number | undefined {
    const pass = passOf(this.#tools.state, this.name);
    const untilPass = pass && this.#untilNext(pass);
    if (untilPass === undefined || this.#newSince === undefined) return untilPass;
    return Math.min(untilPass, Math.max(0, this.#newSince + SOON_MS - this.#tools.clock.now()));
  }

  itemChanged(item: Entry): boolean {
    if (this.#newSince !== undefined || !isLooked(item) || item.folder !== this.#settings.folder)
      return false;
    this.#newSince = this.#tools.clock.now();
    return true;
  }

  async follow(
    before: MirrorRecord | undefined,
    { isAsked = false, signal }: FollowOptions,
  ): Promise<Followed> {
    const { state, clock } = this.#tools;
    const known = passOf(state, this.name);
    const isPassDue = isAsked || known === undefined || (this.#untilNext(known) ?? 0) === 0;
    const run: Run = {
      pass: known ?? { beganAt: clock.now(), files: 0, changed: false },
      troubles: [],
      signal,
    };
    if (run.pass.after === undefined) run.pass = { ...run.pass, changed: false };
    if (known !== undefined) await this.#lookAtNew(run);
    if (isPassDue) await this.#lookAtAll(run);
    const { files, changed } = run.pass;
    // Of the items that were not looked at nothing new is known.
    const kept: Partial<MirrorRecord> = isPassDue ? {} : (before ?? {});
    const { succeededAt } = kept;
    const notes = notesOf(run.troubles) ?? kept.notes;
    const facts = {
      rows: files,
      ...(notes && { notes }),
      ...(succeededAt === undefined ? {} : { succeededAt }),
    };
    return { kind: 'followed', changed, facts };
  }

  /** How long until the next pass, in ms; undefined where the last was cut short, or the clock was set back since. */
  #untilNext({ after, beganAt }: Pass): number | undefined {
    const sinceBegin = this.#tools.clock.now() - beganAt;
    return after !== undefined || sinceBegin < 0 ? undefined : Math.max(0, this.every - sinceBegin);
  }

  /** Goes on with a pass that was cut short, or begins one. */
  async #lookAtAll(run: Run): Promise<void> {
    const { clock } = this.#tools;
    if (run.pass.after === undefined) {
      const beganAt = clock.now();
      const newAfter = byTime.keyOf({ since: beganAt, path: '' });
      this.#keep(run, { beganAt, after: '', newAfter, files: 0, changed: run.pass.changed });
    }
    for await (const { key, result, isSafe } of this.#looks(byPath, run.pass.after, run)) {
      const { pass } = run;
      this.#keep(run, {
        ...pass,
        files: pass.files + (result.kind === 'file' ? 1 : 0),
        changed: pass.changed || result.changed,
        ...(isSafe ? { after: key } : {}),
      });
      const isNewDue = this.#newSince !== undefined && clock.now() - this.#newSince >= SOON_MS;
      if (isNewDue) await this.#lookAtNew(run);
    }
    const { after: _, ...over } = run.pass;
    this.#keep(run, over);
  }

  /** Looks at what was confirmed, or is gone, since the pass began and the last look at such items. */
  async #lookAtNew(run: Run): Promise<void> {
    this.#newSince = undefined;
    let last = run.pass.newAfter ?? byTime.keyOf({ since: run.pass.beganAt, path: '' });
    for await (const { key, item, result, isSafe } of this.#looks(byTime, last, run)) {
      const { pass } = run;
      // What the pass comes to later is counted then.
      const isCounted = pass.after === undefined || item.path <= pass.after;
      this.#keep(run, {
        ...pass,
        files: pass.files + (isCounted ? result.added : 0),
        changed: pass.changed || result.changed,
        ...(isSafe ? { newAfter: key } : {}),
      });
      last = key;
    }
    this.#keep(run, { ...run.pass, newAfter: last });
  }

  #keep(run: Run, pass: Pass): void {
    run.pass = pass;
    keepPass(this.#tools.state, this.name, pass);
  }

  /** Looks at items one after the other. Behind one that fails nothing is safe: the next run goes on from there. */
  async *#looks(
    order: ItemOrder,
    after: string | undefined,
    { troubles, signal }: Run,
  ): AsyncGenerator<{
    readonly key: string;
    readonly item: Looked;
    readonly result: Result;
    readonly isSafe: boolean;
  }> {
    const { state, clock } = this.#tools;
    let failures = 0;
    let looked = 0;
    for await (const { key, item } of itemsBehind(state, this.#settings.folder, after, order, clock)) {
      signal.throwIfAborted();
      const result = await this.#look(item, signal);
      if (result.kind === 'failed') {
        failures += 1;
        troubles.push(`${item.path}: ${messageOf(result.error)}`);
        if (failures === MOST_FAILURES) throw result.error;
      } else if (item.status === 'confirmed') {
        failures = 0;
      }
      yield { key, item, result, isSafe: failures === 0 };
      looked += 1;
      if (looked % SAVE_EVERY === 0) await state.commit();
    }
  }

  async #look(item: Looked, signal: AbortSignal): Promise<Result> {
    const { folder, filter, ch, path: template } = this.#settings;
    const { root, peer, queue } = this.#tools;
    const { path } = placeOf(template, { folder, path: item.path.split('/') });
    try {
      if (item.status === 'gone') {
        const changed = await removeIfThere({ root, path });
        return { kind: 'none', changed, added: changed ? -1 : 0 };
      }
      const citation = await throughQueue(queue, signal, (signal) =>
        peer.citation(
          { url: item.url },
          { ...(filter === undefined ? {} : { filter }), ...(ch === undefined ? {} : { ch }), signal },
        ),
      );
      if (citation === undefined) return { kind: 'none', changed: false, added: 0 };
      const isNew = (await stampIfThere({ root, path })) === undefined;
      const { changed } = await replaceWhole({ root, path }, jsonOf(citation, item.url), { signal });
      return { kind: 'file', changed, added: isNew ? 1 : 0 };
    } catch (error) {
      if (isOfThisItem(error)) return { kind: 'failed', changed: false, added: 0, error };
      throw error;
    }
  }
}

/** One run: how far its pass is, and what could not be looked at. */
interface Run {
  pass: Pass;
  readonly troubles: string[];
  readonly signal: AbortSignal;
}

/** What came of one item; `added`: how many files there are more than before. */
type Result = { readonly changed: boolean; readonly added: number } & (
  | { readonly kind: 'file' | 'none' }
  | { readonly kind: 'failed'; readonly error: PeersyncError }
);

/** Whether only this item fails, as far as one can see; then the others may go on. */
function isOfThisItem(error: unknown): error is PeersyncError {
  if (error instanceof PeerError) {
    return ['PEER_ANSWER', 'PEER_ANSWER_TOO_LARGE', 'PEER_REFUSED', 'PEER_FAILED'].includes(error.code);
  }
  return error instanceof MirrorError && error.code === 'MIRROR_BLOCKED';
}

/** Makes no directories for what never had a file. */
async function removeIfThere(spot: Spot): Promise<boolean> {
  return (await stampIfThere(spot)) !== undefined && (await removeWhole(spot));
}

async function stampIfThere({ root, path }: Spot): Promise<FileStamp | undefined> {
  return await stampAt(join(root, path)).catch(() => undefined);
}

function notesOf(troubles: readonly string[]): string[] | undefined {
  const [first] = troubles;
  if (first === undefined) return undefined;
  const count = troubles.length === 1 ? '1 document' : `${troubles.length} documents`;
  return [`${count} could not be looked at, the first of them ${sentence(first)}`];
}

/** The same knowledge is the same text, in whatever order the peer tells it. */
async function* jsonOf(citation: Citation, itemUrl: string): AsyncGenerator<string> {
  const { url = itemUrl, urlhash, title, sentences, citing, similar } = citation;
  const sorted = {
    url,
    urlhash,
    title,
    sentences: sentences
      .toSorted((a, b) => a.number - b.number || compareByCodePoint(a.text, b.text))
      .map(({ number, text, appearsIn }) => ({
        number,
        text,
        appearsIn: appearsIn.toSorted(compareByCodePoint),
      })),
    citing: documents(citing),
    similar: documents(similar),
  };
  yield `${JSON.stringify(sorted, undefined, 2)}\n`;
}

function documents(all: readonly CitingDocument[]): CitingDocument[] {
  return all
    .toSorted((a, b) => compareByCodePoint(a.url, b.url))
    .map(({ url, title, sentences }) => ({ url, title, sentences }));
}
