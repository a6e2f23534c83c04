import type { MirrorReport } from '../../mirror/record.js';
import type { MirrorsAnswer, MirrorsRequest } from '../api.js';
import { post } from './ask.js';
import { byId, type Child, h, icon, prose, show } from './dom.js';
import type { Model } from './model.js';
import { act, sure } from './notices.js';
import { PagedTable } from './paged-table.js';
import { ago, ahead, count, counted, mirrorTroubles, size } from './words.js';

/** The mirrors: files that follow something in the peer. Those in trouble come first. */
export function showMirrors(model: Model): void {
  const table = new PagedTable<MirrorReport>(byId('mirror-list'), {
    caption: 'Mirrored files, with when they were last brought up to date and last changed',
    words: ['mirror', 'mirrors'],
    columns: [
      { title: 'Mirror' },
      { title: 'Up to date', explains: 'When the file was last known to be what the peer has' },
      { title: 'Changed', explains: 'When its content last changed' },
      { title: 'Rows' },
      { title: 'Size' },
      { title: 'Next', explains: 'When the peer is asked next' },
    ],
    keyOf: ({ name }) => name,
    cells: (mirror) => cellsOf(mirror, model.now(), model.status?.mirrorRoot ?? ''),
    textOf: ({ name, path }) => `${name} ${path}`,
    empty:
      'Nothing is mirrored. Tables and shared objects of the peer become files here when `mirror` in the configuration names them.',
  });
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

function cellsOf(mirror: MirrorReport, now: number, root: string): Child[] {
  const { name, kind, path, alarm, rows, bytes, nextAt, running } = mirror;
  const ofTime = (at: number | undefined) => (at === undefined ? 'never' : ago(at, now));
  const troubles = mirrorTroubles(mirror, root).map(({ level, text }) =>
    h(`li.s-${level}`, icon(level === 'bad' ? 'error' : level), h('p', prose(text))),
  );
  const titled = h('div.titled', h('span.name', name), h('span.watch', kind));
  const accept = h(
    'button',
    {
      ...{ class: 'small', 'aria-label': `Accept what the peer has of ${name}` },
      onclick: (button) => void acceptAlarm(mirror, button),
    },
    'Accept…',
  );
  return [
    [
      titled,
      h('span.path', path),
      troubles.length > 0 && h('ul.troubles', troubles),
      alarm !== undefined && accept,
    ],
    ofTime(mirror.succeededAt),
    ofTime(mirror.changedAt),
    rows === undefined ? '–' : count(rows),
    bytes === undefined ? '–' : size(bytes),
    running ? 'running' : nextAt === undefined ? '–' : ahead(nextAt, now),
  ];
}

async function acceptAlarm({ name, path, alarm }: MirrorReport, button: HTMLButtonElement): Promise<void> {
  const words = `${alarm?.message ?? ''} What is in ${path} now is replaced by it.`;
  if (!(await sure(`Take what the peer has of ${name}?`, words, 'Accept it'))) return;
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
