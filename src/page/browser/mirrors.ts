import type { MirrorReport } from '../../mirror/record.js';
import type { MirrorsAnswer, MirrorsRequest } from '../api.js';
import { post } from './ask.js';
import { attr, byId, h, icon, prose, type Row, show, text } from './dom.js';
import type { Model } from './model.js';
import { act } from './notices.js';
import { type Column, figure, PagedTable, rowHead, tableRow } from './paged-table.js';
import { ago, ahead, count, counted, mirrorTroubles, size } from './words.js';

const COLUMNS: readonly Column[] = [
  { title: 'Mirror' },
  { title: 'Up to date', kind: 'number', explains: 'When the file was last known to be what the peer has' },
  { title: 'Changed', kind: 'number', explains: 'When its content last changed' },
  { title: 'Rows', kind: 'number' },
  { title: 'Size', kind: 'number' },
  { title: 'Next', kind: 'number', explains: 'When the peer is asked next' },
];

/** The mirrors: files that follow something in the peer. Those in trouble come first. */
export function showMirrors(model: Model): void {
  const table = new PagedTable<MirrorReport>({
    caption: 'Mirrored files, with when they were last brought up to date and last changed',
    words: ['mirror', 'mirrors'],
    columns: COLUMNS,
    keyOf: ({ name }) => name,
    make: () => mirrorRow(model),
    textOf: ({ name, path }) => `${name} ${path}`,
    empty:
      'Nothing is mirrored. Tables and shared objects of the peer become files here when `mirror` in the configuration names them.',
  });
  byId('mirror-list').append(table.element);
  const all = byId<HTMLButtonElement>('mirror-run');
  all.addEventListener('click', () => {
    void act(all, async () =>
      runText(await post<MirrorsAnswer>('/api/mirrors/run', {} satisfies MirrorsRequest)),
    );
  });
  model.follow(['status', 'tick'], () => {
    if (model.status === undefined) return;
    const { mirrors } = model.status;
    table.set(mirrors.toSorted((a, b) => gravity(b) - gravity(a)));
    show(all, mirrors.length > 0);
  });
}

function gravity({ alarm, failure, conflicts = [] }: MirrorReport): number {
  return alarm !== undefined ? 3 : conflicts.length > 0 ? 2 : failure !== undefined ? 1 : 0;
}

function mirrorRow(model: Model): Row<MirrorReport> {
  const name = h('span', { class: 'name' });
  const kind = h('span', { class: 'watch' });
  const path = h('span', { class: 'path' });
  const troubles = h('ul', { class: 'troubles' });
  const accept = h('button', { type: 'button', class: 'small' }, 'Accept…');
  const [current, changed, rows, bytes, next] = COLUMNS.slice(1).map(({ title }) => figure(title));
  const head = rowHead(h('div', { class: 'titled' }, name, kind), path, troubles, accept);
  let shown: MirrorReport | undefined;
  accept.addEventListener('click', () => {
    if (shown !== undefined) void acceptAlarm(shown, accept);
  });
  return {
    element: tableRow(head, current, changed, rows, bytes, next),
    update: (mirror) => {
      shown = mirror;
      const now = model.now();
      const ofTime = (at: number | undefined) => (at === undefined ? 'never' : ago(at, now));
      const words = mirrorTroubles(mirror, model.status?.mirrorRoot ?? '');
      text(name, mirror.name);
      text(kind, mirror.kind);
      text(path, mirror.path);
      if (troubles.dataset.words !== words.map(({ text: words }) => words).join('\n')) {
        troubles.dataset.words = words.map(({ text: words }) => words).join('\n');
        const lines = words.map(({ level, text: words }) => {
          const paragraph = h('p', {});
          prose(paragraph, words);
          return h('li', { class: `s-${level}` }, icon(level === 'bad' ? 'error' : level), paragraph);
        });
        troubles.replaceChildren(...lines);
      }
      show(troubles, words.length > 0);
      show(accept, mirror.alarm !== undefined);
      attr(accept, 'aria-label', `Accept what the peer has of ${mirror.name}`);
      const cells = [
        [current, ofTime(mirror.succeededAt)],
        [changed, ofTime(mirror.changedAt)],
        [rows, mirror.rows === undefined ? '–' : count(mirror.rows)],
        [bytes, mirror.bytes === undefined ? '–' : size(mirror.bytes)],
        [next, mirror.running ? 'running' : mirror.nextAt === undefined ? '–' : ahead(mirror.nextAt, now)],
      ] as const;
      for (const [cell, words] of cells) if (cell !== undefined) text(cell, words);
    },
  };
}

async function acceptAlarm({ name, path, alarm }: MirrorReport, button: HTMLButtonElement): Promise<void> {
  const isSure = await sure({
    title: `Take what the peer has of ${name}?`,
    text: `${alarm?.message ?? ''} What is in ${path} now is replaced by it.`,
    yes: 'Accept it',
  });
  if (!isSure) return;
  await act(button, async () => {
    const names = { names: [name] } satisfies MirrorsRequest;
    const { mirrors } = await post<MirrorsAnswer>('/api/mirrors/accept', names);
    const isRemoved = mirrors.some(({ absentSince, isOver }) => absentSince !== undefined || isOver);
    return isRemoved
      ? `${path} was removed, until the peer has it again.`
      : `${name} follows the peer again.`;
  });
}

function runText({ mirrors }: MirrorsAnswer): string {
  const changed = mirrors.filter((mirror) => mirror.changed === true).length;
  return `Asked for ${counted(mirrors.length, 'mirror')}: ${changed === 0 ? 'nothing changed' : `${count(changed)} changed`}.`;
}

export interface Question {
  readonly title: string;
  readonly text: string;
  /** The word on the button that does it. */
  readonly yes: string;
}

/** Asks before something that cannot be taken back. */
export function sure({ title, text: words, yes }: Question): Promise<boolean> {
  const dialog = byId<HTMLDialogElement>('confirm');
  text(byId('confirm-title'), title);
  text(byId('confirm-text'), words);
  text(byId('confirm-yes'), yes);
  byId('confirm-yes').onclick = () => dialog.close('yes');
  byId('confirm-no').onclick = () => dialog.close('no');
  dialog.returnValue = 'no';
  dialog.showModal();
  byId('confirm-no').focus();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}
