import { describe, expect, it } from 'vitest';
import { pausedLine } from '../../src/commands/control.js';
import { statusText } from '../../src/commands/status.js';
import { folder, NOW, queue, report } from './report.js';

/** A peer that does not answer, and is tried again at `nextProbeAt`. */
function away(nextProbeAt: number | undefined, tries = 4) {
  const reason = { kind: 'unreachable' as const, message: 'connection refused', hint: 'Is it running?' };
  const next = nextProbeAt === undefined ? {} : { nextProbeAt };
  return report({
    peer: {
      ...{ url: 'http://127.0.0.1:8090', dialect: undefined },
      queue: {
        ...queue,
        circuit: { ...queue.circuit, state: 'open', since: NOW - 5_000, reason, tries, ...next },
      },
    },
  });
}

it('status fits a terminal of 80 columns, and tells all of it', () => {
  const name = 'a-folder-with-quite-a-long-name';
  const url = `https://search.example.org/${'a-long-path/'.repeat(8)}`;
  const quarantined = [
    { file: `${name}/${'x'.repeat(90)}.md`, code: 'X', message: 'It is too large for it.' },
  ];
  const shown = report({
    ...{ folders: [folder(name)], quarantined, peer: { url, dialect: 'yacy', queue } },
    paused: { since: NOW - 60_000 },
  });
  const lines = statusText(shown, NOW, undefined, 80);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  const text = lines.join('').replaceAll(' ', '');
  for (const words of [url, quarantined[0]?.file ?? '', '1,204,311', '`peersyncresume`endsit'])
    expect(text).toContain(words);
});

describe('status, of a peer that is away', () => {
  it.each([
    ['ahead', NOW + 2_000, /the next try: 2026-01-05 12:30:02 \(in 2s\)\./],
    ['just now', NOW, /the next try: now\./],
    ['over while the answer came', NOW - 48, /the next try: now\./],
    ['not set', undefined, /the next try: now, or with the next work\./],
  ])('names the next try that is %s', (_, nextProbeAt, words) => {
    expect(statusText(away(nextProbeAt), NOW).join('\n')).toMatch(words);
  });
});

it.each([
  [1, 'Tried 1 time;'],
  [2, 'Tried 2 times;'],
])('status counts %i tries as people do', (tries, words) => {
  expect(statusText(away(NOW + 2_000, tries), NOW).join('\n')).toContain(words);
});

it.each([
  ['open', { page: 'http://127.0.0.1:8385/' }, ['page     http://127.0.0.1:8385/']],
  ['closed', {}, []],
])('status names the address of the status page while that is %s', (_, parts, lines) => {
  expect(statusText(report(parts), NOW).filter((line) => line.startsWith('page'))).toEqual(lines);
});

describe('status, of a pause', () => {
  it.each([
    ['ahead', NOW + 60_000, 'until 2026-01-05 12:31:00 (in 1m)'],
    ['over while the answer came', NOW - 1, 'until now'],
  ])('names its end that is %s', (_, until, words) => {
    const lines = statusText(report({ paused: { since: NOW - 60_000, until } }), NOW);
    expect(lines.find((line) => line.startsWith('paused'))).toContain(words);
  });
});

describe('status, of a configuration', () => {
  const takenUpAt = NOW - 7_260_000;
  const isOfIt = (line: string) => line.startsWith('config');

  it('says when a changed one was refused, why, what holds and what to do', () => {
    const refused = {
      code: 'CONFIG_SYNTAX',
      message: '/etc/c.json is not JSON at line 1, column 2: an \u001b odd character',
      hint: 'Mend the file at that place.',
      at: NOW - 300_000,
    };
    const lines = statusText(report({ configuration: { takenUpAt, refused } }), NOW);
    const at = lines.findIndex(isOfIt);
    expect(lines.slice(at, at + 2)).toEqual([
      'config   The changed configuration was refused, and the one before holds: /etc/c.json is not JSON at line 1, column 2: an \\x1b odd character. Since 2026-01-05 12:25:00 (5m ago).',
      '         Mend the file at that place.',
    ]);
  });

  it('says nothing of one that was taken up', () => {
    expect(statusText(report({ configuration: { takenUpAt } }), NOW).some(isOfIt)).toBe(false);
  });
});

describe('status, of the speed', () => {
  const filesOf = (confirmedPerSecond: number) => {
    const figures = { timeToSearch: [], confirmedPerSecond, lastConfirmedAt: NOW - 2_000, alerts: [] };
    return statusText(report({ figures }), NOW).find((line) => line.startsWith('files'));
  };

  it('tells it while files are confirmed, and nothing when idle', () => {
    expect(filesOf(17.4)).toMatch(/ accepted, 17\/s, the last one 2s ago$/);
    expect(filesOf(0)).toMatch(/ accepted, the last one 2s ago$/);
  });
});

describe('status, of an alert', () => {
  it('says what is wrong, since when, and what to do', () => {
    const alert = {
      ...{ code: 'TIME_TO_SEARCH' as const, collection: 'docs', since: NOW - 60_000 },
      ...{ message: 'It is late.', hint: 'Look.' },
    };
    const figures = { timeToSearch: [], confirmedPerSecond: 0, lastConfirmedAt: undefined, alerts: [alert] };
    const lines = statusText(report({ figures }), NOW);
    const at = lines.findIndex((line) => line.startsWith('ALERT'));
    expect(lines.slice(at, at + 2)).toEqual([
      'ALERT    It is late. Since 2026-01-05 12:29:00 (1m ago).',
      '         Look.',
    ]);
  });
});

describe('what pause answers', () => {
  it.each([
    ['until somebody ends it', undefined, /^Paused until `peersync resume`: /],
    ['for a minute', NOW + 60_000, /^Paused until 2026-01-05 12:31:00 \(in 1m\): /],
    ['for a second that is over', NOW - 20, /^Paused until now: /],
  ])('tells a pause %s', (_, until, words) => {
    expect(pausedLine({ since: NOW - 1_000, ...(until === undefined ? {} : { until }) }, NOW)).toMatch(words);
  });
});
