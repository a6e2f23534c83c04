import { NO_WORDS } from '../content/words.js';
import type { ContentRules } from '../peer/dialect.js';
import type { PendingItem, Sent, Trouble, Version } from '../state/entry.js';
import { leaving, passedOver, quarantined, replaced, returned } from '../state/transitions.js';
import type { Packed } from './packer.js';
import { placeOf, type UplinkParts, type UplinkState } from './parts.js';
import { streamed } from './streaming.js';
import { cannotTravel } from './treatment.js';
import { sayQuarantined } from './trouble.js';
import type { UrlConflicts } from './url-conflicts.js';

/** Files up to this many bytes are read whole; larger ones are streamed. */
const WHOLE_BYTES = 256 * 1024;
/** How long a file that changed under our hands is left alone, in ms. */
export const STALE_PAUSE_MS = 2_000;

/** A text with fewer words is not told from one whose text the peer dropped. */
const FEWEST_WORDS = 10;

/** An item with the text that is about to travel. */
export interface PreparedDocument {
  readonly item: PendingItem;
  readonly content: Extract<Packed, { kind: 'content' }>;
  readonly sent: Sent;
}

/**
 * Reads what is to travel and marks it as leaving, and what it replaces in the peer as replaced, in memory: to be committed
 * before it does. What is not the expected version any more, or cannot be read, is settled here; what the configuration has
 * at another address now, or at none, and what cannot be told while its folder is held, is left: the very same record.
 */
export async function pack(
  parts: UplinkParts,
  batch: readonly PendingItem[],
  rules: ContentRules,
  conflicts: UrlConflicts,
): Promise<PreparedDocument[]> {
  const { clock, log, look, pathOf, standing, state } = parts;
  const bearable = batch.filter((item) => item.version.size <= (rules.maxBytes ?? Number.POSITIVE_INFINITY));
  const results = await readAll(parts, bearable, rules);
  const now = clock.now();
  const documents: PreparedDocument[] = [];
  for (const taken of batch) {
    const item = bearable.includes(taken) ? undefined : currentOf(state, taken);
    if (item === undefined) continue;
    const trouble = tooLarge(item.version.size, rules.maxBytes ?? 0);
    state.put(quarantined(item, item, item.version, trouble, now));
    sayQuarantined(log, item, trouble);
  }
  bearable.forEach((taken, i) => {
    const result = results[i];
    const item = currentOf(state, taken);
    if (result === undefined || item === undefined) return;
    // At its old address it could replace what another folder has there now: a scan gives it the new one, or lets it go.
    if (pathOf(item) === undefined) return;
    if (result.kind === 'stale' && standing(item.folder) !== 'there') return;
    if (result.kind === 'unreadable' && standing(item.folder) === 'missing') return;
    if (result.kind === 'stale') {
      state.put(returned(item, now + STALE_PAUSE_MS));
      look(placeOf(item));
    } else if (result.kind === 'unreadable') {
      // Without its content, so that the next look that can read it takes it up again.
      const { size, mtimeMs, ctimeMs, ino } = item.version;
      const trouble = unreadable(result.code);
      state.put(quarantined(item, item, { size, mtimeMs, ctimeMs, ino }, trouble, now));
      sayQuarantined(log, item, trouble);
    } else if (result.kind === 'wordless') {
      const { size, mtimeMs, ctimeMs, ino } = item.version;
      state.put(passedOver(item, placeOf(item), { size, mtimeMs, ctimeMs, ino }, withoutWords(), now));
    } else {
      const { url, collection, version } = item;
      const { size, digest, words = 0 } = result;
      const lastModified = rules.takesBinary
        ? lastModifiedOf(version, clock.wall() - CLOCKS_APART_MS)
        : undefined;
      const sent = {
        ...{ sha256: version.sha256, size, digest, url, collection, at: now },
        ...(lastModified === undefined ? {} : { lastModified }),
        ...(rules.showsWords && words >= FEWEST_WORDS ? { words } : {}),
      };
      const left = leaving(item, sent);
      state.put(left);
      conflicts.met(left);
      for (const conflicting of conflicts.of(item)) state.put(replaced(conflicting, url, now));
      documents.push({ item, content: result, sent });
    }
  });
  return documents;
}

/** The item as it stands now, if it is still pending in the version (and for the document) that was taken. */
export function currentOf(state: Pick<UplinkState, 'get'>, item: PendingItem): PendingItem | undefined {
  const now = state.get(item.folder, item.path);
  return now?.status === 'pending' &&
    now.version.sha256 === item.version.sha256 &&
    now.url === item.url &&
    now.collection === item.collection
    ? now
    : undefined;
}

/** The texts of a batch: small files all at once in the packer, large ones each by itself. */
async function readAll(
  parts: UplinkParts,
  batch: readonly PendingItem[],
  rules: ContentRules,
): Promise<Packed[]> {
  const { packer, pathOf } = parts;
  const results: Packed[] = batch.map(() => ({ kind: 'stale' }));
  const small: { readonly path: string; readonly version: Version; readonly position: number }[] = [];
  for (const [position, item] of batch.entries()) {
    const path = pathOf(item);
    // What the dialect does not take was read before it was known: the look that follows passes it over.
    if (path === undefined || cannotTravel(item.version.encoding, rules) !== undefined) continue;
    if (item.version.size > WHOLE_BYTES) results[position] = await streamed(path, item.version, rules);
    else small.push({ path, version: item.version, position });
  }
  const packed = await packer.pack(small, rules);
  small.forEach(({ position }, i) => {
    results[position] = packed[i] ?? { kind: 'stale' };
  });
  return results;
}

function tooLarge(bytes: number, most: number): Trouble {
  return {
    code: 'TOO_LARGE_FOR_PEER',
    message: `The file has ${bytes} bytes, and this kind of peer bears ${most} in one document.`,
    hint: 'Split it, or keep such files from being taken up with maxFileSize of the folder.',
  };
}

export function withoutWords(): Trouble {
  return {
    code: NO_WORDS,
    message: 'There is no word in the file, so that no search could find it.',
    hint: 'It is taken as soon as there is text in it.',
  };
}

function unreadable(code: string): Trouble {
  return {
    code: 'UNREADABLE',
    message: `The file could not be read: ${code}.`,
    hint: 'Let the user that peersync runs as read it; it is noticed at the next scan, or at once by `peersync retry`.',
  };
}

/** Two clocks are hardly ever further apart, in ms. */
const CLOCKS_APART_MS = 60_000;

/**
 * The last modification of a file in whole seconds (as ms since the epoch), where the peer will keep it: YaCy puts its
 * own clock's time in the place of one that is later, and 1970 in the place of an earlier one.
 *
 * @param now when it is pushed, by the peer's clock
 */
function lastModifiedOf({ mtimeMs }: Version, now: number): number | undefined {
  const seconds = Math.floor(mtimeMs / 1000) * 1000;
  return seconds > 0 && seconds <= now ? seconds : undefined;
}

/** What was sent, with what the peer's answer tells: when that was, by both clocks. */
export function sentAt(
  { item, content, sent }: PreparedDocument,
  at: number,
  peerAt: number | undefined,
): Sent {
  const { lastModified: _, ...rest } = sent;
  const lastModified =
    content.type === '' ? undefined : lastModifiedOf(item.version, peerAt ?? at - CLOCKS_APART_MS);
  return {
    ...rest,
    at,
    ...(peerAt === undefined ? {} : { peerAt }),
    ...(lastModified === undefined ? {} : { lastModified }),
  };
}
