import { describe, expect, it } from 'vitest';
import { rendered, Screen } from '../../src/cli/terminal.js';
import { displayWidth } from '../../src/cli/text.js';
import { WatchModel, watchLine, watchView } from '../../src/commands/watch.js';
import type { StatusReport } from '../../src/report/status-report.js';
import { FakeTerminal } from '../support/terminal.js';
import { counts, folder, NOW, queue, report } from './report.js';

function modelOf(status: StatusReport, parts: Partial<WatchModel> = {}): WatchModel {
  return Object.assign(new WatchModel(), { status, receivedAt: NOW, ...parts });
}

const event = (id: number) => ({
  id,
  at: NOW - 1_000 * (1_000 - id),
  level: 'info' as const,
  message: `event ${id}`,
});

function shown(model: WatchModel, columns = 110, rows = 40): string[] {
  const lines = watchView(model, rows, NOW, 'q quit').map((line) => rendered(line, columns));
  for (const line of watchView(model, rows, NOW, 'q quit'))
    expect(typeof line === 'string' ? line : line.text).not.toContain('\x1b');
  return lines.map(withoutLooks);
}

function withoutLooks(line: string): string {
  return line
    .split('\x1b[')
    .map((part, i) => (i === 0 ? part : part.slice(part.indexOf('m') + 1)))
    .join('');
}

/** A status with something in every part. */
function troubled(): StatusReport {
  const failure = { code: 'X', message: 'it is so', hint: 'Do this.', since: NOW - 60_000 };
  const spread = { count: 1_204, p50Ms: 2_100, p95Ms: 4_000, p99Ms: 9_000 };
  return report({
    items: { ...counts, quarantined: 9 },
    peer: {
      url: 'http://127.0.0.1:8090',
      dialect: 'yacy',
      queue: {
        ...queue,
        circuit: {
          ...queue.circuit,
          state: 'open',
          held: ['push', 'confirm'],
          reason: { kind: 'unreachable', message: 'connection refused', hint: 'Is it running?' },
          nextProbeAt: NOW + 5_000,
          tries: 3,
        },
      },
    },
    quarantined: [
      { file: 'inbox/a\x1b[31m.pdf', code: 'REFUSED', message: 'The peer refused it.' },
      { file: 'inbox/文書.pdf', code: 'REFUSED', message: 'The peer refused it, too.' },
    ],
    mirrors: [
      {
        name: 'prices',
        kind: 'table',
        path: 'tables/prices.csv',
        condition: { ...failure, message: 'no rows' },
      },
      { name: 'stock', kind: 'table', path: 'tables/stock.csv' },
    ],
    problems: [
      {
        folder: 'inbox',
        since: NOW,
        path: '/data/inbox/locked',
        failure: { ...failure, message: 'It may not be read.' },
      },
    ],
    figures: {
      confirmedPerSecond: 17.4,
      lastConfirmedAt: undefined,
      timeToSearch: [
        { collection: 'inbox', hour: spread, day: spread, waiting: 3, oldestSince: NOW - 90_000 },
      ],
      alerts: [
        { ...failure, code: 'TIME_TO_SEARCH', collection: 'inbox', message: 'slower than 1m' },
      ],
    },
  });
}

