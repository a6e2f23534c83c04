import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/load.js';
import { NotIndexedNames } from '../../src/daemon/not-indexed.js';
import type { Failure } from '../../src/state/entry.js';
import type { State } from '../../src/state/state.js';
import { quarantined, skipped } from '../../src/state/transitions.js';
import { failures } from '../../src/watch/rules/failures.js';
import { lifeOf, opened, pendingRecord } from '../state/records.js';
import { temporaryDirectory } from '../support/temp.js';

const NOW = Date.UTC(2026, 0, 2);
const NO_OCR = {
  code: 'NO_OCR',
  message: 'It is a scan, and there is no OCR.',
  hint: 'Install it.',
};
const LOCKED = { code: 'LOCKED', message: 'It has a password', hint: '`peersync retry PATH`.' };

async function setUp(most?: number) {
  const directory = temporaryDirectory();
  const folders = [{ name: 'inbox', path: join(directory, 'inbox'), collection: 'inbox' }];
  const config = await checkConfig({ folders }, join(directory, 'config.json'));
  const state = await opened(join(directory, 'state'));
  const clock = { at: NOW, stepMs: 0, now: () => (clock.at += clock.stepMs) };
  const names = new NotIndexedNames({
    state,
    current: { config },
    clock,
    configFile: '/etc/peersync.json',
    ...(most !== undefined && { most }),
  });
  const paths = async (text: string, isPrefix = false) => {
    const words = text.split(' ');
    const sought = words.map((word, i) => ({
      spellings: [word],
      isPrefix: isPrefix && i === words.length - 1,
    }));
    const { files } = await names.find(sought);
    return files.map(({ path }) => path.slice(config.folders[0]?.path.length));
  };
  return { clock, names, paths, state };
}

let now = NOW;
function skip(state: State, path: string, failure: Failure = NO_OCR): void {
  now += 1;
  const { version } = pendingRecord(path);
  state.put(skipped(state.get('inbox', path), { folder: 'inbox', path }, version, failure, now));
}

function quarantine(state: State, path: string): void {
  now += 1;
  const item = pendingRecord(path);
  state.put(quarantined(state.get('inbox', path), item, item.version, LOCKED, now));
}

const one = (word: string) => [{ spellings: [word], isPrefix: false }];

