import { join } from 'node:path';
import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import type { EntriesView, Place } from '../state/entries.js';
import type { Entry } from '../state/entry.js';
import type { ItemLine, ItemsPage } from './api.js';

export interface ItemsQuestion {
  readonly status?: Entry['status'] | undefined;
  readonly folder?: string | undefined;
  /** The `next` of the page before. */
  readonly after?: string | undefined;
  /** 1 or more. */
  readonly limit: number;
}

/** How many records are passed without a pause: a few ms, also on a small machine. */
const SLICE = 10_000;

/**
 * One page of files, in the order of the state. Nothing is kept between two pages: each walks to where the one before ended, a
 * slice at a time, and goes on from there. Where that file is in the list no more, it begins at the beginning: files may
 * come twice, and none is left out.
 */
export async function itemsPage(
  { folders }: Pick<Config, 'folders'>,
  entries: EntriesView,
  { status, folder, after, limit }: ItemsQuestion,
  clock: Clock,
): Promise<ItemsPage> {
  const roots = new Map(folders.map(({ name, path }) => [name, path]));
  const quarantined = status === 'quarantined';
  const mark = after === undefined ? undefined : readMark(after);
  const marked = mark === undefined ? undefined : entries.get(mark.folder, mark.path);
  const isKnown = marked !== undefined && (!quarantined || marked.status === status);
  let isSkipping = isKnown && (folder === undefined || folder === mark?.folder);
  const items: ItemLine[] = [];
  let passed = 0;
  for (const entry of quarantined ? entries.quarantined(folder) : entries.all(folder)) {
    passed += 1;
    if (passed % SLICE === 0) await clock.sleep(0);
    if (isSkipping) {
      isSkipping = !(entry.path === mark?.path && entry.folder === mark.folder);
      continue;
    }
    if (status !== undefined && entry.status !== status) continue;
    const last = items.at(-1);
    if (last !== undefined && items.length === limit) return { items, next: markText(last) };
    items.push(lineOf(entry, roots.get(entry.folder)));
  }
  return { items };
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
