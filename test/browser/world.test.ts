import { describe, expect, test } from 'vitest';
import {
  concernsOf,
  confirmedInHour,
  lostWorld,
  mirrorTroubles,
  worldOf,
} from '../../src/page/browser/words.js';
import type { StatusReport } from '../../src/report/status.js';
import { folder, NOW, queue, statusOf } from './reports.js';
import { SCRIPTS, scriptOf } from './scripts.js';

const MIN = 60_000;
const world = (status: StatusReport) => worldOf(status, NOW);
const peer = (over: Parameters<typeof queue>[0]) => ({
  url: 'https://search.example.org',
  dialect: 'standard' as const,
  queue: queue(over),
});
const circuit = (kind: 'unreachable' | 'failing' | 'denied') => ({
  state: 'open' as const,
  since: NOW - 3 * MIN,
  reason: { kind, message: 'connect ECONNREFUSED', hint: 'Look whether it runs.' },
  held: ['push' as const],
  nextProbeAt: NOW + 12_000,
  tries: 9,
});

const problem = (name: string) => ({
  folder: 'notes',
  path: `/srv/library/notes/${name}`,
  trouble: { code: 'DIRECTORY_UNREADABLE', message: 'It cannot be listed.', hint: 'Let us in.' },
  since: NOW,
});

test('what was confirmed in the last hour is counted by all collections, and by earlier runs too', () => {
  const spread = (count: number) => ({ count, p50Ms: 900, p95Ms: 2_000, p99Ms: 3_000, maxMs: 3_000 });
  const timeToSearch = [
    { collection: 'notes', hour: spread(2), day: spread(7), waiting: 0 },
    { collection: 'inbox', hour: spread(3), day: spread(3), waiting: 0 },
  ];
  const figures = { timeToSearch, confirmedPerSecond: 0, lastConfirmedAt: NOW, alerts: [] };
  expect(confirmedInHour(statusOf([folder('notes')], { figures }))).toBe(5);
});

describe('the top of the page', () => {
  test('says numbers first', () => {
    expect(world(statusOf([folder('notes', { confirmed: 3_608, quarantined: 1 })]))).toMatchObject({
      level: 'warn',
      sentence: '3,608 files searchable. 1 needs you.',
      detail: expect.stringMatching(/^1 file cannot be delivered without a change\./),
      title: '1 needs you',
    });
    expect(world(scriptOf('quiet').status)).toEqual({
      ...{ level: 'ok', sentence: '21,721 files searchable.', detail: '', title: 'all searchable' },
      concern: undefined,
    });
    expect(world(statusOf([folder('inbox')]))).toMatchObject({
      level: 'ok',
      sentence: 'Nothing is searchable yet.',
      detail: 'Put a file into /srv/library/inbox and watch it become searchable.',
    });
  });

  test('says at work how fast it goes, and what is left of it', () => {
    const status = statusOf([folder('notes', { pending: 1_152, accepted: 312 })], {
      figures: { timeToSearch: [], confirmedPerSecond: 38.2, lastConfirmedAt: undefined, alerts: [] },
    });
    expect(world(status)).toMatchObject({
      level: 'busy',
      sentence: 'Nothing is searchable yet. 1,464 on the way.',
      detail: '38.2 a second, about 38s to go.',
      title: '1,464 waiting',
    });
  });

  test('says how fast it goes beside what a person should know', () => {
    const figures = { timeToSearch: [], confirmedPerSecond: 2, lastConfirmedAt: NOW, alerts: [] };
    const status = statusOf([folder('notes', { pending: 60, quarantined: 1 })], { figures });
    expect(world(status).detail).toMatch(/^1 file cannot be delivered .* 2 a second, about 30s to go\.$/);
  });

  test('says nothing of a speed where nothing is on the way', () => {
    const figures = { timeToSearch: [], confirmedPerSecond: 38.9, lastConfirmedAt: NOW, alerts: [] };
    expect(world(statusOf([folder('notes', { confirmed: 9 })], { figures })).detail).toBe('');
  });

  test('says that the peer has not been asked yet, which is no trouble', () => {
    const unknown = { url: 'https://search.example.org', dialect: undefined, queue: queue() };
    const status = statusOf([folder('notes', { pending: 2 })], { peer: unknown });
    expect(world(status)).toMatchObject({ level: 'warn', title: '2 waiting' });
    expect(world(status).detail).toMatch(/^The peer has not answered yet since peersync started\./);
  });

  test.each([
    ['unreachable', 'does not answer'],
    ['failing', 'answers with errors'],
    ['denied', 'refuses the credentials'],
  ] as const)('says with a peer that is %s what waits, why, and what happens next', (kind, words) => {
    const status = statusOf(
      [folder('notes', { confirmed: 9, pending: 1_200, accepted: 4, quarantined: 2 })],
      {
        peer: peer({ circuit: circuit(kind) }),
      },
    );
    expect(world(status)).toMatchObject({
      level: 'bad',
      sentence: '9 files searchable. 1,204 wait. 2 need you.',
      title: 'peer in trouble · 1,204 waiting · 2 need you',
    });
    expect(world(status).detail).toMatch(
      new RegExp(
        `^The peer ${words}: connect ECONNREFUSED\\. Look whether it runs\\. Since [\\d :-]+\\. Tried again in 12s\\.$`,
      ),
    );
  });

  test('says that a person paused, or that the peer asks to wait', () => {
    const pause = statusOf([folder('notes', { pending: 34 })], { peer: peer({ paused: { since: NOW } }) });
    expect(world(pause)).toMatchObject({
      level: 'warn',
      sentence: 'Nothing is searchable yet. 34 wait. Paused until you resume.',
    });
    const busy = statusOf([folder('notes', { pending: 1 })], { peer: peer({ pausedUntil: NOW + 30_000 }) });
    expect(world(busy)).toMatchObject({
      level: 'warn',
      sentence: 'Nothing is searchable yet. 1 waits.',
      detail: 'The peer asked to wait; it goes on in 30s.',
    });
  });

  test('says what could not be looked at, which may not be searchable', () => {
    const status = statusOf([folder('notes', { confirmed: 9 })], { problems: [problem('a')] });
    expect(world(status)).toMatchObject({
      level: 'warn',
      detail: '/srv/library/notes/a: It cannot be listed. Let us in.',
    });
  });

  test('says that the daemon is away', () => {
    expect(lostWorld(NOW - 20_000, NOW, 12)).toMatchObject({
      level: 'bad',
      sentence: 'peersync does not answer.',
      title: 'no answer · 12 waited',
    });
  });

  test('is said in every state that is shown in pictures', () => {
    for (const { status } of Object.values(SCRIPTS)) expect(world(status).sentence).toMatch(/\.$/);
  });
});

