import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { statusText } from '../../src/commands/status.js';
import { WatchModel, watchView } from '../../src/commands/watch.js';
import { loadConfig } from '../../src/config/load.js';
import { silentLogger } from '../../src/lib/logger.js';
import { concernsOf, worldOf } from '../../src/page/browser/words.js';
import type { Live } from '../../src/report/status.js';
import { conditionsOf, statusReport, statusSentence } from '../../src/report/status.js';
import { explain } from '../../src/report/why.js';
import { quarantined } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { Problems } from '../../src/watch/rules.js';
import { DiskWithFaults } from '../fault/state-disk.js';
import { pendingRecord } from '../state/records.js';
import { writeConfig } from '../support/config.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

const none = () => undefined;

async function setUp() {
  const directory = temporaryDirectory();
  const { config } = await loadConfig(writeConfig(directory, { peer: { url: 'http://127.0.0.1:1' } }));
  const disk = new DiskWithFaults();
  const clock = new FakeClock();
  const state = await State.open(config.state.dir, { clock, log: silentLogger, open: disk.open });
  return { config, disk, state, inbox: join(directory, 'inbox'), now: clock.now() };
}

describe('a state whose disk is full', () => {
  it('is told of wherever somebody looks, until there is space', async () => {
    const { config, disk, state, now } = await setUp();
    const full = `The state in ${config.state.dir} cannot grow: no space is left on its disk (ENOSPC).`;
    const seen = () => {
      const status = statusReport(config, state, undefined, now);
      const rows = watchView(Object.assign(new WatchModel(), { status, heardAt: now }), 40, now, '');
      return {
        status: statusText(status, now).join('\n').includes(`state    ${full}\n         Free some space`),
        watch: rows.some((row) => JSON.stringify(row).includes(full)),
        page: concernsOf(status).some(({ level, text }) => level === 'bad' && text.includes(full)),
        sentence: worldOf(status, now).detail.startsWith(full),
        systemd: statusSentence(status).includes(`; ${full.slice(0, -1)}`),
      };
    };
    const nowhere = { status: false, watch: false, page: false, sentence: false, systemd: false };
    expect(seen()).toEqual(nowhere);
    disk.space = 0;
    state.put(pendingRecord('a'));
    await expect(state.commit()).rejects.toMatchObject({ code: 'STATE_FULL' });
    expect(seen()).toEqual({ status: true, watch: true, page: true, sentence: true, systemd: true });
    disk.space = Number.POSITIVE_INFINITY;
    await state.commit();
    expect(seen()).toEqual(nowhere);
    await state.close();
  });

  it('is what a file waits for', async () => {
    const { config, disk, state, inbox } = await setUp();
    writeFileSync(join(inbox, 'a'), 'a');
    disk.space = 0;
    state.put(pendingRecord('a'));
    await expect(state.commit()).rejects.toMatchObject({ code: 'STATE_FULL' });
    expect((await explain(join(inbox, 'a'), config, state, undefined)).next).toMatch(
      /^It waits\. The state in .* cannot grow: .* Free some space there;/,
    );
    disk.space = Number.POSITIVE_INFINITY;
    await state.close();
  });
});

it('a file that cannot be looked at is not called ignored by a rule', async () => {
  const { config, state, inbox } = await setUp();
  symlinkSync('loop', join(inbox, 'loop'));
  expect(await explain(join(inbox, 'loop/a'), config, state, undefined)).toMatchObject({
    verdict: 'unknown',
    trouble: { code: 'UNREADABLE', message: 'The file cannot be read (ELOOP).' },
    next: 'It is taken up by the next scan after it can be read.',
  });
  await state.close();
});

describe('a status whose lists are cut short', () => {
  it('says how many there are of each, and how many it shows', async () => {
    const { config, state, now } = await setUp();
    const trouble = { code: 'X', message: 'It is refused.', hint: 'Change it.' };
    const put = (path: string) => {
      const item = pendingRecord(path);
      state.put(quarantined(item, item, item.version, trouble, now));
    };
    for (let i = 0; i < 5; i += 1) put(`${i}`);
    expect(statusReport(config, state, undefined, now).truncated).toBeUndefined();
    for (let i = 5; i < 12; i += 1) put(`${i}`);
    const status = statusReport(config, state, undefined, now);
    expect(status.truncated).toEqual({ quarantined: { total: 12, shown: 5 } });
    expect(status.quarantined).toHaveLength(5);
    await state.close();
  });

  it('counts paths of a running daemon that are too many to be named', async () => {
    const clock = new FakeClock();
    const problems = new Problems('inbox', clock, silentLogger);
    problems.beginScan();
    const trouble = { code: 'UNREADABLE', message: 'It cannot be read.', hint: 'Allow it.' };
    for (let i = 0; i < 1_003; i += 1) problems.report(`/inbox/${i}`, trouble);
    problems.endScan();
    const { config, state, now } = await setUp();
    const watch = { state: 'watching', since: 0, directoriesWatched: 0, settling: 0 } as const;
    const watcher = {
      status: () => [{ ...watch, name: 'inbox', unnamedProblems: problems.unnamed }],
      problems: () => problems.list(),
    };
    const told = { status: none, report: none };
    const live = {
      ...{ clock: new FakeClock(), current: { restart: [] } },
      parts: {
        client: {},
        queue: told,
        uplink: told,
        statistics: told,
        mirrors: { status: () => [] },
        watcher,
      },
    };
    const status = statusReport(config, state, live as unknown as Live, now);
    expect(status.truncated).toEqual({ problems: { total: 1_003, shown: 1_000 } });
    expect(statusText(status, now)).toContain('  and 3 more');
    await state.close();
  });
});

it('a folder that is held says what to do about it', async () => {
  const { config, state, now } = await setUp();
  const status = statusReport(config, state, undefined, now);
  const trouble = { code: 'FOLDER_MISSING', message: 'It is not there.', hint: 'Mount it.' };
  const watch = {
    ...{ name: 'inbox', state: 'held' as const, since: 0, directoriesWatched: 0, settling: 0 },
    trouble,
  };
  const folders = status.folders.map((folder) => ({ ...folder, watch }));
  const held = { ...status, folders };
  const lines = statusText({ ...held, conditions: conditionsOf(held) }, now);
  const table = lines.findIndex((line) => line.startsWith('folder '));
  expect(lines[table + 1]).toMatch(/^inbox .* held$/);
  expect(lines.join('\n')).toMatch(
    /\nheld +The folder inbox is held: It is not there\. Since .*\n +Mount it\./,
  );
  await state.close();
});
