import { describe, expect, test } from 'vitest';
import { amountText } from '../../src/lib/text.js';
import {
  confirmedInHour,
  duration,
  groupedEvents,
  lostSummary,
  mirrorConditions,
  readingText,
  roughDuration,
  shownConditions,
  summaryOf,
  timeAgo,
  timeUntil,
  withSamples,
} from '../../src/page/browser/words.js';
import type { Sample } from '../../src/report/statistics.js';
import type { StatusReport } from '../../src/report/status-report.js';
import {
  event,
  failure,
  folder,
  MIN,
  mirror,
  NOW,
  queue,
  statusOf,
  timeToSearch,
} from '../browser/reports.js';
import { scriptOf } from '../browser/scripts.js';

type Items = StatusReport['items'];
type Facts = Parameters<typeof statusOf>[1];

/** Returns the summary of a status with these files in a folder. */
const summary = (items: Partial<Items>, over: Facts = {}) =>
  summaryOf(statusOf([folder('notes', items)], over), NOW);
const asked = (over: Parameters<typeof queue>[0]): Facts => ({
  peer: { url: 'https://search.example.org', dialect: 'standard', queue: queue(over) },
});
const speed = (confirmedPerSecond: number): Facts => ({
  figures: { timeToSearch: [], confirmedPerSecond, lastConfirmedAt: NOW, alerts: [] },
});

test('the note about documents that are read has their number, and the page or the speed', () => {
  const longest = { file: 'inbox/a.pdf', since: 0, page: 37, pages: 1_500 };
  const perMinute = { documents: 3, pages: 140 };
  expect(readingText(undefined)).toBe('');
  expect(readingText({ reading: 0, waiting: 7, perMinute })).toBe('');
  expect(readingText({ reading: 1, waiting: 0, longest, perMinute })).toBe(
    'reading page 37 of 1,500',
  );
  expect(readingText({ reading: 2, waiting: 0, longest, perMinute })).toBe(
    '2 being read, 140 pages/min',
  );
  expect(readingText({ reading: 2, waiting: 0, perMinute: { documents: 3, pages: 0 } })).toBe(
    '2 being read',
  );
});

