import { describe, expect, test } from 'vitest';
import {
  ago,
  ahead,
  amount,
  calm,
  concernsOf,
  confirmedInHour,
  duration,
  forTheSameReason,
  grouped,
  lostWorld,
  mirrorTroubles,
  withSamples,
  worldOf,
} from '../../src/page/browser/words.js';
import type { Sample } from '../../src/report/statistics.js';
import type { StatusReport } from '../../src/report/status.js';
import { event, folder, item, MIN, mirror, NOW, queue, statusOf, trouble } from '../browser/reports.js';
import { scriptOf } from '../browser/scripts.js';

type Items = StatusReport['items'];
type Facts = Parameters<typeof statusOf>[1];

/** What the page says with these files in a folder, and what else is so. */
const world = (items: Partial<Items>, over: Facts = {}) =>
  worldOf(statusOf([folder('notes', items)], over), NOW);
const asked = (over: Parameters<typeof queue>[0]): Facts => ({
  peer: { url: 'https://search.example.org', dialect: 'standard', queue: queue(over) },
});
const speed = (confirmedPerSecond: number): Facts => ({
  figures: { timeToSearch: [], confirmedPerSecond, lastConfirmedAt: NOW, alerts: [] },
});
const problems = (...names: string[]) =>
  names.map((name) => ({
    ...{ folder: 'notes', path: `/srv/library/notes/${name}`, since: NOW },
    trouble: trouble('DIRECTORY_UNREADABLE', 'It cannot be listed.', 'Let us in.'),
  }));

test('what was confirmed in the last hour is counted by all collections, and by earlier runs too', () => {
  const spread = (count: number) => ({ count, p50Ms: 900, p95Ms: 2_000, p99Ms: 3_000, maxMs: 3_000 });
  const timeToSearch = [
    { collection: 'notes', hour: spread(2), day: spread(7), waiting: 0 },
    { collection: 'inbox', hour: spread(3), day: spread(3), waiting: 0 },
  ];
  const figures = { timeToSearch, confirmedPerSecond: 0, lastConfirmedAt: NOW, alerts: [] };
  expect(confirmedInHour(statusOf([], { figures }))).toBe(5);
});

