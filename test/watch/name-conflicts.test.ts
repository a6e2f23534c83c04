import { renameSync, rmSync, truncateSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { WatchWorld } from './world.js';

const NFC = 'Größe/für alle.md'.normalize('NFC');
const NFD = NFC.normalize('NFD');
const MIXED = `${'Größe'.normalize('NFD')}/${'für alle.md'.normalize('NFC')}`;

describe('of files whose paths differ only in their Unicode form', () => {
  it('one has the document, and the others wait in quarantine with a reason', async () => {
    const world = new WatchWorld();
    world.write(NFC);
    const inbox = await world.start();
    await inbox.watcher.idle();
    world.write(NFD);
    world.write(MIXED);
    await until(() => inbox.state.counts().quarantined === 2, 'both wait');
    expect(inbox.status(NFC)).toBe('pending');
    for (const path of [NFD, MIXED])
      expect(inbox.get(path)).toMatchObject({
        status: 'quarantined',
        trouble: { code: 'SAME_DOCUMENT', message: expect.stringContaining(NFC) as string },
      });
  });

  it('one waits also where its name and that of the other stand in one directory of a third form', async () => {
    const world = new WatchWorld();
    const [above, below] = [NFC, NFD].map((path) => path.split('/')[0]);
    const first = `${above}/${below}/${below}/a.md`;
    const second = `${above}/${above}/${below}/a.md`;
    world.write(first);
    const inbox = await world.start();
    await inbox.watcher.idle();
    world.write(second);
    await until(() => inbox.status(second) !== undefined, 'it is found');
    expect([inbox.status(first), inbox.status(second)]).toEqual(['pending', 'quarantined']);
  });

  it('one that came at the same time waits too', async () => {
    const world = new WatchWorld();
    world.write(NFD);
    world.write(NFC);
    const inbox = await world.start({ hints: false });
    await inbox.watcher.idle();
    expect(inbox.state.counts()).toMatchObject({ pending: 1, quarantined: 1 });
  });

  it.each([
    ['is removed', (file: string) => rmSync(file)],
    ['becomes empty', (file: string) => truncateSync(file)],
    ['gets another name', (file: string) => renameSync(file, `${file}.old`)],
  ])('one that waits is taken when the other %s', async (_, free) => {
    const world = new WatchWorld();
    const holder = world.write(NFD);
    const inbox = await world.start();
    await inbox.watcher.idle();
    world.write(NFC);
    await until(() => inbox.status(NFC) === 'quarantined', 'it waits');
    free(holder);
    await until(() => inbox.status(NFC) === 'pending', 'it is taken');
    expect(inbox.status(NFD)).not.toBe('pending');
  });

  it('one that waits is taken when the other went while nobody watched, and not before', async () => {
    const world = new WatchWorld();
    const holder = world.write(NFD);
    const first = await world.start({ hints: false });
    await first.watcher.idle();
    world.write(NFC);
    await first.watcher.rescan();
    await first.watcher.idle();
    expect(first.status(NFC)).toBe('quarantined');
    await first.watcher.stop();
    const second = await world.start({ state: first.state, hints: false });
    await second.watcher.idle();
    expect([second.status(NFC), second.status(NFD)]).toEqual(['quarantined', 'pending']);
    await second.watcher.stop();
    rmSync(holder);
    const third = await world.start({ state: first.state, hints: false });
    await third.watcher.idle();
    expect([third.status(NFC), third.status(NFD)]).toEqual(['pending', 'gone']);
  });
});
