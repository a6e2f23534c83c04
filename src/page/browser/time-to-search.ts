import type { Percentiles, TimeToSearch } from '../../report/statistics.js';
import { byId, type Child, h } from './dom.js';
import type { Model } from './model.js';
import { type Column, PagedTable } from './paged-table.js';
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
  { title: 'Waiting' },
  ...SPANS.flatMap(([span, group]) =>
    SHARES.map(([title, share]): Column => {
      const explains = `${share} of the ${group} took at most so long`;
      return { title, label: `${title}, ${span}`, group, explains };
    }),
  ),
];

/** How long it takes until a file at rest is searchable, by collection. */
export function showTimeToSearch(model: Model): void {
  const table = new PagedTable<TimeToSearch>(byId('tts'), {
    caption:
      'Time from a file at rest to its document confirmed, by collection, over one hour and over 24 hours',
    words: ['collection', 'collections'],
    columns: COLUMNS,
    keyOf: ({ collection }) => collection,
    cells: (line) => cellsOf(line, model),
    textOf: ({ collection }) => collection,
    empty: 'Nothing was confirmed in the last 24 hours, so there is nothing to measure yet.',
    pageSize: 10,
  });
  model.follow(['status', 'tick'], () => {
    if (model.status !== undefined) table.set(model.status.figures?.timeToSearch ?? []);
  });
}

function cellsOf({ collection, oldestSince, waiting, hour, day }: TimeToSearch, model: Model): Child[] {
  const isAlert = model.status?.figures?.alerts.some((alert) => alert.collection === collection);
  const oldest = oldestSince === undefined ? '' : ` · the oldest waits ${rough(model.now() - oldestSince)}`;
  const note = `${counted(day.count, 'confirmation')} in 24 h${oldest}${isAlert ? ' · alert' : ''}`;
  const head = h(
    'div.titled',
    h('span.name', collection),
    h('span', { class: isAlert ? 'watch s-bad' : 'watch' }, note),
  );
  return [head, count(waiting), ...valuesOf(hour), ...valuesOf(day)];
}

function valuesOf({ p50Ms, p95Ms, p99Ms }: Percentiles): string[] {
  return [p50Ms, p95Ms, p99Ms].map((ms) => (ms === undefined ? '–' : duration(ms)));
}