describe('what needs a look', () => {
  test('is nothing while all is well', () => {
    expect(concernsOf(scriptOf('quiet').status)).toEqual([]);
  });

  test('is told the gravest first, each with where to go', () => {
    const concerns = concernsOf(scriptOf('trouble').status);
    expect(concerns.map(({ about, href }) => `${about} ${href}`)).toEqual([
      'usb #folders',
      'papers #time-to-search',
      'prices #mirrors',
      'quarantine #files=quarantined',
      'authors #mirrors',
      'conflicts #mirrors',
      'papers #folders',
      'state #peer',
    ]);
    expect(concerns.find(({ about }) => about === 'conflicts')?.text).toMatch(
      /^2 cells of edited tables changed on both sides/,
    );
  });

  test('counts what would be too many to name', () => {
    const alarm = { code: 'X', message: 'It is empty.', hint: 'Look at it.', since: NOW };
    const mirrors = Array.from({ length: 2_000 }, (_, i) => ({
      name: `t${i}`,
      kind: 'table' as const,
      path: `t${i}.csv`,
      alarm,
    }));
    expect(concernsOf(statusOf([], { mirrors })).map(({ text }) => text)).toEqual([
      '2,000 mirrors have an alarm, the first of them t0: It is empty. Look at it.',
    ]);
  });

  test('names what could not be looked at, and what to do', () => {
    const concerns = (names: string[]) => concernsOf(statusOf([], { problems: names.map(problem) }));
    expect(concerns(['a', 'b'])).toMatchObject([
      { about: 'notes', text: '/srv/library/notes/a: It cannot be listed. Let us in.', href: '#folders' },
      { about: 'notes', text: '/srv/library/notes/b: It cannot be listed. Let us in.', href: '#folders' },
    ]);
    expect(concerns(['a', 'b', 'c', 'd'])).toMatchObject([
      {
        about: 'notes',
        text: '4 paths could not be looked at, the first of them notes: /srv/library/notes/a: It cannot be listed. Let us in.',
      },
    ]);
  });

  test('tells that a changed configuration was refused, and why', () => {
    const refused = { code: 'X', message: 'It has a problem', hint: 'Mend it.', at: NOW - 60_000 };
    const configuration = { takenUpAt: NOW - 90_000, refused };
    expect(concernsOf(statusOf([], { configuration })).map(({ text }) => text)).toEqual([
      'The changed configuration was refused, and the one before holds: It has a problem. Mend it.',
    ]);
    expect(concernsOf(statusOf([], { configuration: { takenUpAt: NOW } }))).toEqual([]);
  });

  test('names what waits for a restart', () => {
    expect(concernsOf(statusOf([], { restart: ['peer.url', 'state.dir'] })).map(({ text }) => text)).toEqual([
      'A restart is needed for the new values of peer.url, state.dir. The values before hold until then.',
    ]);
  });
});

test('a mirror tells its alarm, and where what was changed on both sides is kept', () => {
  const mirror = scriptOf('trouble').status.mirrors[1];
  if (mirror === undefined) throw new Error('there is no mirror');
  expect(mirrorTroubles(mirror, '/srv/mirror')).toEqual([
    {
      level: 'warn',
      text: "2 cells changed on both sides (12 amount, 19 place). The peer's value was kept; yours is in /srv/mirror/tables/stock.conflict.csv, which you can remove when you are done.",
    },
  ]);
});

test('a disk that does not answer is what the top of the page says', () => {
  const trouble = {
    code: 'DISK_SILENT',
    message: 'The disk of /srv/state does not answer: what is known is not brought to the disk.',
    hint: 'See whether it is well.',
    ...{ path: '/srv/state', since: NOW - 3 * MIN },
  };
  const status = statusOf([folder('notes', { pending: 5 })], { diskTrouble: trouble });
  expect(world(status)).toMatchObject({ level: 'bad', title: 'disk in trouble · 5 waiting' });
  expect(world(status).sentence).toBe('Nothing is searchable yet. 5 wait.');
  expect(world(status).detail).toContain(`${trouble.message} ${trouble.hint} Since `);
});
