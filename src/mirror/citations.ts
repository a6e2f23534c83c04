import { messageOf, type PeersyncError } from '../lib/errors.js';
import { compareByCodePoint, sentence } from '../lib/text.js';
import type { Citation, CitingDocument } from '../peer/citation.js';
import { PeerError } from '../peer/errors.js';
import type { ConfirmedItem, Entry, GoneItem } from '../state/entry.js';
import { MirrorError } from './errors.js';
import type { Followed, FollowOptions, Mirror, MirrorDeps } from './mirror.js';
import { KeptOfMirrors, type Plan } from './plan.js';
import { defined, type Identity, type MirrorRecord } from './record.js';
import { fillTemplate } from './target-path.js';
import { removeWhole, replaceWhole, stampOfTarget } from './whole-file.js';

/** Where a pass over the items of a folder stands, as it is kept in state. */
export interface Pass {
  /** In ms since the epoch. */
  readonly beganAt: number;
  /** The path of the last item that was looked at; undefined once the pass is over. */
  readonly after?: string;
  /** Where looking at what changed since the pass began stands: the last such item, as `byTime` has it. */
  readonly newAfter?: string;
  /** Items that have a file, so far. */
  readonly files: number;
  readonly changed: boolean;
}

export const passes = new KeptOfMirrors<Pass>('mirror-pass/', 'beganAt', 'files');

/** How many items are looked at between two saves of where the pass stands. */
const SAVE_EVERY = 100;
/** So many items in a row that fail are no accident: the pass waits. */
const MOST_FAILURES = 5;
/** So long after an item was confirmed the peer is asked for it, and for all that were confirmed meanwhile, in ms. */
const SOON_MS = 20_000;
/** How many items are held at a time. */
const PAGE = 2_000;
/** How many records are looked at without a pause. */
const SLICE = 5_000;
const TIME_DIGITS = 15;

/** An item that has, or had, a citation file. */
type CitedItem = ConfirmedItem | GoneItem;

/** An order of items: by keys, each of which holds the path of its item. */
interface ItemOrder {
  keyOf(item: Pick<CitedItem, 'path' | 'since'>): string;
  pathOf(key: string): string;
}

const byPath: ItemOrder = { keyOf: ({ path }) => path, pathOf: (key) => key };

/** By when they were confirmed, or were gone. */
const byTime: ItemOrder = {
  keyOf: ({ path, since }) => String(since).padStart(TIME_DIGITS, '0') + path,
  pathOf: (key) => key.slice(TIME_DIGITS),
};

/** One run: how far its pass is, and what could not be looked at. */
interface Run {
  pass: Pass;
  readonly failures: string[];
  readonly signal: AbortSignal;
}

/** What came of one item; `added`: how many files there are more than before. */
interface Result {
  readonly changed: boolean;
  readonly added: number;
  readonly hasFile?: boolean;
  readonly error?: PeersyncError;
}

