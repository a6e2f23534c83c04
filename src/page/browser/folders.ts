import type { FolderReport } from '../../report/status.js';
import type { RescanAnswer, RescanRequest } from '../api.js';
import { post } from './ask.js';
import { attr, byId, h, icon, prose, type Row, show, text } from './dom.js';
import type { Model } from './model.js';
import { act } from './notices.js';
import { type Column, figure, PagedTable, rowHead, tableRow } from './paged-table.js';
import { filesHref } from './route.js';
import { STATUS_WORDS } from './statuses.js';
import { ago, count, counted, duration, sentences } from './words.js';

const COUNTED = ['pending', 'accepted', 'confirmed', 'quarantined', 'passed'] as const;
const COLUMNS: readonly Column[] = [
  { title: 'Folder' },
  ...COUNTED.map((status): Column => ({ title: STATUS_WORDS[status], kind: 'number' })),
];

const WATCH_WORDS = {
  scanning: 'scanning',
  watching: 'watching',
  unwatched: 'scanned now and then',
  held: 'held',
  degraded: 'found by scans only',
} as const;

/** The folders, with how far their files came. */
export function showFolders(model: Model): void {
  const table = new PagedTable<FolderReport>({
    caption: 'The watched folders, with their files by status',
    words: ['folder', 'folders'],
    columns: COLUMNS,
    keyOf: ({ name }) => name,
    make: () => folderRow(model),
    textOf: ({ name, path, collection }) => `${name} ${path} ${collection}`,
    empty:
      'No folder is watched. Name one under `folders` in the configuration, and its files become searchable.',
  });
  byId('folder-list').append(table.element);
  const rescan = byId<HTMLButtonElement>('rescan');
  rescan.addEventListener('click', () => void act(rescan, () => scan()));
  model.follow(['status', 'tick'], () => {
    if (model.status === undefined) return;
    table.set(model.status.folders);
    show(rescan, model.status.folders.length > 0);
  });
}

async function scan(): Promise<string> {
  const { scans } = await post<RescanAnswer>('/api/rescan', {} satisfies RescanRequest);
  const files = scans.reduce((sum, scanned) => sum + scanned.files, 0);
  return `Scanned ${counted(scans.length, 'folder')}: ${counted(files, 'file')} seen.`;
}

function folderRow(model: Model): Row<FolderReport> {
  const name = h('span', { class: 'name' });
  const path = h('span', { class: 'path' });
  const watch = h('span', { class: 'watch' });
  const trouble = h('p', { class: 'trouble' });
  const shape = icon('warn');
  const words = h('span', {});
  trouble.append(shape, words);
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' });
  const parts = COUNTED.map((status) => h('i', { class: `b-${status}` }));
  bar.append(...parts);
  const cells = COUNTED.map((status) => ({ status, link: h('a', {}) }));
  const head = rowHead(h('div', { class: 'titled' }, name, watch), path, bar, trouble);
  const element = tableRow(head);
  for (const { status, link } of cells) {
    element.append(figure(STATUS_WORDS[status], link));
  }
  return {
    element,
    update: (folder) => {
      const counts = { ...folder.items, passed: folder.passedOver };
      const total = COUNTED.reduce((sum, status) => sum + counts[status], 0);
      text(name, folder.name);
      text(path, folder.path);
      text(watch, watchText(folder, model.now()));
      show(trouble, folder.watch?.trouble !== undefined);
      attr(trouble, 'class', 'trouble s-warn');
      prose(words, sentences(folder.watch?.trouble?.message, folder.watch?.trouble?.hint));
      cells.forEach(({ status, link }, i) => {
        text(link, count(counts[status]));
        attr(link, 'href', filesHref(status, folder.name));
        attr(link, 'class', counts[status] === 0 ? 'zero' : `s-${status}`);
        const part = parts[i];
        if (part === undefined) return;
        show(part, counts[status] > 0);
        part.style.flexGrow = String(widthOf(counts[status], total));
      });
    },
  };
}

/** A part that is there is seen, however small. */
function widthOf(n: number, total: number): number {
  return Math.max(n / Math.max(1, total), 0.012);
}

function watchText({ watch, collection }: FolderReport, now: number): string {
  const into = `into ${collection}`;
  if (watch === undefined) return into;
  const scan = watch.lastScan;
  const seen = scan === undefined ? '' : `, scanned ${ago(scan.at, now)} in ${duration(scan.durationMs)}`;
  return `${into} · ${WATCH_WORDS[watch.state]}${watch.state === 'scanning' ? '' : seen}`;
}
