import { describe, expect, test } from 'vitest';
import { concernsOf, mirrorTroubles } from '../../src/page/browser/words.js';
import { lostWorld, worldOf } from '../../src/page/browser/world.js';
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

describe('the state of the world in a sentence', () => {
  test('at rest', () => {
    expect(world(scriptOf('quiet').status)).toMatchObject({
      level: 'ok',
      sentence: 'Everything that is at rest is searchable.',
      title: 'all searchable',
    });
    expect(world(statusOf([folder('inbox')]))).toMatchObject({
      level: 'ok',
      sentence: 'Nothing here yet.',
      detail: 'Put a file into /srv/library/inbox and watch it become searchable.',
    });
    expect(world(statusOf([])).sentence).toBe('Nothing is watched yet.');
  });

  test('at work, with what is left of it', () => {
    const status = statusOf([folder('notes', { pending: 1_152, accepted: 312 })], {
      figures: { timeToSearch: [], confirmedPerSecond: 38.2, lastConfirmedAt: undefined, alerts: [] },
    });
    expect(world(status)).toEqual({
      level: 'busy',
      sentence: '1,464 files are on the way.',
      detail:
        '38.2 documents become searchable a second, about 38 s to go. The peer has 312 of them already and will show them soon.',
      title: '1,464 waiting',
    });
    expect(world(statusOf([folder('notes', { pending: 1 })])).sentence).toBe('1 file is on the way.');
    const taken = statusOf([folder('notes', { accepted: 5 })]);
    expect(world(taken).detail).toBe('The peer has them already and will show them soon.');
    const unknown = { url: 'https://search.example.org', dialect: undefined, queue: queue() };
    expect(world(statusOf([folder('notes', { pending: 2 })], { peer: unknown })).sentence).toBe(
      '2 files wait while peersync finds out how the peer speaks.',
    );
  });

  test.each([
    ['unreachable', 'The peer has not answered for 3 min; 1,204 files wait, nothing is lost.'],
    ['failing', 'The peer has answered with errors for 3 min; 1,204 files wait, nothing is lost.'],
    ['denied', 'The peer has refused the credentials for 3 min; 1,204 files wait, nothing is lost.'],
  ] as const)('with a peer that is %s', (kind, sentence) => {
    const status = statusOf([folder('notes', { pending: 1_200, accepted: 4, quarantined: 2 })], {
      peer: peer({ circuit: circuit(kind) }),
    });
    expect(world(status)).toMatchObject({ level: 'bad', sentence, title: 'peer away · 1,204 waiting' });
    expect(world(status).detail).toMatch(
      /ECONNREFUSED\. Look whether it runs\. It is tried again in 12 s\.$/,
    );
  });

  test('paused by a person, or asked to wait by the peer', () => {
    const pause = statusOf([folder('notes', { pending: 34 })], { peer: peer({ paused: { since: NOW } }) });
    expect(world(pause)).toMatchObject({
      level: 'warn',
      sentence: 'Paused until you resume; 34 files wait.',
    });
    const busy = statusOf([folder('notes', { pending: 1 })], { peer: peer({ pausedUntil: NOW + 30_000 }) });
    expect(world(busy)).toMatchObject({
      level: 'warn',
      sentence: 'The peer asked to be left alone for a while; 1 file waits.',
      detail: 'It goes on in 30 s.',
    });
  });

  test('with what needs a person', () => {
    expect(world(statusOf([folder('notes', { confirmed: 9, quarantined: 1 })]))).toMatchObject({
      level: 'warn',
      sentence: 'Everything is searchable but 1 file that needs you.',
    });
    expect(world(scriptOf('trouble').status)).toMatchObject({ level: 'bad', title: 'alert' });
  });

  test('with what could not be looked at, which may not be searchable', () => {
    const confirmed = [folder('notes', { confirmed: 9 })];
    expect(world(statusOf(confirmed, { problems: [problem('a')] }))).toEqual({
      level: 'warn',
      sentence: 'Everything that could be looked at is searchable; 1 path wants a look.',
      detail: '/srv/library/notes/a: It cannot be listed. Let us in.',
      title: '1 path wants a look',
    });
    expect(world(statusOf(confirmed, { problems: [problem('a'), problem('b')] })).sentence).toBe(
      'Everything that could be looked at is searchable; 2 paths want a look.',
    );
    expect(world(statusOf([folder('notes')], { problems: [problem('a')] })).sentence).toBe(
      'Nothing is searchable yet; 1 path wants a look.',
    );
    const quarantined = [folder('notes', { confirmed: 9, quarantined: 1 })];
    expect(world(statusOf(quarantined, { problems: [problem('a')] })).sentence).toBe(
      'Everything that could be looked at is searchable but 1 file that needs you.',
    );
  });

  test('with a folder whose changes are seen late', () => {
    const trouble = { code: 'WATCH_LIMIT', message: 'The limit is reached.', hint: 'Raise it.' };
    const { watch, ...late } = folder('notes', { confirmed: 9 });
    if (watch === undefined) throw new Error('nothing watches');
    const folders = [{ ...late, watch: { ...watch, state: 'degraded' as const, trouble } }];
    expect(world(statusOf(folders))).toMatchObject({
      level: 'warn',
      sentence: 'Everything that could be looked at is searchable; the folder notes wants a look.',
      detail: 'The limit is reached. Raise it.',
    });
  });

  test('while the daemon is away', () => {
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
      'papers #problems',
      'state #problems',
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
      { about: 'notes', text: '/srv/library/notes/a: It cannot be listed. Let us in.', href: '#problems' },
      { about: 'notes', text: '/srv/library/notes/b: It cannot be listed. Let us in.', href: '#problems' },
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

test('a disk that does not answer is the sentence, and wants a look', () => {
  const trouble = {
    code: 'DISK_SILENT',
    message: 'The disk of /srv/state does not answer: what is known is not brought to the disk.',
    hint: 'See whether it is well.',
    ...{ path: '/srv/state', since: NOW - 3 * MIN },
  };
  const status = statusOf([folder('notes', { pending: 5 })], { diskTrouble: trouble });
  expect(world(status)).toMatchObject({
    level: 'bad',
    sentence: 'A disk has not answered for 3 min; 5 files wait.',
    detail: `${trouble.message} ${trouble.hint}`,
  });
  expect(concernsOf(status)[0]).toMatchObject({ about: 'disk', level: 'bad' });
});