/** What came of one item, which has this key. Where something failed before it, the next run does not go on behind it. */
interface LookedAt extends Result {
  readonly key: string;
  readonly item: CitedItem;
  readonly isSafe: boolean;
}

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
  readonly #settings: Extract<Plan, { kind: 'citations' }>['settings'];
  readonly #deps: MirrorDeps;
  /** Since when there may be new items to look at. At first there may be those of an earlier process. */
  #newSince: number | undefined;

  constructor({ name, settings }: Extract<Plan, { kind: 'citations' }>, deps: MirrorDeps) {
    this.name = name;
    this.identity = { kind: 'citations', path: settings.path };
    this.every = settings.every;
    this.#settings = settings;
    this.#deps = deps;
    this.#newSince = deps.clock.now();
  }

  /** A pass that was cut short goes on soon; one that ended keeps its distance to the next. */
  nextIn(): number | undefined {
    const pass = passes.of(this.#deps.state, this.name);
    const untilPass = pass && this.#untilNext(pass);
    if (untilPass === undefined || this.#newSince === undefined) return untilPass;
    return Math.min(untilPass, Math.max(0, this.#newSince + SOON_MS - this.#deps.clock.now()));
  }

  itemChanged(item: Entry): boolean {
    if (this.#newSince !== undefined || !isCited(item) || item.folder !== this.#settings.folder) return false;
    this.#newSince = this.#deps.clock.now();
    return true;
  }

  async follow(before: MirrorRecord | undefined, { isAsked, signal }: FollowOptions): Promise<Followed> {
    const { state, clock } = this.#deps;
    const known = passes.of(state, this.name);
    const isPassDue = isAsked || known === undefined || (this.#untilNext(known) ?? 0) === 0;
    const pass = known ?? { beganAt: clock.now(), files: 0, changed: false };
    const run: Run = {
      pass: pass.after === undefined ? { ...pass, changed: false } : pass,
      failures: [],
      signal,
    };
    if (known !== undefined) await this.#lookAtNew(run);
    if (isPassDue) await this.#lookAtAll(run);
    const { files, changed } = run.pass;
    // Of the items that were not looked at nothing new is known.
    const { succeededAt, notes }: Partial<MirrorRecord> = isPassDue ? {} : (before ?? {});
    const facts = { rows: files, ...defined({ notes: notesOf(run.failures) ?? notes, succeededAt }) };
    return { kind: 'followed', changed, facts };
  }

  /** How long until the next pass, in ms; undefined where the last was cut short. */
  #untilNext({ after, beganAt }: Pass): number | undefined {
    return after === undefined ? Math.max(0, beganAt + this.every - this.#deps.clock.now()) : undefined;
  }

  /** Goes on with a pass that was cut short, or begins one. */
  async #lookAtAll(run: Run): Promise<void> {
    const { clock } = this.#deps;
    if (run.pass.after === undefined) {
      const beganAt = clock.now();
      const newAfter = byTime.keyOf({ since: beganAt, path: '' });
      this.#keep(run, { beganAt, after: '', newAfter, files: 0, changed: run.pass.changed });
    }
    for await (const { key, hasFile, changed, isSafe } of this.#lookAt(byPath, run.pass.after, run)) {
      this.#keep(run, {
        ...run.pass,
        files: run.pass.files + (hasFile ? 1 : 0),
        changed: run.pass.changed || changed,
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
    for await (const { key, item, added, changed, isSafe } of this.#lookAt(byTime, last, run)) {
      const { pass } = run;
      // What the pass comes to later is counted then.
      const isCounted = pass.after === undefined || item.path <= pass.after;
      this.#keep(run, {
        ...pass,
        files: pass.files + (isCounted ? added : 0),
        changed: pass.changed || changed,
        ...(isSafe ? { newAfter: key } : {}),
      });
      last = key;
    }
    this.#keep(run, { ...run.pass, newAfter: last });
  }

  #keep(run: Run, pass: Pass): void {
    run.pass = pass;
    passes.keep(this.#deps.state, this.name, pass);
  }

  /** Looks at items one after the other. Behind one that fails nothing is safe: the next run goes on from there. */
  async *#lookAt(order: ItemOrder, after: string | undefined, run: Run): AsyncGenerator<LookedAt> {
    let failures = 0;
    let looked = 0;
    for await (const { key, item } of this.#itemsBehind(after, order)) {
      run.signal.throwIfAborted();
      const result = await this.#look(item, run.signal);
      if (result.error !== undefined) {
        failures += 1;
        run.failures.push(`${item.path}: ${messageOf(result.error)}`);
        if (failures === MOST_FAILURES) throw result.error;
      } else if (item.status === 'confirmed') {
        failures = 0;
      }
      yield { key, item, ...result, isSafe: failures === 0 };
      looked += 1;
      if (looked % SAVE_EVERY === 0) await this.#deps.commit();
    }
  }

  async #look(item: CitedItem, signal: AbortSignal): Promise<Result> {
    const { folder, filter, ch, path: template } = this.#settings;
    const { root, peer, ask } = this.#deps;
    const { path } = fillTemplate(template, { folder, path: item.path.split('/') });
    const target = { root, path };
    try {
      const hadFile = (await stampOfTarget(target)) !== undefined;
      if (item.status === 'gone') {
        // No directories are made for what never had a file.
        const changed = hadFile && (await removeWhole(target));
        return { changed, added: changed ? -1 : 0 };
      }
      const citation = await ask(signal, (signal) =>
        peer.citation({ url: item.url }, { ...defined({ filter, ch }), signal }),
      );
      if (citation === undefined) return { changed: false, added: 0 };
      const { changed } = await replaceWhole(target, jsonOf(citation, item.url), { signal });
      return { hasFile: true, changed, added: hadFile ? 0 : 1 };
    } catch (error) {
      if (isOfThisItem(error)) return { changed: false, added: 0, error };
      throw error;
    }
  }

  /**
   * The confirmed and the gone items of the folder behind the key `after`, in their order. In bounded memory, at the price of
   * looking at all records of the folder once a page.
   */
  async *#itemsBehind(
    after: string | undefined,
    order: ItemOrder,
  ): AsyncGenerator<{ readonly key: string; readonly item: CitedItem }> {
    const { state } = this.#deps;
    for (let last = after; ; ) {
      const page = await this.#nextKeys(last, order);
      for (const key of page) {
        const item = state.get(this.#settings.folder, order.pathOf(key));
        if (item !== undefined && isCited(item)) yield { key, item };
      }
      if (page.length < PAGE) return;
      last = page.at(-1);
    }
  }

  async #nextKeys(after: string | undefined, order: ItemOrder): Promise<string[]> {
    const { state, clock } = this.#deps;
    let keys: string[] = [];
    let seen = 0;
    let limit: string | undefined;
    for (const entry of state.entries.all(this.#settings.folder)) {
      seen += 1;
      if (seen % SLICE === 0) await clock.sleep(0);
      if (!isCited(entry)) continue;
      const key = order.keyOf(entry);
      if ((after !== undefined && key <= after) || (limit !== undefined && key >= limit)) continue;
      keys.push(key);
      if (keys.length < 2 * PAGE) continue;
      keys = keys.sort().slice(0, PAGE);
      limit = keys.at(-1);
    }
    return keys.sort().slice(0, PAGE);
  }
}

function isCited(entry: Entry): entry is CitedItem {
  return entry.status === 'confirmed' || entry.status === 'gone';
}

/** Whether only this item fails, as far as one can see; then the others may go on. */
function isOfThisItem(error: unknown): error is PeersyncError {
  if (error instanceof PeerError) {
    return ['PEER_ANSWER', 'PEER_ANSWER_TOO_LARGE', 'PEER_REFUSED', 'PEER_FAILED'].includes(error.code);
  }
  return error instanceof MirrorError && error.code === 'MIRROR_BLOCKED';
}

function notesOf(failures: readonly string[]): string[] | undefined {
  const [first] = failures;
  if (first === undefined) return undefined;
  const count = failures.length === 1 ? '1 document' : `${failures.length} documents`;
  return [`${count} could not be looked at, the first of them ${sentence(first)}`];
}

/** The same knowledge is the same text, in whatever order the peer sends it. */
async function* jsonOf(citation: Citation, itemUrl: string): AsyncGenerator<string> {
  const { url = itemUrl, urlhash, title, sentences, citing, similar } = citation;
  const documents = (all: readonly CitingDocument[]) =>
    all
      .toSorted((a, b) => compareByCodePoint(a.url, b.url))
      .map(({ url, title, sentences }) => ({ url, title, sentences }));
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
