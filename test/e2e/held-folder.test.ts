import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { AtWork } from './at-work.js';

it('what waits in a folder that is away is pushed when it is back after a restart, or by another path', {
  timeout: 240_000,
}, async () => {
  const work = await AtWork.begin({ folders: [{ name: 'shelf' }, { name: 'inbox' }] });
  const at = (name: string) => join(work.directory, name);
  work.drop('inbox/first.txt');
  await work.start();
  const isHeld = async () => (await work.status()).folders.some(({ watch }) => watch?.state === 'held');
  /** A file that waits in the folder when that goes away, while others go on. */
  const waits = async (file: string, other: string) => {
    await work.ask('pause');
    work.drop(`shelf/${file}`);
    await until(async () => (await work.why(`shelf/${file}`))?.verdict === 'pending', 'it waits');
    renameSync(at('shelf'), at('away'));
    await until(isHeld, 'its folder is held');
    await work.ask('resume');
    work.drop(`inbox/${other}`);
    await work.confirmed(`inbox/${other}`);
    expect((await work.status()).items.pending).toBe(1);
  };
  const comesBack = () => renameSync(at('away'), at('shelf'));

  await waits('restart.txt', 'third.txt');
  expect(await work.stop()).toMatchObject({ code: 0 });
  await work.start();
  work.drop('inbox/fourth.txt');
  await work.confirmed('inbox/fourth.txt');
  expect((await work.status()).items.pending).toBe(1);
  comesBack();
  await work.confirmed('shelf/restart.txt');

  await waits('path.txt', 'fifth.txt');
  const folder = { name: 'shelf', path: at('away') };
  work.configure({ folders: [folder, { name: 'inbox' }] });
  await work.hangUp();
  await work.confirmed('away/path.txt');

  const times = (file: string) => work.collectionsOf(`shelf/${file}`).length;
  expect(['restart.txt', 'path.txt'].map(times)).toEqual([1, 1]);
  expect(await work.stop()).toMatchObject({ code: 0 });
});
