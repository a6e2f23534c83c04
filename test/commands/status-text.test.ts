import { describe, expect, it } from 'vitest';
import { pausedLine } from '../../src/commands/pause.js';
import { figuresLines } from '../../src/commands/status-lines.js';
import type { StatusReport } from '../../src/report/status-report.js';
import { folder, NOW, queue, report, statusText } from './report.js';

/** A peer that does not answer, and is tried again at `nextProbeAt`. */
function away(nextProbeAt: number | undefined, tries = 4) {
  const reason = {
    kind: 'unreachable' as const,
    message: 'connection refused',
    hint: 'Is it running?',
  };
  const next = nextProbeAt === undefined ? {} : { nextProbeAt };
  return report({
    peer: {
      url: 'http://127.0.0.1:8090',
      dialect: undefined,
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
    folders: [folder(name)],
    quarantined,
    peer: { url, dialect: 'yacy', queue },
    paused: { since: NOW - 60_000 },
  });
  const lines = statusText(shown, NOW, {}, 80);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  const text = lines.join('').replaceAll(' ', '');
  for (const words of [url, quarantined[0]?.file ?? '', '1,204,311', '`peersyncresume`endsit'])
    expect(text).toContain(words);
});

it('status says how soon the peer shows a document only once it has shown one', () => {
  const told = (timeToVisibleMs: number | undefined) =>
    statusText(report({ uplink: { inFlight: 0, confirming: 0, timeToVisibleMs } }), NOW).join('\n');
  expect(told(2_000)).toContain('The peer shows a document about 2s after a push.');
  expect(told(undefined)).not.toContain('after a push');
});

it('status says how many documents are being read and wait, and which one takes long', () => {
  const told = (documents?: StatusReport['uplink']) =>
    statusText(report({ uplink: documents }), NOW).join('\n');
  const uplink = { inFlight: 0, confirming: 0 };
  const longest = { file: 'inbox/a.pdf', since: NOW - 250_000 };
  expect(told({ ...uplink, documents: { reading: 2, waiting: 1_200, longest } })).toMatch(
    /^reading {2}2 documents being read, 1,200 waiting, inbox\/a\.pdf for 4m 10s$/m,
  );
  const perMinute = { documents: 12, pages: 1_400 };
  const paged = { ...longest, page: 37, pages: 500 };
  const fast = { reading: 1, waiting: 0, longest: paged, perMinute };
  expect(told({ ...uplink, documents: fast })).toMatch(
    /^reading {2}1 document being read, 0 waiting, 12 documents and 1,400 pages a minute, inbox\/a\.pdf for 4m 10s \(page 37 of 500\)$/m,
  );
  const pageless = { ...fast, longest, perMinute: { documents: 0.5, pages: 0 } };
  expect(told({ ...uplink, documents: pageless })).toContain(
    '0 waiting, 0.5 documents a minute, inbox',
  );
  const recent = { ...longest, since: NOW - 1_000 };
  expect(told({ ...uplink, documents: { reading: 1, waiting: 0, longest: recent } })).toMatch(
    /^reading {2}1 document being read, 0 waiting$/m,
  );
  expect(told({ ...uplink, documents: { reading: 0, waiting: 0 } })).not.toContain('reading');
});

const NONE = { removing: 0, removed: 0 };

it('status in 80 columns cuts no name of a folder as long as there are columns of zeros', () => {
  const name = 'a-folder-with-quite-a-long-name';
  const items = {
    pending: 0,
    accepted: 0,
    confirmed: 12_345,
    quarantined: 0,
    gone: 7,
    skipped: 12,
    ...NONE,
  };
  const linesIn = (width: number | undefined) => {
    const lines = statusText(report({ folders: [{ ...folder(name), items }] }), NOW, {}, width);
    return [/^folder /, /^a-folder/].map((begin) =>
      lines.find((line) => begin.test(line))?.split(/ {2,}/),
    );
  };
  const [head, row] = linesIn(80);
  expect(head).toEqual(['folder', 'pending', 'confirmed', 'gone', 'skipped']);
  expect(row).toEqual([name, '0', '12,345', '7', '12', 'watching']);
  expect(linesIn(undefined)[1]).toEqual([name, '0', '0', '12,345', '0', '7', '12', 'watching']);
});

it('status comes to an end in a terminal of any width', () => {
  const shown = report({ folders: [folder('資料'.repeat(20))], page: 'http://127.0.0.1:8385/' });
  for (let width = 1; width <= 80; width += 1) {
    const lines = statusText(shown, NOW, {}, width);
    expect(lines.join('').replaceAll(' ', '')).toContain('http://127.0.0.1:8385/');
  }
});

