import { describe, expect, it } from 'vitest';
import { WatchModel, watchView } from '../../src/commands/watch.js';
import { shownConditions, summaryOf } from '../../src/page/browser/words.js';
import { valuesOf } from '../../src/page/metric-values.js';
import { readyReasons } from '../../src/report/conditions.js';
import type { Live } from '../../src/report/live.js';
import { statusReport, statusSentence } from '../../src/report/status.js';
import type { FolderReport, StatusFacts, StatusReport } from '../../src/report/status-report.js';
import { gone, quarantined } from '../../src/state/transitions.js';
import { folder, NO_ITEMS, NOW, queue, report, statusText } from '../commands/report.js';
import { pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { setUp, TROUBLE } from './world.js';

/** The terminal view of a status. */
function viewOf(status: StatusReport): string {
  const model = Object.assign(new WatchModel(), { status, heardAt: NOW });
  return JSON.stringify(watchView(model, 40, NOW, ''));
}

function folderIn(state: 'held' | 'degraded'): FolderReport {
  const failure = { code: 'FOLDER_MISSING', message: 'It is not there.', hint: 'Mount it.' };
  const watch = { name: 'inbox', since: 0, directoriesWatched: 0, settling: 0 };
  return { ...folder('inbox'), watch: { ...watch, state, failure } };
}

describe('a condition', () => {
  it('is rendered by every face: one that nobody ever heard of, too', async () => {
    const of = { code: 'UNHEARD_OF', severity: 'critical' as const, subject: 'thing' };
    const unheard = {
      ...of,
      since: NOW - 60_000,
      message: 'A thing is odd.',
      hint: 'Look at the thing.',
    };
    const status = { ...report(), conditions: [unheard] };
    expect(statusText(status, NOW).join('\n')).toContain('A thing is odd.');
    expect(viewOf(status)).toContain('A thing is odd.');
    const text = 'A thing is odd. Look at the thing.';
    expect(shownConditions(status)).toMatchObject([{ level: 'bad', about: 'thing', text }]);
    expect(await readyReasons(status, temporaryDirectory())).toEqual([unheard]);
    expect(statusSentence(status)).toContain('; A thing is odd (since ');
    const parts = {
      statistics: { totals: { accepted: 0, confirmed: 0, quarantined: 0 } },
      client: { requests: {}, pushedBytes: 0 },
      state: { figures: () => ({}) },
      uplink: { readTotals: { documents: 0, pages: 0, ocrPages: 0 } },
    };
    const live = { status: () => status, clock: new FakeClock(), parts };
    expect(valuesOf(live as unknown as Live).get('peersync_condition')).toEqual([[of, 1]]);
  });

  it('comes before all that are less grave', () => {
    const alert = { ...TROUBLE, code: 'LATE', collection: 'docs', since: 0 };
    const { conditions } = report({
      paused: { since: 0 },
      restart: ['a'],
      folders: [folderIn('degraded'), folderIn('held')],
      figures: { confirmedPerSecond: 0, lastConfirmedAt: 0, timeToSearch: [], alerts: [alert] },
    });
    const codes = conditions.map(({ code }) => code);
    expect(codes).toEqual(['FOLDER_HELD', 'LATE', 'FOLDER_DEGRADED', 'RESTART_NEEDED', 'PAUSED']);
  });

  it('of a folder that is held says what is held, since when, and what to do about it', () => {
    const text = statusText(report({ folders: [folderIn('held')] }), NOW).join('\n');
    expect(text).toMatch(
      /\nheld +The folder "inbox" is held: It is not there\. Since .*\n +Mount it\./,
    );
  });

  it('of a program that reads documents and does not start says why, and keeps no text from being ready', async () => {
    const message = 'The program that reads documents does not start: spawn ENOMEM.';
    const readersFailure = {
      code: 'DOCUMENTS_UNREADABLE',
      message,
      hint: 'Make room.',
      since: NOW,
    };
    const uplink = { inFlight: 1, confirming: 0, timeToVisibleMs: 1_000, readersFailure };
    const status = report({ uplink });
    expect(status.conditions).toEqual([
      {
        code: 'DOCUMENTS_UNREADABLE',
        severity: 'error',
        subject: 'documents',
        message,
        hint: 'Make room.',
        since: NOW,
      },
    ]);
    expect(await readyReasons(status, temporaryDirectory())).toEqual([]);
  });

  it('of a state that lost changes says how far the audit is that follows', () => {
    const status = report({ repairAudit: { since: NOW - 60_000, checked: 1_200, of: 5_000 } });
    const said = '1,200 of 5,000 documents were compared with the peer since.';
    expect(status.conditions).toMatchObject([
      { code: 'REPAIR_AUDIT', severity: 'warning', subject: 'state' },
    ]);
    expect(statusText(status, NOW).join('\n')).toContain(said);
    expect(viewOf(status)).toContain(said);
  });

  it('of a state whose disk is full is told wherever somebody looks, until there is space', async () => {
    const { config, disk, state, now } = await setUp();
    const full = `The state in ${config.state.dir} cannot grow: no space is left on its disk (ENOSPC).`;
    const seen = () => {
      const status = statusReport(config, state, undefined, now);
      return [
        statusText(status, now).join('\n').includes(`state    ${full}\n         Free some space`),
        viewOf(status).includes(full),
        shownConditions(status).some(({ level, text }) => level === 'bad' && text.includes(full)),
        summaryOf(status, now).detail.startsWith(full),
        statusSentence(status).includes(`; ${full.slice(0, -1)}`),
      ];
    };
    expect(seen()).toEqual([false, false, false, false, false]);
    disk.space = 0;
    state.put(pendingRecord('a'));
    await expect(state.commit()).rejects.toMatchObject({ code: 'STATE_FULL' });
    expect(seen()).toEqual([true, true, true, true, true]);
    disk.space = Number.POSITIVE_INFINITY;
    await state.commit();
    expect(seen()).toEqual([false, false, false, false, false]);
  });
});

it('a folder that left the configuration is told for as long as the peer may have its documents', async () => {
  const { config, state, now } = await setUp();
  const lines = () => statusText(statusReport(config, state, undefined, now), now).join('\n');
  expect(lines()).not.toContain('any more');
  const item = pendingRecord('a', 'my second');
  state.put(gone(item, now));
  state.put(pendingRecord('stays'));
  expect(lines()).toContain(
    'The folder "my second" is not in the configuration any more; the peer may still have 1 document of it.',
  );
  expect(lines()).toContain(
    "`peersync forget 'my second' --remove` removes it, `peersync forget 'my second' --keep` leaves it there and forgets the folder.",
  );
  state.remove('my second', 'a');
  expect(lines()).not.toContain('any more');
});

describe('a status whose lists are cut short', () => {
  it('says how many there are of each, and how many it shows', async () => {
    const { config, state, now } = await setUp();
    const statusWith = (count: number) => {
      for (let i = 0; i < count; i += 1) {
        const item = pendingRecord(`${i}`);
        state.put(quarantined(item, item, item.version, TROUBLE, now));
      }
      return statusReport(config, state, undefined, now);
    };
    expect(statusWith(5).truncated).toBeUndefined();
    const status = statusWith(12);
    expect(status.truncated).toEqual({ quarantined: { total: 12, shown: 5 } });
    expect(status.quarantined).toHaveLength(5);
  });

  it('counts paths that are too many to be named', () => {
    const problems = [{ folder: 'inbox', path: '/inbox/0', since: 0, failure: TROUBLE }];
    const status = report({ problems, truncated: { problems: { total: 4, shown: 1 } } });
    expect(statusText(status, NOW)).toContain('  and 3 more');
  });
});

describe('the sentence for systemctl status', () => {
  const at = (time: string) => new Date(`2026-11-21T${time}`).getTime();
  const items = NO_ITEMS;
  const sentenceOf = (parts: Partial<StatusFacts>) =>
    statusSentence(report({ items, figures: undefined, ...parts }));
  const askedOf = (over: object) => ({
    peer: { url: 'http://x', dialect: 'yacy' as const, queue: { ...queue, ...over } },
  });

  it('gives the counts, what waits and the last confirmation', () => {
    expect(sentenceOf({})).toBe('0 documents confirmed, nothing waiting');
    const figures = {
      timeToSearch: [],
      confirmedPerSecond: 0,
      alerts: [],
      lastConfirmedAt: at('10:04:12'),
    };
    const busy = { ...items, confirmed: 12_345, pending: 10, accepted: 7, gone: 5 };
    expect(sentenceOf({ items: busy, figures })).toBe(
      '12,345 documents confirmed, 17 waiting, last confirmation 2026-11-21 10:04:12',
    );
    expect(sentenceOf({ items: busy, figures, wallAheadMs: 3_600_000 })).toMatch(
      / 2026-11-21 11:04:12$/,
    );
    expect(sentenceOf({ items: { ...items, confirmed: 1, quarantined: 2 } })).toMatch(
      /^1 document confirmed, nothing waiting, 2 in quarantine/,
    );
  });

  const since = at('10:00:00');
  const refused = { ...TROUBLE, at: since };
  const open = (kind: string) => ({
    circuit: { state: 'open', since, held: ['push'], tries: 0, reason: { kind, message: 'no' } },
  });
  const when = '2026-11-21 10:00:00';
  it.each<[Partial<StatusFacts>, string]>([
    [{ diskFailure: { ...TROUBLE, path: '/srv', since } }, `; It is refused (since ${when})`],
    [{ stateFailure: { ...TROUBLE, message: 'The state is full' } }, '; The state is full'],
    [
      { configuration: { takenUpAt: 0, refused } },
      `the one before holds: It is refused (since ${when})`,
    ],
    [askedOf(open('unreachable')), `does not answer: no (since ${when})`],
    [askedOf({ retryAfterUntil: since }), `; the peer asked to wait until ${when}`],
    [{ paused: { since } }, `; paused since ${when}`],
    [
      { paused: { since, until: at('12:00:00') } },
      `; paused since ${when} until 2026-11-21 12:00:00`,
    ],
  ])('says what is the matter, and since when: %j', (parts, end) => {
    expect(sentenceOf(parts).slice(-end.length)).toBe(end);
  });

  it('names five of what is the matter, and counts the others', () => {
    const problems = ['a', 'b', 'c'].map((path) => ({
      folder: 'f',
      path,
      since: 0,
      failure: TROUBLE,
    }));
    const five = { problems, restart: ['a'], repairs: ['b'] };
    expect(sentenceOf({ ...five, paused: { since: 0 } })).not.toMatch(/more/);
    const parts = sentenceOf({ ...five, stateFailure: TROUBLE }).split('; ');
    expect([parts.length, parts.at(-1)]).toEqual([7, 'and 1 more: `peersync status`']);
  });
});