describe('the top of the page', () => {
  test('says numbers first', () => {
    expect(world({ confirmed: 3_608, quarantined: 1 })).toMatchObject({
      ...{ level: 'warn', sentence: '3,608 files searchable. 1 needs you.', title: '1 needs you' },
      detail: expect.stringMatching(/^1 file cannot be delivered without a change\./),
    });
    const rest = { level: 'ok', detail: '', title: 'all searchable', concern: undefined };
    expect(world({ confirmed: 21_721 })).toEqual({ ...rest, sentence: '21,721 files searchable.' });
    expect(world({})).toMatchObject({
      ...{ level: 'ok', sentence: 'Nothing is searchable yet.' },
      detail: 'Put a file into /srv/library/notes and watch it become searchable.',
    });
  });

  test('says at work how fast it goes and what is left of it, also beside what a person should know', () => {
    expect(world({ pending: 1_152, accepted: 312 }, speed(38.2))).toMatchObject({
      ...{ level: 'busy', sentence: 'Nothing is searchable yet. 1,464 on the way.', title: '1,464 waiting' },
      detail: '38.2 a second, about 38s to go.',
    });
    const { detail } = world({ pending: 60, quarantined: 1 }, speed(2));
    expect(detail).toMatch(/^1 file cannot be delivered .* 2 a second, about 30s to go\.$/);
    // Where nothing is on the way there is no speed.
    expect(world({ confirmed: 9 }, speed(38.9)).detail).toBe('');
  });

  test('says that the peer has not been asked yet, which is no trouble', () => {
    const peer = { url: 'https://search.example.org', dialect: undefined, queue: queue() };
    const { detail, level, title } = world({ pending: 2 }, { peer });
    expect([level, title]).toEqual(['warn', '2 waiting']);
    expect(detail).toMatch(/^The peer has not answered yet since peersync started\./);
  });

  test.each([
    ['unreachable', 'does not answer'],
    ['failing', 'answers with errors'],
    ['denied', 'refuses the credentials'],
  ] as const)('says with a peer that is %s what waits, why, and what happens next', (kind, words) => {
    const reason = { kind, message: 'connect ECONNREFUSED', hint: 'Look whether it runs.' };
    const times = { since: NOW - 3 * MIN, nextProbeAt: NOW + 12_000, tries: 9 };
    const open = asked({ circuit: { state: 'open', ...times, reason, held: ['push'] } });
    const { detail, ...said } = world({ confirmed: 9, pending: 1_200, accepted: 4, quarantined: 2 }, open);
    expect(said).toMatchObject({
      ...{ level: 'bad', sentence: '9 files searchable. 1,204 wait. 2 need you.' },
      title: 'peer in trouble · 1,204 waiting · 2 need you',
    });
    const why = `The peer ${words}: connect ECONNREFUSED\\. Look whether it runs\\.`;
    expect(detail).toMatch(new RegExp(`^${why} Since [\\d :-]+\\. Tried again in 12s\\.$`));
  });

  test('says that a person paused, or that the peer asks to wait', () => {
    expect(world({ pending: 34 }, asked({ paused: { since: NOW } }))).toMatchObject({
      ...{ level: 'warn', sentence: 'Nothing is searchable yet. 34 wait. Paused until you resume.' },
    });
    expect(world({ pending: 1 }, asked({ pausedUntil: NOW + 30_000 }))).toMatchObject({
      ...{ level: 'warn', sentence: 'Nothing is searchable yet. 1 waits.' },
      detail: 'The peer asked to wait; it goes on in 30s.',
    });
  });

  test('says what could not be looked at, or that a disk or the daemon does not answer', () => {
    const detail = '/srv/library/notes/a: It cannot be listed. Let us in.';
    expect(world({ confirmed: 9 }, { problems: problems('a') })).toMatchObject({ level: 'warn', detail });
    const message = 'The disk of /srv/state does not answer: what is known is not brought to the disk.';
    const disk = trouble('DISK_SILENT', message, 'See whether it is well.', 3);
    expect(world({ pending: 5 }, { diskTrouble: { ...disk, path: '/srv/state' } })).toMatchObject({
      ...{
        level: 'bad',
        title: 'disk in trouble · 5 waiting',
        sentence: 'Nothing is searchable yet. 5 wait.',
      },
      detail: expect.stringContaining(`${message} See whether it is well. Since `),
    });
    expect(lostWorld(NOW - 20_000, NOW, 12)).toMatchObject({
      ...{ level: 'bad', sentence: 'peersync does not answer.', title: 'no answer · 12 waited' },
    });
  });
});

