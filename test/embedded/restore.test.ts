import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { backUp } from '../../src/embedded/backup.js';
import { checkPeer } from '../../src/embedded/check-peer.js';
import { lockDirectory } from '../../src/embedded/directory-lock.js';
import { restore } from '../../src/embedded/restore.js';
import { systemClock } from '../../src/lib/clock.js';
import { PeersyncError } from '../../src/lib/errors.js';
import { temporaryDirectory } from '../support/temp.js';
import { AskedTable, builtPeer, driver, openPeer, peerdoc, push } from './support.js';

const signal = new AbortController().signal;

/** A backup of a peer with `documents` documents, whose table and shared objects say `name`. */
async function backupNamed(name: string, documents: number): Promise<string> {
  const dir = temporaryDirectory();
  const peer = await openPeer({ dir });
  const urls = Array.from({ length: documents }, (_, n) => [`http://h/${n}`, `${name} ${n}`]);
  await push(peer, Object.fromEntries(urls));
  await new AskedTable(peer).commit('which', { name });
  for (let n = 0; n < 5; n += 1) {
    mkdirSync(join(dir, 'shares', `group${n}`));
    writeFileSync(join(dir, 'shares', `group${n}`, 'which.txt'), name);
  }
  await peer.close();
  const file = join(dir, '..', `${name}-${Math.random()}.backup`);
  await backUp({ dir, file, force: false, check: true, clock: systemClock, signal, driver });
  return file;
}

function bring(dir: string, file: string, discard = false) {
  return restore({ dir, file, check: true, discard, signal, driver });
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'it succeeded',
    (error: unknown) => (error instanceof PeersyncError ? error.code : String(error)),
  );
}

/** What a peer holds: the name in its table and its shared objects, and the number of documents. */
async function contentOf(dir: string): Promise<string> {
  const peer = await openPeer({ dir });
  const [row] = (await new AskedTable(peer).ask()).rows;
  const first = await peerdoc(peer, 'http://h/0');
  await peer.close();
  const shares = readdirSync(join(dir, 'shares')).map((group) =>
    readFileSync(join(dir, 'shares', group, 'which.txt'), 'utf8'),
  );
  const { documents, found } = await checkPeer(dir, signal, driver);
  expect([found, first?.size]).toEqual([0, `${row?.cells.name} 0`.length]);
  return `${row?.cells.name} ${documents} ${[...new Set(shares)].join()} ${shares.length}`;
}

describe('a restore', () => {
  it('keeps what was there before, and deletes it only if that is asked for', async () => {
    const [old, young] = [await backupNamed('old', 2), await backupNamed('young', 3)];
    const dir = temporaryDirectory();
    expect(await bring(dir, old)).toMatchObject({
      kept: undefined,
      isReplaced: false,
      checked: { documents: 2 },
      shares: 5,
    });
    expect(await contentOf(dir)).toBe('old 2 old 5');
    expect(await bring(dir, young)).toMatchObject({ kept: join(dir, 'before-restore') });
    expect(await contentOf(dir)).toBe('young 3 young 5');
    const kept = temporaryDirectory();
    const copied = spawn('cp', ['-r', `${join(dir, 'before-restore')}/.`, kept]);
    await once(copied, 'exit');
    expect(await contentOf(kept)).toBe('old 2 old 5');
    expect(await codeOf(bring(dir, old))).toBe('RESTORE_KEPT');
    expect(await contentOf(dir)).toBe('young 3 young 5');
    expect(await bring(dir, old, true)).toMatchObject({ kept: undefined });
    expect(await contentOf(dir)).toBe('old 2 old 5');
    expect(readdirSync(dir).sort()).toEqual(['admin-password', 'peer.sqlite', 'shares']);
  });

  it('removes the log of the replaced database, which would damage the restored one', async () => {
    const file = await backupNamed('old', 2);
    const dir = temporaryDirectory();
    await bring(dir, await backupNamed('young', 3), true);
    writeFileSync(join(dir, 'peer.sqlite-wal'), 'of a killed peer');
    await bring(dir, file);
    expect(readdirSync(join(dir, 'before-restore')).sort()).toEqual([
      'peer.sqlite',
      'peer.sqlite-wal',
      'shares',
    ]);
    expect(await contentOf(dir)).toBe('old 2 old 5');
  });

  it('refuses a directory whose peer runs', async () => {
    const file = await backupNamed('old', 1);
    const dir = temporaryDirectory();
    const lock = await lockDirectory(dir);
    expect(await codeOf(bring(dir, file))).toBe('EMBEDDED_DIR_LOCKED');
    await lock.release();
  });

  it('leaves the old peer or the new one, whenever it is killed', async () => {
    const files = { old: await backupNamed('old', 20), young: await backupNamed('young', 30) };
    const whole = { old: 'old 20 old 5', young: 'young 30 young 5' };
    const dir = temporaryDirectory();
    await bring(dir, files.old);
    let current: 'old' | 'young' = 'old';
    const outcomes: string[] = [];
    const restoreUntil = async (step: number): Promise<number> => {
      await rm(join(dir, 'before-restore'), { recursive: true, force: true });
      const next = current === 'old' ? 'young' : 'old';
      const steps = await killedRestore(dir, files[next], { step, discard: step % 2 === 0 });
      const content = await contentOf(dir);
      expect(Object.values(whole), `killed at step ${step}`).toContain(content);
      outcomes.push(content === whole[current] ? 'old' : 'new');
      current = content === whole.old ? 'old' : 'young';
      expect(readdirSync(dir)).not.toContain('restoring');
      expect(readdirSync(dir)).not.toContain('restored');
      return steps;
    };
    const steps = await restoreUntil(Number.MAX_SAFE_INTEGER);
    // Most of the first steps unpack shared objects. The last ones put everything in place.
    const [few, last] = [Array.from({ length: 4 }, () => Math.random() * (steps - 16)), 16];
    for (const step of few) await restoreUntil(Math.floor(step));
    for (let step = steps - last; step <= steps; step += 1) await restoreUntil(step);
    expect(new Set(outcomes)).toEqual(new Set(['old', 'new']));
  }, 240_000);
});

/** Restores, and kills itself before the step of a number. Prints the number of steps. */
const RUNNER = `
  import fs from 'node:fs/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const [url, dir, file, discard, driver, last] = process.argv.slice(1);
  let steps = 0;
  for (const name of ['mkdir', 'open', 'rename', 'rm', 'utimes']) {
    const real = fs[name];
    fs[name] = (...values) => {
      steps += 1;
      if (steps > Number(last)) process.kill(process.pid, 'SIGKILL');
      return real(...values);
    };
  }
  syncBuiltinESMExports();
  const { restore } = await import(new URL('restore.js', url));
  const { driverNamed } = await import(new URL('driver.js', url));
  const { signal } = new AbortController();
  const named = await driverNamed(driver);
  await restore({ dir, file, check: true, discard: discard === 'true', signal, driver: named });
  console.log(steps);
`;

/** Restores in a process that is killed before a step. @returns the steps, if it was not */
async function killedRestore(
  dir: string,
  file: string,
  { discard, step }: { readonly discard: boolean; readonly step: number },
): Promise<number> {
  const args = ['--input-type=module', '-e', RUNNER, builtPeer, dir, file, `${discard}`];
  const child = spawn(process.execPath, [...args, driver.name, `${step}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const printed = text(child.stdout);
  await once(child, 'exit');
  return Number(await printed);
}