describe('the view', () => {
  it('tells daemon, peer, files, speed and folders', () => {
    expect(shown(modelOf(report(), { events: [event(1), event(2)] }), 110, 14)).toEqual([
      'peersync  runs for 2h 1m (version 1.2.3, pid 77)  12:30:00',
      'peer     answers  http://127.0.0.1:8090 (speaks yacy)',
      'files    12,345 confirmed, 1,204,311 pending, 40 accepted, 17.4 a second, about 19h 13m to go',
      '',
      'folder  pending    accepted  confirmed  quarantined  gone  skipped',
      'inbox   1,204,311        40     12,345            0     7       12  watching',
      'notes   1,204,311        40     12,345            0     7       12  watching',
      'The peer shows a document about 1s after a push.',
      '',
      'latest events',
      '  12:13:22  event 2',
      '  12:13:21  event 1',
      '',
      'q quit',
    ]);
  });

  it('tells every condition, and nothing of a file can write on the terminal', () => {
    const text = shown(modelOf(troubled(), { events: [event(1)] }), 160, 60).join('\n');
    expect(text).toContain('peer     does not answer, for 1m');
    expect(text).toMatch(/connection refused\.\n +Is it running\?/);
    expect(text).toContain('Tried 3 times; the next try: 2026-01-05 12:30:05 (in 5s).');
    expect(text).toMatch(
      /ALERT +slower than 1m.? Since 2026-01-05 12:29:00 \(1m ago\)\.\n +Do this\./,
    );
    expect(text).toContain('/data/inbox/locked: It may not be read. Do this.');
    expect(text).toMatch(/time to search +last hour +p50 +p95 +p99 +last 24 h +p50 +p95 +p99/);
    expect(text).toMatch(
      /inbox +1,204 +2s +4s +9s +1,204 +2s +4s +9s +3 waiting, the oldest for 1m 30s/,
    );
    expect(text).toContain('In quarantine (9):');
    expect(text).toContain('  inbox/a\\x1b[31m.pdf: The peer refused it.');
    expect(text).toMatch(/prices +never.*\n +NEEDS YOU for 1m: no rows\./);
    // All mirrors, as `status` prints them.
    expect(text).toContain('stock');
  });

  it('fits every size, with the keys on the last line', () => {
    const events = Array.from({ length: 100 }, (_, i) => event(i));
    const folders = Array.from({ length: 50 }, (_, i) => folder(`folder ${i} 文書`));
    const model = modelOf({ ...troubled(), folders }, { events });
    for (const rows of [1, 2, 5, 12, 24, 60])
      for (const columns of [1, 5, 40, 80, 300]) {
        const lines = shown(model, columns, rows);
        expect(lines.length, `${columns}x${rows}`).toBe(rows);
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
        if (rows > 1 && columns > 6) expect(lines.at(-1)).toBe('q quit');
        if (columns > 20) expect(lines[0]).toMatch(/^peersync {2}runs/);
      }
    // The gravest conditions take the room that there is.
    const lines = shown(model, 120, 24);
    for (const words of [/does not answer/, /ALERT/, /and \d+ lines more: `peersync status`/])
      expect(lines.join('\n')).toMatch(words);
    expect(lines.at(-2)).toContain('event');
  });

  it('says that the daemon went away or is silent, and how old the rest is', () => {
    const gone = modelOf(report(), { receivedAt: NOW - 65_000 });
    gone.disconnect('the daemon went away');
    const text = shown(gone).join('\n');
    expect(text).toContain('peersync  the daemon went away');
    expect(text).toContain('what it said last, 1m 5s ago:');
    expect(text).not.toContain('answers');
    const lost = new WatchModel();
    lost.disconnect('the daemon does not run');
    expect(shown(lost)[0]).toContain('does not run');
    expect(shown(modelOf(report(), { receivedAt: NOW - 30_000 }))[0]).toContain(
      'no word from the daemon for 30s',
    );
  });

  it('tells what became of a key for a while, and that work is paused', () => {
    const paused = report({
      peer: { url: 'u', dialect: undefined, queue: { ...queue, paused: { since: NOW - 60_000 } } },
    });
    const note = { text: 'paused', at: NOW - 1_000 };
    expect(shown(modelOf(paused, { note })).at(-1)).toBe('paused');
    expect(shown(modelOf(paused, { note: { ...note, at: NOW - 10_000 } })).at(-1)).toBe('q quit');
    expect(shown(modelOf(paused))[1]).toContain('is left alone: paused for 1m');
  });

  it('is one plain line where nothing is drawn', () => {
    expect(watchLine(modelOf(troubled()), NOW)).toBe(
      '12:30:00 12,345 confirmed, 1,204,311 pending, 40 accepted, 9 quarantined, the peer does not answer, for 1m, 5 conditions: see `peersync status`',
    );
    const lost = new WatchModel();
    lost.disconnect('the daemon does not run');
    expect(watchLine(lost, NOW)).toBe('12:30:00 the daemon does not run');
  });
});

describe('the model', () => {
  it('keeps the latest events, whatever comes', () => {
    const model = new WatchModel();
    model.disconnect('away');
    for (let i = 0; i < 2_000; i += 1) {
      model.receive({ kind: 'recents', recents: [event(i)] }, NOW);
    }
    model.receive({ kind: 'status', status: report() }, NOW + 1);
    expect(model).toMatchObject({ receivedAt: NOW + 1, status: { pid: 77 } });
    expect(model.absence).toBeUndefined();
    expect(model.events.length).toBe(100);
    model.disconnect('away');
    expect(model).toMatchObject({ events: [], status: { pid: 77 } });
  });
});

describe('the screen', () => {
  it('writes only what changed, and leaves the terminal as it was', () => {
    const terminal = new FakeTerminal(20, 5);
    terminal.write('$ peersync watch\n');
    const screen = new Screen(terminal);
    screen.open();
    expect(terminal).toMatchObject({ isAlternate: true, cursorIsShown: false });
    screen.draw(['one', 'two', { style: 'red', text: 'three' }]);
    expect(terminal.screen).toEqual(['one', 'two', 'three']);
    const before = terminal.written.length;
    screen.draw(['one', '2', { style: 'red', text: 'three' }]);
    expect(terminal.screen).toEqual(['one', '2', 'three']);
    expect(terminal.written.slice(before)).toBe('\x1b[2;1H\x1b[K2');
    const writes = terminal.writes;
    screen.draw(['one', '2', { style: 'red', text: 'three' }]);
    expect(terminal.writes).toBe(writes);
    screen.draw(['one']);
    expect(terminal.screen).toEqual(['one']);
    screen.close();
    screen.close();
    expect(terminal.screen).toEqual(['$ peersync watch']);
    expect(terminal).toMatchObject({ isAlternate: false, cursorIsShown: true });
    expect(terminal.written.match(/1049l/g)).toHaveLength(1);
    screen.draw(['late']);
    expect(terminal.screen).toEqual(['$ peersync watch']);
  });

  it('cuts what is too wide or too long, and draws anew after a wipe', () => {
    const terminal = new FakeTerminal(8, 2);
    const screen = new Screen(terminal);
    screen.open();
    screen.draw(['a long line', 'two', 'three']);
    expect(terminal.screen).toEqual(['a long …', 'two']);
    terminal.resize(20, 3);
    screen.wipe();
    screen.draw(['a long line', 'two', 'three']);
    expect(terminal.screen).toEqual(['a long line', 'two', 'three']);
    screen.close();
  });
});
