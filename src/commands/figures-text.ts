import { durationText } from '../lib/duration-text.js';
import type { Percentiles } from '../report/durations.js';
import type { StatisticsReport, TimeToSearch } from '../report/statistics.js';
import { columns, safe } from './text.js';

/** So many collections are shown. */
const SHOWN = 20;

/** Time-to-search by collection, where there is something to tell. */
export function figuresLines(figures: StatisticsReport | undefined, now: number): string[] {
  const told = (figures?.timeToSearch ?? []).filter(({ day, waiting }) => day.count > 0 || waiting > 0);
  if (told.length === 0) return [];
  const rows: (string | number)[][] = [
    ['time to search', 'last hour', 'p50', 'p95', 'p99', 'last 24 h', 'p50', 'p95', 'p99', ''],
  ];
  for (const row of told.slice(0, SHOWN))
    rows.push([safe(row.collection), ...cells(row.hour), ...cells(row.day), waitingText(row, now)]);
  const more = told.length - SHOWN;
  return ['', ...columns(rows), ...(more > 0 ? [`  and ${more} more: \`peersync status --json\``] : [])];
}

function cells({ count, p50Ms, p95Ms, p99Ms }: Percentiles): (string | number)[] {
  return [count, ...[p50Ms, p95Ms, p99Ms].map((ms) => (ms === undefined ? '-' : durationText(ms)))];
}

function waitingText({ waiting, oldestSince }: TimeToSearch, now: number): string {
  if (waiting === 0) return '';
  const oldest = oldestSince === undefined ? '' : `, the oldest for ${durationText(now - oldestSince)}`;
  return `${waiting.toLocaleString('en-US')} waiting${oldest}`;
}