describe('what needs a look', () => {
  const textsOf = (over: Facts) => concernsOf(statusOf([], over)).map(({ text }) => text);

  test('is told the gravest first, each with where to go; nothing while all is well', () => {
    expect(concernsOf(scriptOf('quiet').status)).toEqual([]);
    const concerns = concernsOf(scriptOf('trouble').status);
    expect(concerns.map(({ about, href }) => `${about} ${href}`)).toEqual([
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

  test('names what could not be looked at, and counts what would be too many to name', () => {
    const lineOf = (name: string) => `/srv/library/notes/${name}: It cannot be listed. Let us in.`;
    expect(textsOf({ problems: problems('a', 'b') })).toEqual([lineOf('a'), lineOf('b')]);
    const many = `4 paths could not be looked at, the first of them notes: ${lineOf('a')}`;
    expect(textsOf({ problems: problems('a', 'b', 'c', 'd') })).toEqual([many]);
  });

  test('names the mirrors in trouble, and leaves to the table of the mirrors what only that says of each', () => {
    const own = { alarm: trouble('X', 'It is empty.', 'Look at it.') };
    const fails = { failure: trouble('Y', 'It is not there.', 'Make it.') };
    const mirrors = [mirror('a', own), mirror('b', fails), mirror('c', { ...own, ...fails }), mirror('d')];
    expect(textsOf({ mirrors })).toEqual(['a, c have an alarm.', 'b fails, and is tried again.']);
    const many = Array.from({ length: 2_000 }, (_, i) => mirror(`t${i}`, own));
    expect(textsOf({ mirrors: many })).toEqual(['t0, t1, t2 and 1,997 more have an alarm.']);
    const stock = scriptOf('trouble').status.mirrors.filter(({ name }) => name === 'stock');
    expect(textsOf({ mirrors: stock })).toEqual(['stock changed in the peer and here.']);
  });

  test('tells that a changed configuration was refused, and why; and what waits for a restart', () => {
    const refused = { code: 'X', message: 'It has a problem', hint: 'Mend it.', at: NOW - 60_000 };
    expect(textsOf({ configuration: { takenUpAt: NOW - 90_000, refused } })).toEqual([
      'The changed configuration was refused, and the one before holds: It has a problem. Mend it.',
    ]);
    expect(textsOf({ configuration: { takenUpAt: NOW } })).toEqual([]);
    expect(textsOf({ restart: ['peer.url', 'state.dir'] })).toEqual([
      'A restart is needed for the new values of peer.url, state.dir. The values before hold until then.',
    ]);
  });
});

test('a reason that files have in common is said once, by the first of those that follow each other', () => {
  const items = [0, 0, 3, 1, 0].map((reason) => item(reason, 'quarantined'));
  expect(items.map((one) => forTheSameReason(items).has(one))).toEqual([false, true, true, false, false]);
});

test('a mirror tells its alarm, and where what was changed on both sides is kept', () => {
  const stock = scriptOf('trouble').status.mirrors.find(({ name }) => name === 'stock');
  expect(stock && mirrorTroubles(stock, '/srv/mirror')).toEqual([
    {
      level: 'warn',
      text: "2 cells changed on both sides (12 amount, 19 place). The peer's value was kept; yours is in /srv/mirror/tables/stock.conflict.csv, which you can remove when you are done.",
    },
  ]);
});

describe('the samples that the page draws', () => {
  const [SLOT, HOUR] = [10_000, 3_600_000];
  const sample = (at: number): Sample => ({ at, confirmed: 0, waiting: 0 });
  /** As many as there are in so long, up to `end`. */
  const upTo = (end: number, count: number) =>
    Array.from({ length: count }, (_, i) => sample(end - (count - 1 - i) * SLOT));

  test('are those of the last hour, oldest first', () => {
    const known = withSamples([], upTo(HOUR, 360));
    const now = withSamples(known, [sample(HOUR + SLOT)]);
    expect(now).toEqual(upTo(HOUR + SLOT, 360));
    expect(withSamples(now, [])).toBe(now);
  });

  test('do not lie in the future, and are in order, where the clock of the daemon was set back', () => {
    const known = upTo(2 * HOUR, 180);
    expect(withSamples(known, [sample(HOUR)])).toEqual([sample(HOUR)]);
    const at = 2 * HOUR - 20 * SLOT + 1;
    const now = withSamples(known, [sample(at)]);
    expect([now.at(-1), now.length]).toEqual([sample(at), 161]);
    expect(now.every((one, i) => one.at > (now[i - 1]?.at ?? 0))).toBe(true);
  });
});

test('times and rates are told from now, in one or two units, with as many digits as mean something', () => {
  const lasted = [840, 1_000, 2_349, 9_960, 125_000].map(duration);
  expect(lasted).toEqual(['840ms', '1s', '2.3s', '10s', '2m 5s']);
  expect(calm(3 * MIN + 40_000)).toBe('3m');
  expect([1_000, 42_000, 9 * MIN].map((ms) => ago(NOW - ms, NOW))).toEqual(['just now', '42s ago', '9m ago']);
  expect([12_000, 100, -MIN].map((ms) => ahead(NOW + ms, NOW))).toEqual(['in 12s', 'now', 'now']);
  expect([0, 0.25, 38.24, 812.6, 1_204.4].map(amount)).toEqual(['0', '0.25', '38.2', '813', '1,204']);
});

test('events that follow each other and are alike stand once', () => {
  const confirmed = (id: number) => ({ ...event(id, id, 'info', `confirmed ${id}.md`), event: 'confirmed' });
  const away = (id: number) => event(id, id, 'error', 'The peer does not answer');
  const all = [
    confirmed(7),
    confirmed(6),
    away(5),
    away(4),
    confirmed(3),
    { ...confirmed(2), level: 'warn' as const },
  ];
  expect(grouped(all).map(({ id, more }) => `${id} +${more}`)).toEqual(['7 +1', '5 +1', '3 +0', '2 +0']);
});
