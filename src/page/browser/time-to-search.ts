import type { Percentiles } from '../../report/durations.js';
import type { TimeToSearch } from '../../report/statistics.js';
import { attr, byId, h, type Row, text } from './dom.js';
import type { Model } from './model.js';
import { type Column, figure, PagedTable, rowHead, tableRow } from './paged-table.js';
import { count, counted, duration, rough } from './words.js';

const SPANS = [
  ['1 h', 'last hour'],
  ['24 h', 'last 24 hours'],
] as const;
const SHARES = [
  ['p50', 'Half'],
  ['p95', '95 %'],
  ['p99', '99 %'],
] as const;

const COLUMNS: readonly Column[] = [
  { title: 'Collection' },
  { title: 'Waiting', kind: 'number' },
  ...SPANS.flatMap(([, span]) =>
    SHARES.map(
      ([title, share]): Column => ({
        title,
        kind: 'number',
        group: span,
        explains: `${share} of the ${span} took at most so long`,
      }),
    ),
  ),
];
const LABELS = SPANS.flatMap(([span]) => SHARES.map(([share]) => `${share}, ${span}`));

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
  const waiting = figure('Waiting');
  const cells = LABELS.map((label) => figure(label));
  const head = rowHead(h('div', { class: 'titled' }, name, note));
  return {
    element: tableRow(head, waiting, ...cells),
    update: (line) => {
      const alert = model.status?.figures?.alerts.find(({ collection }) => collection === line.collection);
      const oldest =
        line.oldestSince === undefined ? '' : ` · the oldest waits ${rough(model.now() - line.oldestSince)}`;
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