describe('the headline of the page', () => {
  test('has the numbers first', () => {
    expect(summary({ confirmed: 3_608, quarantined: 1 })).toMatchObject({
      level: 'warn',
      sentence: '3,608 files searchable. 1 needs you.',
      title: '1 needs you',
      detail: expect.stringMatching(/^1 file cannot be delivered without a change\./),
    });
    const rest = { level: 'ok', detail: '', title: 'all searchable', condition: undefined };
    expect(summary({ confirmed: 21_721 })).toEqual({
      ...rest,
      sentence: '21,721 files searchable.',
    });
    expect(summary({})).toMatchObject({
      level: 'ok',
      sentence: 'Nothing is searchable yet.',
      detail: 'Put a file into /srv/library/notes and watch it become searchable.',
    });
  });

  test('counts the documents of removed files until their removal is approved', () => {
    const massDeletion = { files: 300, of: 302, since: NOW, before: NOW, examples: ['bulk/n1.md'] };
    const held = folder('notes', { confirmed: 2, gone: 300 }, { massDeletion });
    const { sentence } = summaryOf(statusOf([held, folder('papers')]), NOW);
    expect(sentence).toBe('302 documents searchable, 300 of them of removed files.');
  });

  test('has the rate and the remaining time while files are on the way, even beside a condition', () => {
    expect(summary({ pending: 1_152, accepted: 312 }, speed(38.2))).toMatchObject({
      level: 'busy',
      sentence: 'Nothing is searchable yet. 1,464 on the way.',
      title: '1,464 waiting',
      detail: '38.2 a second, about 39s to go.',
    });
    const { detail } = summary({ pending: 60, quarantined: 1 }, speed(2));
    expect(detail).toMatch(/^1 file cannot be delivered .* 2 a second, about 30s to go\.$/);
    // There is no rate while the peer is away or the work is paused.
    const away = {
      ...asked({ circuit: { state: 'open', since: NOW, tries: 1, held: ['push'] } }),
      ...speed(77),
    };
    expect(summary({ pending: 1_152 }, away).detail).not.toContain('a second');
    expect(
      summary({ pending: 1_152 }, { ...asked({ paused: { since: NOW } }), ...speed(77) }).detail,
    ).toBe('');
    // There is no rate if nothing is on the way.
    expect(summary({ confirmed: 9 }, speed(38.9)).detail).toBe('');
  });

  test('shows a peer that has not answered yet as a warning, not as a failure', () => {
    const peer = { url: 'https://search.example.org', dialect: undefined, queue: queue() };
    const { detail, level, title } = summary({ pending: 2 }, { peer });
    expect([level, title]).toEqual(['warn', '2 waiting']);
    expect(detail).toMatch(/^The peer has not answered yet since peersync started\./);
  });

  test.each([
    ['unreachable', 'does not answer'],
    ['failing', 'answers with errors'],
    ['denied', 'refuses the credentials'],
    ['weak', 'asks for the password in a way that is not safe'],
  ] as const)('shows what waits, why, and the next try while the peer is %s', (kind, words) => {
    const reason = { kind, message: 'connect ECONNREFUSED', hint: 'Look whether it runs.' };
    const times = { since: NOW - 3 * MIN, nextProbeAt: NOW + 12_000, tries: 9 };
    const open = asked({ circuit: { state: 'open', ...times, reason, held: ['push'] } });
    const { detail, ...said } = summary(
      { confirmed: 9, pending: 1_200, accepted: 4, quarantined: 2 },
      open,
    );
    expect(said).toMatchObject({
      level: 'bad',
      sentence: '9 files searchable. 1,204 wait. 2 need you.',
      title: 'attention: peer · 1,204 waiting · 2 need you',
    });
    const why = `The peer ${words}: connect ECONNREFUSED\\. Look whether it runs\\.`;
    expect(detail).toMatch(new RegExp(`^${why} Since [\\d :-]+\\. Next try in 12s\\.$`));
  });

  test('shows a pause, and a peer that asks to wait', () => {
    expect(summary({ pending: 34 }, asked({ paused: { since: NOW } }))).toMatchObject({
      level: 'warn',
      title: 'paused · 34 waiting',
      sentence: 'Nothing is searchable yet. 34 wait. Paused until you resume.',
    });
    expect(summary({ pending: 1 }, asked({ retryAfterUntil: NOW + 30_000 }))).toMatchObject({
      level: 'warn',
      sentence: 'Nothing is searchable yet. 1 waits.',
      detail: 'The peer asked to wait; requests continue in 30s.',
    });
    expect(summary({ pending: 1 }, asked({ retryAfterUntil: NOW - 1 }))).toMatchObject({
      level: 'busy',
      detail: '',
    });
  });

  test('names the subject of a failure in the title of the window', () => {
    const diskFailure = {
      ...failure('DISK_SILENT', 'It is silent.', 'See to it.'),
      path: '/srv/state',
    };
    expect(summary({ pending: 5 }, { diskFailure }).title).toBe('attention: disk · 5 waiting');
  });

  test('shows in the title that the daemon does not answer', () => {
    const titles = [12, undefined].map((waiting) => lostSummary(NOW - 20_000, NOW, waiting).title);
    expect(titles).toEqual(['no answer · 12 waited', 'no answer']);
  });
});

test('confirmations of the last hour are counted over all collections', () => {
  const figures = { confirmedPerSecond: 0, lastConfirmedAt: NOW, alerts: [] };
  const two = ['notes', 'inbox'].map((name) => timeToSearch(name, 1));
  expect(confirmedInHour(statusOf([], { figures: { ...figures, timeToSearch: two } }))).toBe(640);
});

describe('the conditions on the page', () => {
  test('are the gravest first, each with a link to its section; none if all is well', () => {
    expect(shownConditions(scriptOf('quiet').status)).toEqual([]);
    const conditions = shownConditions(scriptOf('conditions').status);
    expect(conditions.map(({ about, href }) => `${about} ${href}`)).toEqual([
      'usb #folders',
      'papers #time-to-search',
      'mirrors #mirrors',
      'notes #folders',
      'quarantine #files=quarantined',
      'mirrors #mirrors',
      'mirrors #mirrors',
      'papers #folders',
      'state #peer',
    ]);
  });

  test('name up to three unreadable paths each, and count more of them', () => {
    const conditions = (...names: string[]) => {
      const problems = names.map((name) => ({
        folder: 'notes',
        path: `/srv/library/notes/${name}`,
        since: NOW,
        failure: failure('DIRECTORY_UNREADABLE', 'It cannot be listed.', 'Let us in.'),
      }));
      return shownConditions(statusOf([], { problems }));
    };
    expect(new Set(conditions('a', 'b').map(({ key }) => key)).size).toBe(2);
    const [many, ...others] = conditions('a', 'b', 'c', 'd').map(({ text }) => text);
    expect(many).toMatch(
      /^4 paths could not be looked at, the first of them notes: .*a: It cannot be listed\./,
    );
    expect(others).toEqual([]);
  });

  test('name up to three mirrors with the same condition', () => {
    const textsOf = (...mirrors: StatusReport['mirrors'][number][]) =>
      shownConditions(statusOf([], { mirrors })).map(({ text }) => text);
    const own = { condition: failure('X', 'It is empty.', 'Look at it.') };
    const fails = { failure: failure('Y', 'It is not there.', 'Make it.') };
    const some = [
      mirror('a', own),
      mirror('b', fails),
      mirror('c', { ...own, ...fails }),
      mirror('d'),
    ];
    expect(textsOf(...some)).toEqual(['a, c need you.', 'b fails, and is tried again.']);
    const many = Array.from({ length: 2_000 }, (_, i) => mirror(`t${i}`, own));
    expect(textsOf(...many)).toEqual(['t0, t1, t2 and 1,997 more need you.']);
  });
});

