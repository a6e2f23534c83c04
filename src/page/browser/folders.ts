import type { FolderReport } from '../../report/status.js';
import type { RescanAnswer, RescanRequest } from '../api.js';
import { post } from './ask.js';
import { byId, type Child, h, icon, prose, show } from './dom.js';
import type { Model } from './model.js';
import { act } from './notices.js';
import { PagedTable } from './paged-table.js';
import { filesHref, STATUS_WORDS } from './statuses.js';
import { ago, count, counted, duration, sentences } from './words.js';

const COUNTED = ['pending', 'accepted', 'confirmed', 'quarantined', 'passed'] as const;

const WATCH_WORDS = {
  scanning: 'scanning',
  watching: 'watching',
  unwatched: 'scanned now and then',
  held: 'held',
  degraded: 'found by scans only',
} as const;

/** The folders, with how far their files came. */
export function showFolders(model: Model): void {
  const table = new PagedTable<FolderReport>(byId('folder-list'), {
    caption: 'The watched folders, with their files by status',
    words: ['folder', 'folders'],
    columns: [{ title: 'Folder' }, ...COUNTED.map((status) => ({ title: STATUS_WORDS[status] }))],
    keyOf: ({ name }) => name,
    cells: (folder) => cellsOf(folder, model.now()),
    textOf: ({ name, path, collection }) => `${name} ${path} ${collection}`,
    empty:
      'No folder is watched. Name one under `folders` in the configuration, and its files become searchable.',
  });
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

function cellsOf(folder: FolderReport, now: number): Child[] {
  const { name, path, watch } = folder;
  const counts = { ...folder.items, passed: folder.passedOver };
  const total = COUNTED.reduce((sum, status) => sum + counts[status], 0);
  // A part that is there is seen, however small.
  const widthOf = (n: number) => Math.max(n / Math.max(1, total), 0.012);
  const parts = COUNTED.filter((status) => counts[status] > 0).map((status) =>
    h('i', { class: `s-${status}`, style: `flex-grow: ${widthOf(counts[status])}` }),
  );
  const trouble =
    watch?.trouble &&
    h(
      'p.trouble.s-warn',
      icon('warn'),
      h('span', prose(sentences(watch.trouble.message, watch.trouble.hint))),
    );
  const titled = h('div.titled', h('span.name', name), h('span.watch', watchText(folder, now)));
  const bar = h('span.bar', { 'aria-hidden': 'true' }, parts);
  return [
    [titled, h('span.path', path), bar, trouble],
    ...COUNTED.map((status) =>
      h(
        'a',
        { href: filesHref(status, name), class: counts[status] === 0 ? 'zero' : `s-${status}` },
        count(counts[status]),
      ),
    ),
  ];
}

function watchText({ watch, collection }: FolderReport, now: number): string {
  const into = `into ${collection}`;
  if (watch === undefined) return into;
  const scan = watch.lastScan;
  const seen = scan === undefined ? '' : `, scanned ${ago(scan.at, now)} in ${duration(scan.durationMs)}`;
  return `${into} · ${WATCH_WORDS[watch.state]}${watch.state === 'scanning' ? '' : seen}`;
}
