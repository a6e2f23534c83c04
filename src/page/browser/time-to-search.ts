import type { Percentiles, TimeToSearch } from '../../figures/report.js';
import { attr, byId, h, type Row, text } from './dom.js';
import type { Model } from './model.js';
import { type Column, PagedTable } from './paged-table.js';
import { count, counted, duration, rough } from './words.js';

const COLUMNS: readonly Column[] = [
  { title: 'Collection' },
  { title: 'Waiting', kind: 'number' },
  { title: 'p50, 1 h', kind: 'number', explains: 'Half of the last hour took at most so long' },
  { title: 'p95', kind: 'number', explains: '95 % of the last hour took at most so long' },
  { title: 'p99', kind: 'number', explains: '99 % of the last hour took at most so long' },
  { title: 'p50, 24 h', kind: 'number', explains: 'Half of the last day took at most so long' },
  { title: 'p95', kind: 'number', explains: '95 % of the last day took at most so long' },
  { title: 'p99', kind: 'number', explains: '99 % of the last day took at most so long' },
];

/** How long it takes until a file at rest is searchable, by collection. */
export function showTimeToSearch(model: Model): void {
  const table = new PagedTable<TimeToSearch>({
    caption:
      'Time from a file at rest to its document confirmed, by collection, over one hour and over 24 hours',
    words: ['collection', 'collections'],
    columns: COLUMNS,
    keyOf: ({ collection }) => collection,
    make: () => row(model),
    textOf: ({ collection }) => collection,
    empty: 'Nothing was confirmed in the last 24 hours, so there is nothing to measure yet.',
    pageSize: 10,
  });
  byId('tts').append(table.element);
  model.follow(['status', 'tick'], () => {
    if (model.status !== undefined) table.set(model.status.figures?.timeToSearch ?? []);
  });
}

function row(model: Model): Row<TimeToSearch> {
  const name = h('span', { class: 'name' });
  const note = h('span', { class: 'watch' });
  const waiting = h('td', { class: 'number', 'data-label': 'Waiting' });
  const labels = ['p50, 1 h', 'p95, 1 h', 'p99, 1 h', 'p50, 24 h', 'p95, 24 h', 'p99, 24 h'];
  const cells = labels.map((label) => h('td', { class: 'number', 'data-label': label }));
  const head = h('th', { scope: 'row' }, h('div', { class: 'titled' }, name, note));
  return {
    element: h('tr', {}, head, waiting, ...cells),
    update: (line) => {
      const alert = model.status?.figures?.alerts.find(({ collection }) => collection === line.collection);
      const oldest =
        line.oldestSince === undefined ? '' : `, the oldest for ${rough(model.now() - line.oldestSince)}`;
      text(name, line.collection);
      text(
        note,
        `${counted(line.day.count, 'confirmation')} in 24 h${oldest}${alert === undefined ? '' : ' · alert'}`,
      );
      attr(note, 'class', alert === undefined ? 'watch' : 'watch s-bad');
      text(waiting, count(line.waiting));
      const values = [...valuesOf(line.hour), ...valuesOf(line.day)];
      for (const [i, cell] of cells.entries()) text(cell, values[i] ?? '–');
    },
  };
}

function valuesOf({ p50Ms, p95Ms, p99Ms }: Percentiles): (string | undefined)[] {
  return [p50Ms, p95Ms, p99Ms].map((ms) => (ms === undefined ? undefined : duration(ms)));
}