test('a mirror shows its condition, the files with conflicting edits, and that the peer does not have it', () => {
  const condition = failure('X', 'It is empty.', 'Look at it.');
  const file = 'tables/stock.conflict.csv';
  const conflicts = [12, 19].map((pk) => ({ pk: `${pk}`, column: 'place', file, at: NOW }));
  const shown = mirrorConditions(
    mirror('stock', { condition, conflicts, absentSince: NOW }),
    '/srv/mirror',
  );
  expect(shown.map(({ level, text }) => `${level}: ${text}`)).toEqual([
    'bad: It is empty. Look at it.',
    `warn: 2 cells changed on both sides (12 place, 19 place). The peer's value was kept; yours is in /srv/mirror/${file}, which you can remove when you are done.`,
    'info: The peer does not have it; the file comes back when the peer has it again.',
  ]);
});

test('durations, times and rates are rounded to significant digits and units', () => {
  const lasted = [840, 1_000, 2_349, 9_960, 12_400, 125_000].map(duration);
  expect(lasted).toEqual(['840ms', '1s', '2.3s', '10s', '12s', '2m 5s']);
  expect(roughDuration(3 * MIN + 40_000)).toBe('3m');
  expect([1_000, 42_000, 9 * MIN].map((ms) => timeAgo(NOW - ms, NOW))).toEqual([
    'just now',
    '42s ago',
    '9m ago',
  ]);
  expect([12_000, 100, -MIN].map((ms) => timeUntil(NOW + ms, NOW))).toEqual([
    'in 12s',
    'now',
    'now',
  ]);
  expect([0, 0.25, 38.24, 812.6, 1_204.4].map(amountText)).toEqual([
    '0',
    '0.25',
    '38.2',
    '813',
    '1,204',
  ]);
});

describe('the samples of the charts', () => {
  const [SLOT, HOUR] = [10_000, 3_600_000];
  const sample = (at: number): Sample => ({ at, confirmed: 0, waiting: 0 });
  /** Returns `count` samples, the last of them at `end`. */
  const upTo = (end: number, count: number) =>
    Array.from({ length: count }, (_, i) => sample(end - (count - 1 - i) * SLOT));

  test('are those of the last hour, oldest first', () => {
    const known = withSamples([], upTo(HOUR, 360));
    const now = withSamples(known, [sample(HOUR + SLOT)]);
    expect(now).toEqual(upTo(HOUR + SLOT, 360));
    expect(withSamples(now, [])).toBe(now);
  });

  test('are in order and not in the future after the clock of the daemon was set back', () => {
    const known = upTo(2 * HOUR, 180);
    expect(withSamples(known, [sample(HOUR)])).toEqual([sample(HOUR)]);
    const at = 2 * HOUR - 20 * SLOT + 1;
    const now = withSamples(known, [sample(at)]);
    expect([now.at(-1), now.length]).toEqual([sample(at), 161]);
    expect(now.every((one, i) => one.at > (now[i - 1]?.at ?? 0))).toBe(true);
  });
});

test('consecutive events of the same kind are combined', () => {
  const confirmed = (id: number) => ({
    ...event(id, id, 'info', `confirmed ${id}.md`),
    event: 'confirmed',
  });
  const away = (id: number) => event(id, id, 'error', 'The peer does not answer');
  const all = [
    confirmed(7),
    confirmed(6),
    away(5),
    away(4),
    confirmed(3),
    { ...confirmed(2), level: 'warn' as const },
  ];
  expect(groupedEvents(all).map(({ id, more }) => `${id} +${more}`)).toEqual([
    '7 +1',
    '5 +1',
    '3 +0',
    '2 +0',
  ]);
});