describe('a file that is not indexed', () => {
  it('is found by the words of its path, with the reason and a command that works as printed', async () => {
    const { names, paths, state } = await setUp();
    skip(state, 'Taxes 2024/Größe Scan.PDF');
    await state.commit();
    await names.start();
    const file = '/Taxes 2024/Größe Scan.PDF';
    for (const words of ['scan', 'scan pdf', 'grosse', 'taxes scan', '2024'])
      expect(await paths(words), words).toEqual([file]);
    for (const words of ['sca', 'scan txt', 'can', 'scan pdf 2023', 'xes'])
      expect(await paths(words), words).toEqual([]);
    expect(await paths('taxes sca', true)).toEqual([file]);
    const [found] = (await names.find(one('scan'))).files;
    expect(found).toMatchObject({
      status: 'skipped',
      code: 'NO_OCR',
      reason: 'It is a scan, and there is no OCR.',
      hint: 'Install it.',
      command: `peersync why '${found?.path}' -c /etc/peersync.json`,
    });
    expect(found).not.toHaveProperty('isOlderSearchable');
  });

  it('is found as soon as it is skipped on disk, and no more once it is indexed or gone', async () => {
    const { names, paths, state } = await setUp();
    await names.start();
    skip(state, 'scan.pdf');
    expect([await paths('scan'), (await names.find(one('scan'))).total]).toEqual([[], 0]);
    await state.commit();
    expect(await paths('scan')).toEqual(['/scan.pdf']);
    quarantine(state, 'scan.pdf');
    await state.commit();
    expect((await names.find(one('scan'))).files).toMatchObject([
      { status: 'quarantined', reason: 'It has a password.' },
    ]);
    expect(names.size).toBe(1);
    state.put(pendingRecord('scan.pdf'));
    await state.commit();
    expect([await paths('scan'), names.size]).toEqual([[], 0]);
    skip(state, 'other scan.pdf');
    await state.commit();
    state.remove('inbox', 'other scan.pdf');
    await state.commit();
    expect([await paths('scan'), names.size]).toEqual([[], 0]);
  });

  it('comes first if its own name has the words, then if it needs a person, then if it is new', async () => {
    const { names, paths, state } = await setUp();
    await names.start();
    for (const name of ['scan/a.pdf', 'x/scan 1.pdf', 'x/scan 2.pdf']) skip(state, name);
    quarantine(state, 'x/scan 3.pdf');
    for (const name of ['x/scan 4.pdf', 'scan/b.pdf', 'scan/c.pdf']) skip(state, name);
    await state.commit();
    expect(await paths('scan')).toEqual([
      '/x/scan 3.pdf',
      '/x/scan 4.pdf',
      '/x/scan 2.pdf',
      '/x/scan 1.pdf',
      '/scan/c.pdf',
    ]);
    expect(await names.find(one('scan'))).toMatchObject({ total: 7, totalIsExact: true });
  });

  it('is named with the older version that the peer has', async () => {
    const { names, state } = await setUp();
    state.put(lifeOf(pendingRecord('scan.pdf'))[2]);
    skip(state, 'scan.pdf');
    await state.commit();
    await names.start();
    expect((await names.find(one('scan'))).files).toMatchObject([{ isOlderSearchable: true }]);
  });

  it('is not named if it is a secret, kept out by a rule, or cannot be read', async () => {
    const { names, paths, state } = await setUp();
    await names.start();
    skip(state, 'scan key.txt', failures.privateKey('inbox'));
    state.put(lifeOf(pendingRecord('scan rule.txt'))[2]);
    skip(state, 'scan rule.txt', failures.excluded('inbox'));
    skip(state, 'scan file.txt', failures.unreadable('EACCES'));
    skip(state, 'scan directory', failures.directoryUnreadable('EACCES'));
    skip(state, 'scan link', failures.linkUnreadable('EACCES'));
    await state.commit();
    expect([await paths('scan'), names.size]).toEqual([[], 0]);
  });

  it('is not displaced by thousands that are skipped for another reason, of which the newest stay', async () => {
    const { names, paths, state } = await setUp(100);
    skip(state, 'locked.pdf', LOCKED);
    for (let i = 0; i < 70; i += 1) skip(state, `empty ${i}.txt`, failures.empty());
    await state.commit();
    await names.start();
    expect((await names.find(one('locked'))).totalIsExact).toBe(true);
    for (let i = 0; i < 1_000; i += 1) skip(state, `photo ${i}.jpg`);
    await state.commit();
    expect(names.size).toBeLessThanOrEqual(120);
    expect(await paths('locked')).toEqual(['/locked.pdf']);
    expect((await names.find(one('empty'))).total).toBeGreaterThan(40);
    expect([await paths('photo 999'), await paths('photo 0')]).toEqual([['/photo 999.jpg'], []]);
    expect((await names.find(one('locked'))).totalIsExact).toBe(false);
  });

  it('is found among thousands while other work goes on', async () => {
    const { clock, names, state } = await setUp();
    for (let i = 0; i < 3_500; i += 1) skip(state, `scan ${i}.jpg`);
    await state.commit();
    await names.start();
    let turns = 0;
    const count = setInterval(() => {
      turns += 1;
    }, 0);
    // Each look at the clock finds a slice over.
    clock.stepMs = 10;
    expect((await names.find(one('scan'))).total).toBe(3_500);
    clearInterval(count);
    expect(turns).toBeGreaterThan(0);
  });

  it('is not looked for any more after the stop', async () => {
    const { names, paths, state } = await setUp();
    await names.start();
    names.stop();
    skip(state, 'scan.pdf');
    await state.commit();
    expect(await paths('scan')).toEqual([]);
  });
});
