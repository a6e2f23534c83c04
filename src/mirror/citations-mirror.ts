import { join } from 'node:path';
import type { CitationsMirrorConfig } from '../config/config.js';
import { compareByCodePoint } from '../lib/code-points.js';
import { messageOf, type PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/sentence.js';
import type { Citation, CitingDocument } from '../peer/citation.js';
import { PeerError } from '../peer/errors.js';
import { itemsBehind, keepPass, type Looked, type Pass, passOf } from './citations-pass.js';
import { MirrorError } from './errors.js';
import type { Identity } from './life.js';
import type { Followed, FollowOptions, Mirror, MirrorTools } from './parts.js';
import { placeOf } from './place.js';
import type { Spot } from './root.js';
import { throughDoor } from './through-door.js';
import { removeWhole, replaceWhole, stampAt } from './whole-file.js';

/** How many items are looked at between two saves of where the pass stands. */
const SAVE_EVERY = 100;
/** So many items in a row that fail are no accident: the pass waits. */
const MOST_FAILURES = 5;

/**
 * A file for each confirmed item of a folder with what the peer knows of its citations.
 *
 * A run is one *pass* over the items by path, one request each; where it stands is kept in state, so that the next run goes on
 * after a restart, or after the peer was away. A document that the peer does not show keeps its file, an item that is gone
 * loses it. The next pass begins `every` after the beginning of the last.
 */
export class CitationsMirror implements Mirror {
  readonly name: string;
  readonly identity: Identity;
  readonly every: number;
  readonly #settings: CitationsMirrorConfig;
  readonly #tools: MirrorTools;

  constructor(settings: CitationsMirrorConfig, tools: MirrorTools) {
    this.name = settings.name;
    this.identity = { kind: 'citations', path: settings.path };
    this.every = settings.every;
    this.#settings = settings;
    this.#tools = tools;
  }

  /** A pass that was cut short goes on soon; one that ended keeps its distance to the next. */
  nextIn(): number | undefined {
    const pass = passOf(this.#tools.state, this.name);
    if (pass === undefined || pass.after !== undefined) return undefined;
    const sinceBegin = this.#tools.clock.now() - pass.beganAt;
    // The clock was set back: how long ago it was is not known.
    if (sinceBegin < 0) return undefined;
    return Math.max(0, this.every - sinceBegin);
  }

  async follow(_before: unknown, { signal }: FollowOptions): Promise<Followed> {
    const { state, clock } = this.#tools;
    const known = passOf(state, this.name);
    const isCutShort = known?.after !== undefined;
    let pass: Pass = isCutShort ? known : { beganAt: clock.now(), files: 0, changed: false };
    const troubles: string[] = [];
    let failures = 0;
    let looked = 0;
    for await (const item of itemsBehind(state, this.#settings.folder, pass.after, clock)) {
      signal.throwIfAborted();
      const result = await this.#look(item, signal);
      if (result.kind === 'failed') {
        failures += 1;
        troubles.push(`${item.path}: ${messageOf(result.error)}`);
        if (failures === MOST_FAILURES) throw result.error;
      } else if (item.status === 'confirmed') {
        failures = 0;
      }
      // Where items fail, the pass goes on from the first of them.
      pass = {
        beganAt: pass.beganAt,
        files: pass.files + (result.kind === 'file' ? 1 : 0),
        changed: pass.changed || result.changed,
        ...(failures === 0 ? { after: item.path } : pass.after === undefined ? {} : { after: pass.after }),
      };
      keepPass(state, this.name, pass);
      looked += 1;
      if (looked % SAVE_EVERY === 0) await state.commit();
    }
    keepPass(state, this.name, { beganAt: pass.beganAt, files: pass.files, changed: pass.changed });
    const notes = notesOf(troubles);
    return { kind: 'followed', changed: pass.changed, facts: { rows: pass.files, ...(notes && { notes }) } };
  }

  async #look(item: Looked, signal: AbortSignal): Promise<Result> {
    const { folder, filter, ch, path: template } = this.#settings;
    const { root, peer, door } = this.#tools;
    const { path } = placeOf(template, { folder, path: item.path.split('/') });
    try {
      if (item.status === 'gone') return { kind: 'none', changed: await removeIfThere({ root, path }) };
      const citation = await throughDoor(door, signal, (signal) =>
        peer.citation(
          { url: item.url },
          { ...(filter === undefined ? {} : { filter }), ...(ch === undefined ? {} : { ch }), signal },
        ),
      );
      if (citation === undefined) return { kind: 'none', changed: false };
      const { changed } = await replaceWhole({ root, path }, jsonOf(citation, item.url), { signal });
      return { kind: 'file', changed };
    } catch (error) {
      if (isOfThisItem(error)) return { kind: 'failed', changed: false, error };
      throw error;
    }
  }
}

type Result =
  | { readonly kind: 'file' | 'none'; readonly changed: boolean }
  | { readonly kind: 'failed'; readonly changed: false; readonly error: PeersyncError };

/** Whether only this item fails, as far as one can see; then the others may go on. */
function isOfThisItem(error: unknown): error is PeersyncError {
  if (error instanceof PeerError) {
    return ['PEER_ANSWER', 'PEER_ANSWER_TOO_LARGE', 'PEER_REFUSED', 'PEER_FAILED'].includes(error.code);
  }
  return error instanceof MirrorError && error.code === 'MIRROR_BLOCKED';
}

/** Makes no directories for what never had a file. */
async function removeIfThere(spot: Spot): Promise<boolean> {
  const stamp = await stampAt(join(spot.root, spot.path)).catch(() => undefined);
  return stamp !== undefined && (await removeWhole(spot));
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