describe('status', () => {
  const lineOf = (of: Parameters<typeof report>[0], begin: string) =>
    statusText(report(of), NOW).find((line) => line.startsWith(begin));

  it.each([
    ['over while the answer came', NOW - 48, 2, 'Tried 2 times; the next try: now.'],
    ['not set', undefined, 4, 'the next try: now, or with the next work.'],
  ])('names the next try that is %s', (_, nextProbeAt, tries, words) => {
    expect(statusText(away(nextProbeAt, tries), NOW).join('\n')).toContain(words);
  });

  it('names no next try while peersync is paused, but what it waits for', () => {
    const text = statusText({ ...away(undefined), paused: { since: NOW - 1_000 } }, NOW).join('\n');
    expect(text).toContain('the next try: when the pause ends.');
  });

  it('names the address of the status page while that is open', () => {
    expect(lineOf({ page: 'http://127.0.0.1:8385/' }, 'page')).toBe(
      'page     http://127.0.0.1:8385/',
    );
    expect(lineOf({}, 'page')).toBeUndefined();
  });

  it.each([
    ['ahead', NOW + 60_000, 'until 2026-01-05 12:31:00 (in 1m)'],
    ['over while the answer came', NOW - 1, 'until now'],
  ])('names the end of a pause that is %s', (_, until, words) => {
    expect(lineOf({ paused: { since: NOW - 60_000, until } }, 'paused')).toContain(words);
  });

  it('says when a changed configuration was refused, why, what holds and what to do', () => {
    const takenUpAt = NOW - 7_260_000;
    const message = '/etc/c.json is not JSON at line 1, column 2: an \u001b odd character';
    const refused = { code: 'CONFIG_SYNTAX', message, hint: 'Mend the file.', at: NOW - 300_000 };
    const text = statusText(report({ configuration: { takenUpAt, refused } }), NOW).join('\n');
    expect(text).toContain(
      '\nconfig   The changed configuration was refused, and the one before holds: /etc/c.json is not JSON at line 1, column 2: an \\x1b odd character. Since 2026-01-05 12:25:00 (5m ago).\n         Mend the file.\n',
    );
    expect(lineOf({ configuration: { takenUpAt } }, 'config')).toBeUndefined();
  });
});

it('status tells the speed while files are confirmed, and nothing when idle', () => {
  const filesOf = (confirmedPerSecond: number) => {
    const figures = {
      timeToSearch: [],
      confirmedPerSecond,
      lastConfirmedAt: NOW - 2_000,
      alerts: [],
    };
    return statusText(report({ figures }), NOW).find((line) => line.startsWith('files'));
  };
  expect(filesOf(17.4)).toMatch(/ accepted, 17.4 a second, about 19h 13m to go$/);
  expect(filesOf(0)).toMatch(/ accepted, the last one 2s ago$/);
});

it('status names 20 collections with their time to search, and says how many more there are', () => {
  const [hour, day] = [{ count: 0 }, { count: 0 }];
  const timeToSearch = Array.from({ length: 33 }, (_, i) => ({
    collection: `c${i}`,
    hour,
    day,
    waiting: 1,
  }));
  const figures = { timeToSearch, confirmedPerSecond: 0, lastConfirmedAt: undefined, alerts: [] };
  const lines = figuresLines(figures, NOW);
  expect(lines).toHaveLength(22);
  expect(lines.at(-1)).toBe('  and 13 more: `peersync status --json`');
  expect(
    figuresLines({ ...figures, timeToSearch: [{ collection: 'c', hour, day, waiting: 0 }] }, NOW),
  ).toEqual([]);
});

describe('what pause answers', () => {
  it.each([
    ['until somebody ends it', undefined, /^Paused until `peersync resume`: /],
    ['for a minute', NOW + 60_000, /^Paused until 2026-01-05 12:31:00 \(in 1m\): /],
    ['for a second that is over', NOW - 20, /^Paused until now: /],
  ])('tells a pause %s', (_, until, words) => {
    expect(
      pausedLine({ since: NOW - 1_000, ...(until === undefined ? {} : { until }) }, NOW, true),
    ).toMatch(words);
  });
});

it('a process that has the state and takes no commands is named', () => {
  const [first] = statusText({ ...report({}), running: false }, NOW, { pid: 7 });
  expect(first).toMatch(
    /^peersync takes no commands now \(pid 7\): it starts or stops, or it is `peersync once`/,
  );
});
