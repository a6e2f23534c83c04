import { join } from 'node:path';
import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import type { EntriesView, Place } from '../state/entries.js';
import type { Entry } from '../state/entry.js';
import type { State } from '../state/state.js';
import type { ItemLine, ItemsPage } from './api.js';

export interface ItemsQuestion {
  readonly status?: Entry['status'] | undefined;
  readonly folder?: string | undefined;
  /** The `next` of the page before. */
  readonly after?: string | undefined;
  /** 1 or more. */
  readonly limit: number;
}

/** How long records are passed without a pause, in ms, and how many between two looks at the clock. */
const SLICE_MS = 4;
const SLICE = 250;

/**
 * One page of files, in the order of the state. Nothing is kept between two pages: each walks to where the one before ended, a
 * slice at a time, and goes on from there. Where that file is in the list no more, it begins at the beginning: files may
 * come twice, and none is left out.
 */
export async function itemsPage(
  config: Pick<Config, 'folders'>,
  state: Pick<State, 'entries' | 'onChange'>,
  question: ItemsQuestion,
  clock: Clock,
): Promise<ItemsPage> {
  let isChanged = false;
  const unsubscribe = state.onChange(() => {
    isChanged = true;
  });
  try {
    return await walk(config, state.entries, question, { clock, isChanged: () => isChanged });
  } finally {
    unsubscribe();
  }
}

interface Walking {
  readonly clock: Clock;
  /** Whether any record changed since the walk began. */
  readonly isChanged: () => boolean;
}

async function walk(
  { folders }: Pick<Config, 'folders'>,
  entries: EntriesView,
  { status, folder, after, limit }: ItemsQuestion,
  { clock, isChanged }: Walking,
): Promise<ItemsPage> {
  const roots = new Map(folders.map(({ name, path }) => [name, path]));
  const mark = markIn(entries, status, folder, after);
  const counts = entries.counts(folder);
  const total = status === undefined ? Number.POSITIVE_INFINITY : counts[status];
  const items: ItemLine[] = [];
  let isSkipping = mark !== undefined;
  let passed = 0;
  let wanted = 0;
  let sliceBegan = clock.now();
  for (const entry of status === 'quarantined' ? entries.quarantined(folder) : entries.all(folder)) {
    // Where nothing changed, nothing can come after the last one.
    if (wanted === total && !isChanged()) break;
    passed += 1;
    if (passed % SLICE === 0 && clock.now() - sliceBegan >= SLICE_MS) {
      await clock.sleep(0);
      sliceBegan = clock.now();
    }
    const isWanted = status === undefined || entry.status === status;
    if (isWanted) wanted += 1;
    if (isSkipping) {
      isSkipping = !(entry.path === mark?.path && entry.folder === mark.folder);
      continue;
    }
    if (!isWanted) continue;
    const last = items.at(-1);
    if (last !== undefined && items.length === limit) return { items, next: markText(last) };
    items.push(lineOf(entry, roots.get(entry.folder)));
  }
  return { items };
}

/** Where a page begins; undefined for the beginning. */
function markIn(
  entries: EntriesView,
  status: Entry['status'] | undefined,
  folder: string | undefined,
  after: string | undefined,
): Place | undefined {
  const mark = after === undefined ? undefined : readMark(after);
  if (mark === undefined || (folder !== undefined && folder !== mark.folder)) return undefined;
  const entry = entries.get(mark.folder, mark.path);
  const isListed = entry !== undefined && (status !== 'quarantined' || entry.status === status);
  return isListed ? mark : undefined;
}

function lineOf(entry: Entry, root: string | undefined): ItemLine {
  const { folder, path, status, since, version } = entry;
  const trouble = 'trouble' in entry ? entry.trouble : undefined;
  return {
    ...{ folder, path, file: root === undefined ? `${folder}/${path}` : join(root, path), status, since },
    size: version.size,
    ...('url' in entry ? { url: entry.url, attempts: entry.attempts } : {}),
    ...(trouble ? { code: trouble.code, message: trouble.message, hint: trouble.hint } : {}),
  };
}

function markText({ folder, path }: Place): string {
  return Buffer.from(JSON.stringify([folder, path])).toString('base64url');
}

/** Undefined for what is none of ours: then the list begins at its beginning. */
function readMark(text: string): Place | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    const [folder, path] = Array.isArray(read) ? (read as unknown[]) : [];
    return typeof folder === 'string' && typeof path === 'string' ? { folder, path } : undefined;
  } catch {
    return undefined;
  }
}
