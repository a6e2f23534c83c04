import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkBackup, checkPeer } from '../../src/embedded/check-peer.js';
import { FORMAT, int } from '../../src/embedded/database.js';
import { lockDirectory } from '../../src/embedded/directory-lock.js';
import type { PeerInstance } from '../../src/embedded/peer-instance.js';
import { systemClock } from '../../src/lib/clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { backupOf, bring, codeOf, save, signal } from './backup-support.js';
import { AskedTable, ask, driver, openPeer, peerdoc, push, search } from './support.js';

/** A peer that holds the lock of its directory, as one in a process does. */
async function lockedPeer(dir = temporaryDirectory()) {
  const lock = await lockDirectory(dir);
  const peer = await openPeer({ dir });
  const close = async () => {
    await peer.close();
    await lock.release();
  };
  return { dir, peer, close };
}

/** Fills a peer with two documents, a table and two shared objects. */
async function fill(dir: string, peer: PeerInstance): Promise<void> {
  await push(
    peer,
    { 'http://h/tea': 'Grüner Tee 緑茶', 'http://h/milk': 'milk' },
    { collection: 'c' },
  );
  await new AskedTable(peer).commit('a', { price: '5' });
  mkdirSync(join(dir, 'shares', 'group', 'below'), { recursive: true });
  writeFileSync(join(dir, 'shares', 'group', 'below', 'large.bin'), Buffer.alloc(3_000_000, 'x'));
  writeFileSync(join(dir, 'shares', 'empty.txt'), '');
  utimesSync(join(dir, 'shares', 'empty.txt'), 1_000_000, 1_000_000);
}

async function stoppedPeer(): Promise<string> {
  const { close, dir, peer } = await lockedPeer();
  await fill(dir, peer);
  await close();
  return dir;
}

/** The digests of all files in a directory, by path. */
function snapshot(dir: string): Record<string, string> {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((e) =>
    e.isFile(),
  );
  const digest = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');
  return Object.fromEntries(
    files.map(({ name, parentPath }) => [join(parentPath, name), digest(join(parentPath, name))]),
  );
}

const AGREES = { differences: [], found: 0 };

describe('a backup', () => {
  it('of a stopped peer brings its documents, tables and shared objects to another directory', async () => {
    const file = await backupOf(await stoppedPeer());
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(file, '..'))).toEqual(['peer.backup']);
    expect(await checkBackup(file, signal, driver)).toEqual({
      documents: 2,
      tables: 1,
      shares: 2,
      ...AGREES,
    });
    const dir = join(temporaryDirectory(), 'new');
    expect(await bring(dir, file)).toMatchObject({ checked: { documents: 2 }, kept: undefined });
    const peer = await openPeer({ dir });
    expect((await search(peer, { query: 'gruner' })).items[0]?.url).toBe('http://h/tea');
    expect((await peerdoc(peer, 'http://h/milk'))?.collections).toEqual(['c']);
    expect((await new AskedTable(peer).ask()).rows).toEqual([{ pk: 'a', cells: { price: '5' } }]);
    const shares = join(dir, 'shares');
    const large = readFileSync(join(shares, 'group', 'below', 'large.bin'));
    expect(large.equals(Buffer.alloc(3_000_000, 'x'))).toBe(true);
    expect(statSync(join(shares, 'empty.txt')).mtimeMs).toBe(1_000_000_000);
  });

  it('of a running peer has everything that it answered for, while documents are pushed', async () => {
    const { close, dir, peer } = await lockedPeer();
    await fill(dir, peer);
    const path = join(dir, 'peer.sqlite');
    const mains = new Set<string>();
    let number = 0;
    let isCopied = false;
    const pushing = (async () => {
      while (!isCopied) {
        await push(peer, { [`http://h/${number}`]: `pushed ${'word '.repeat(5_000)} n${number}` });
        number += 1;
      }
    })();
    while (number < 3) await systemClock.sleep(1);
    const before = number;
    const file = join(temporaryDirectory(), 'peer.backup');
    let looks = 0;
    const clock = {
      ...systemClock,
      // Asked before each piece is read.
      now: () => {
        looks += 1;
        mains.add(createHash('sha256').update(readFileSync(path)).digest('hex'));
        return systemClock.now() + looks * 20_000;
      },
    };
    const backup = await save(dir, file, { clock });
    isCopied = true;
    await pushing;
    expect(mains.size).toBe(1);
    expect(backup.checked).toMatchObject(AGREES);
    expect(backup.checked?.documents).toBeGreaterThanOrEqual(2 + before);
    await close();
    const other = temporaryDirectory();
    await bring(other, file);
    const restored = await openPeer({ dir: other });
    for (let n = 0; n < before; n += 1)
      expect(await peerdoc(restored, `http://h/${n}`), `document ${n}`).toBeDefined();
    expect(await checkPeer(dir, signal, driver)).toMatchObject({
      documents: 2 + number,
      ...AGREES,
    });
  });

  it('never replaces a file unless that is asked for, nor leaves anything behind', async () => {
    const dir = await stoppedPeer();
    const file = await backupOf(dir);
    expect(await codeOf(save(dir, file))).toBe('BACKUP_EXISTS');
    await save(dir, file, { force: true });
    expect(readdirSync(join(file, '..'))).toEqual(['peer.backup']);
    expect(await codeOf(save(dir, join(dir, 'inside')))).toBe('BACKUP_INSIDE');
    expect(await codeOf(save(dir, join(dir, 'shares', 'inside')))).toBe('BACKUP_INSIDE');
    expect(await codeOf(save(dir, join(file, 'below')))).toBe('BACKUP_UNWRITABLE');
    expect(await codeOf(save(temporaryDirectory(), `${file}.other`))).toBe('BACKUP_PEER_MISSING');
  });

  it('is refused if it is damaged anywhere, cut or of another program, and nothing is changed', async () => {
    const dir = await stoppedPeer();
    const file = await backupOf(dir);
    const good = readFileSync(file);
    const before = snapshot(dir);
    const bad = join(temporaryDirectory(), 'bad');
    const refused = async (bytes: Buffer | string): Promise<string> => {
      writeFileSync(bad, bytes);
      const code = await codeOf(checkBackup(bad, signal, driver));
      expect(await codeOf(bring(dir, bad))).toBe(code);
      expect(snapshot(dir)).toEqual(before);
      return code;
    };
    const database = int(openPage(good), 'size');
    const places = [
      0,
      30,
      70,
      4_000,
      9_000,
      database - 1,
      database + 3,
      database + 200,
      good.length - 180,
      good.length - 100,
      good.length - 2,
    ];
    for (let n = 0; n < 12; n += 1) places.push(Math.floor(Math.random() * good.length));
    for (const at of places) {
      const flipped = Buffer.from(good);
      flipped[at] = (flipped[at] ?? 0) ^ 0x10;
      expect(await refused(flipped), `byte ${at}`).toMatch(/^BACKUP_(DAMAGED|UNKNOWN)$/);
    }
    for (const length of [0, 100, 5_000, good.length - 1])
      expect(await refused(good.subarray(0, length))).toBe('BACKUP_UNKNOWN');
    expect(await refused(Buffer.concat([good, good.subarray(-10)]))).toBe('BACKUP_UNKNOWN');
    const other = driver.open(join(temporaryDirectory(), 'other'));
    other.exec('CREATE TABLE t (a)');
    other.close();
    expect(await refused(readFileSync(join(dir, 'peer.sqlite')))).toBe('BACKUP_UNKNOWN');
    expect(await refused('no database')).toBe('BACKUP_UNKNOWN');
    expect(await codeOf(bring(dir, join(bad, 'missing')))).toBe('BACKUP_UNREADABLE');
    const newer = Buffer.from(good);
    newer.write('0002', newer.length - 87);
    expect(await refused(newer)).toBe('BACKUP_NEWER');
  }, 120_000);

  it('of a database of a newer peersync is refused', async () => {
    const dir = await stoppedPeer();
    const file = await backupOf(dir);
    const newer = readFileSync(file);
    newer.writeUInt32BE(FORMAT + 1, 60);
    const footer = newer.length - 65;
    newer.write(createHash('sha256').update(newer.subarray(0, footer)).digest('hex'), footer);
    writeFileSync(file, newer);
    const before = snapshot(dir);
    expect(await codeOf(bring(dir, file))).toBe('BACKUP_NEWER');
    expect(snapshot(dir)).toEqual(before);
  });

  it('is refused if it names a file outside of the shared objects', async () => {
    const dir = await stoppedPeer();
    const file = await backupOf(dir);
    const bytes = readFileSync(file);
    const at = bytes.indexOf('{"path":"group/below/');
    bytes.write('{"path":"../../../..///', at);
    const footer = bytes.length - 65;
    bytes.write(createHash('sha256').update(bytes.subarray(0, footer)).digest('hex'), footer);
    writeFileSync(file, bytes);
    expect(await codeOf(bring(dir, file))).toBe('BACKUP_DAMAGED');
  });

  it('and a restore say before they write that there is too little space', async (context) => {
    const [small, dir] = [join(temporaryDirectory(), 'small'), await stoppedPeer()];
    mkdirSync(small);
    const run = (command: string, ...args: string[]) =>
      spawnSync(command, args, { stdio: 'ignore' }).status;
    if (run('mount', '-t', 'tmpfs', '-o', 'size=2m,mode=0700', 'tmpfs', small) !== 0)
      return context.skip('a small file system can be mounted by root only');
    try {
      expect(await codeOf(save(dir, join(small, 'peer.backup')))).toBe('BACKUP_NO_SPACE');
      expect(readdirSync(small)).toEqual([]);
      expect(await codeOf(bring(small, await backupOf(dir)))).toBe('BACKUP_NO_SPACE');
      expect(readdirSync(small)).toEqual([]);
    } finally {
      run('umount', '-l', small);
    }
    return undefined;
  });

  it('ends if the peer stops or lets go of it, and the peer goes on after a killed one', async () => {
    const { close, dir, peer } = await lockedPeer();
    await fill(dir, peer);
    const control = async (form: Record<string, string>) => {
      const answer = await ask(peer, '/api/backup_p.json', form);
      return { status: answer.status, ...(answer.json() as { lease?: string; size?: number }) };
    };
    const first = await control({ action: 'suspend' });
    expect(first).toMatchObject({ status: 200, size: statSync(join(dir, 'peer.sqlite')).size });
    expect(await control({ action: 'suspend' })).toMatchObject({ status: 409 });
    expect(await control({ action: 'renew', lease: 'other' })).toMatchObject({ status: 409 });
    expect(await codeOf(save(dir, join(temporaryDirectory(), 'b')))).toBe('BACKUP_REFUSED');
    expect(await control({ action: 'renew', lease: first.lease ?? '' })).toMatchObject({
      status: 200,
    });
    expect(await control({ action: 'resume', lease: first.lease ?? '' })).toMatchObject({
      status: 200,
    });
    expect(await control({ action: 'resume', lease: first.lease ?? '' })).toMatchObject({
      status: 409,
    });
    expect((await ask(peer, '/api/backup_p.json', {}, { authorization: '' })).status).toBe(401);
    expect(await codeOf(save(dir, file(), { clock: stopsPeer(peer, 3_600_000) }))).toMatch(ENDED);
    await close();
  });

  it('ends if the peer stops after it was asked for the last time', async () => {
    const { close, dir, peer } = await lockedPeer();
    await fill(dir, peer);
    expect(await codeOf(save(dir, file(), { clock: stopsPeer(peer, 0) }))).toMatch(ENDED);
    await close();
  });
});

const ENDED = /^BACKUP_(INTERRUPTED|PEER_UNREACHABLE)$/;

function file(): string {
  return join(temporaryDirectory(), 'peer.backup');
}

/** A clock that stops the peer when it is asked. So much time passes between two looks. */
function stopsPeer(peer: PeerInstance, stepMs: number) {
  let now = systemClock.now();
  return {
    ...systemClock,
    now: () => {
      void peer.close();
      now += stepMs;
      return now;
    },
  };
}
/** The size of the database in a backup. */
function openPage(backup: Buffer): { readonly size: number } {
  return { size: backup.readUInt16BE(16) * backup.readUInt32BE(28) };
}
