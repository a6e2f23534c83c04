import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { BackupWriter } from '../../src/embedded/backup-file.js';
import { checkBackup, checkPeer } from '../../src/embedded/check-peer.js';
import { type Driver, wasmDriver } from '../../src/embedded/driver.js';
import { temporaryDirectory } from '../support/temp.js';
import { backupOf, bring, codeOf, save, signal } from './backup-support.js';
import { driver, openDatabase, openPeer, push, toMigratedFormat } from './support.js';

/** A stopped peer with one document and one shared object, both with this text. */
async function peerOf(text: string): Promise<string> {
  const dir = temporaryDirectory();
  const peer = await openPeer({ dir });
  await push(peer, { 'http://h/a': text });
  writeFileSync(join(dir, 'shares', 'object.txt'), text);
  await peer.close();
  return dir;
}

/** Changes the database of a stopped peer behind its back. */
function change(dir: string, sql: string): void {
  const database = openDatabase(dir);
  database.run(sql);
  database.close();
}

/** A driver that calls `before` each time a copy is opened. */
function driverThat(before: (path: string) => void): Driver {
  const openToRead = (path: string) => {
    before(path);
    return driver.openToRead(path);
  };
  return { ...driver, openToRead };
}

const mounted: string[] = [];

/** Mounts a file or directory on itself. @returns false if this user may not */
function mount(path: string): boolean {
  const isMounted = spawnSync('mount', ['--bind', path, path]).status === 0;
  if (isMounted) mounted.push(path);
  return isMounted;
}

function unmountAll(): void {
  for (const path of mounted.splice(0)) spawnSync('umount', ['-l', path]);
}

afterEach(unmountAll);

describe('a backup', () => {
  it('is whole if another one writes the same file at the same time', async () => {
    const [one, other] = [await peerOf('one'), await peerOf('other')];
    const file = join(temporaryDirectory(), 'peer.backup');
    await Promise.all([save(one, file, { force: true }), save(other, file, { force: true })]);
    expect(readdirSync(join(file, '..'))).toEqual(['peer.backup']);
    expect(await checkBackup(file, signal, driver)).toMatchObject({ documents: 1, found: 0 });
  });

  it('is not published if another program replaced the copy', async () => {
    const [dir, file] = [await peerOf('one'), join(temporaryDirectory(), 'peer.backup')];
    const replacing = driverThat((path) => {
      const copy = readlinkSync(path);
      writeFileSync(`${copy}.2`, readFileSync(copy));
      renameSync(`${copy}.2`, copy);
    });
    expect(await codeOf(save(dir, file, { driver: replacing }))).toBe('BACKUP_UNWRITABLE');
    expect(existsSync(file)).toBe(false);
  });

  it('never replaces a link or a device', async () => {
    const [dir, files] = [await peerOf('one'), temporaryDirectory()];
    const [link, pipe] = [join(files, 'link'), join(files, 'pipe')];
    symlinkSync(await backupOf(dir), link);
    spawnSync('mkfifo', [pipe]);
    for (const file of [link, pipe])
      expect(await codeOf(save(dir, file, { force: true }))).toBe('BACKUP_UNWRITABLE');
    expect(readdirSync(files).sort()).toEqual(['link', 'pipe']);
    expect(readlinkSync(link)).toContain('peer.backup');
  });

  it('is checked beside the lock that a killed check left, and leaves none', async () => {
    const file = await backupOf(await peerOf('one'));
    mkdirSync(`${file}.lock`);
    expect(await checkBackup(file, signal, await wasmDriver())).toMatchObject({ found: 0 });
  });

  it('that another program locks, or whose disk fails, is not called damaged', async () => {
    const file = await backupOf(await peerOf('one'));
    for (const why of ['database is locked', 'disk I/O error']) {
      const failing = driverThat(() => {
        throw new Error(why);
      });
      expect(await codeOf(checkBackup(file, signal, failing))).toBe('BACKUP_UNREADABLE');
    }
  });

  it('with a wrong counter is restored only without the check', async () => {
    const dir = await peerOf('one');
    change(dir, `UPDATE counts SET value = 9 WHERE name = 'documents'`);
    expect(await codeOf(save(dir, join(temporaryDirectory(), 'b')))).toBe('BACKUP_DIFFERS');
    const [file, other] = [await backupOf(dir, { check: false }), temporaryDirectory()];
    expect(await codeOf(bring(other, file))).toBe('BACKUP_INCONSISTENT');
    expect(await bring(other, file, { check: false })).toMatchObject({ checked: undefined });
    appendFileSync(file, 'x');
    expect(await codeOf(bring(other, file, { check: false }))).toBe('BACKUP_UNKNOWN');
  });

  it.each([[['a', 'a']], [['a', 'a/b']], [['a/b', 'a']], [['a/b/c', 'a/b']]])(
    'with the shared objects %j is damaged',
    async (paths) => {
      const dir = await peerOf('one');
      const good = readFileSync(join(dir, 'peer.sqlite'));
      const file = join(temporaryDirectory(), 'peer.backup');
      const handle = await open(file, 'wx');
      const writer = new BackupWriter(handle, file);
      const pieces = async function* (...all: Buffer[]) {
        yield* all;
      };
      await writer.database(pieces(good));
      for (const path of paths) await writer.share({ path, size: 0, modified: 0 }, pieces());
      await writer.end();
      await handle.close();
      expect(await codeOf(checkBackup(file, signal, driver))).toBe('BACKUP_DAMAGED');
      expect(await codeOf(bring(dir, file))).toBe('BACKUP_DAMAGED');
    },
  );

  it('with a view or a trigger of somebody else is damaged, also without the check', async () => {
    const dir = await peerOf('one');
    change(dir, 'CREATE TRIGGER t AFTER INSERT ON counts BEGIN DELETE FROM documents; END');
    const other = join(temporaryDirectory(), 'b');
    expect(await codeOf(save(dir, other))).toBe('BACKUP_DAMAGED');
    expect(await codeOf(save(dir, other, { check: false }))).toBe('BACKUP_DAMAGED');
    const { differences, found } = await checkPeer(dir, signal, driver);
    expect([found, differences[0]]).toEqual([1, expect.stringContaining('trigger "t"')]);
  });

  it('and a check end when they are stopped', async () => {
    const [dir, ending] = [await peerOf('one'), new AbortController()];
    const stopping = driverThat(() => ending.abort());
    const options = { driver: stopping, signal: ending.signal };
    await expect(save(dir, join(temporaryDirectory(), 'b'), options)).rejects.toThrow(/aborted/);
    await expect(checkPeer(dir, ending.signal, driver)).rejects.toThrow(/aborted/);
  });
});

describe('the check of a stopped peer', () => {
  it('does not migrate a database of the format before, nor does a backup', async () => {
    const dir = await peerOf('one');
    toMigratedFormat(dir);
    const before = readFileSync(join(dir, 'peer.sqlite'));
    expect(await codeOf(checkPeer(dir, signal, driver))).toBe('BACKUP_PEER_OLDER');
    expect(await codeOf(save(dir, join(temporaryDirectory(), 'b')))).toBe('BACKUP_PEER_OLDER');
    expect(readFileSync(join(dir, 'peer.sqlite')).equals(before)).toBe(true);
  });

  it('does not complete a restore', async () => {
    const dir = await peerOf('one');
    mkdirSync(join(dir, 'restored'));
    expect(await codeOf(checkPeer(dir, signal, driver))).toBe('RESTORE_UNFINISHED');
    expect(readdirSync(dir)).toContain('restored');
  });

  it('names a file that is no directory of a peer', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    expect(await codeOf(checkPeer(file, signal, driver))).toBe('BACKUP_PEER_MISSING');
  });

  it('inflates no more of a text than a part has', async () => {
    const dir = await peerOf('one');
    const bomb = deflateRawSync(Buffer.alloc(10_000_000)).toString('hex');
    change(dir, `UPDATE texts SET deflated = x'${bomb}'`);
    const { differences } = await checkPeer(dir, signal, driver);
    expect(differences.join()).toMatch(/text of http:\/\/h\/a cannot be read/);
  });
});

describe('a restore', () => {
  it('refuses shared objects on a mount, and leaves them alone', async (context) => {
    const [dir, file] = [await peerOf('one'), await backupOf(await peerOf('other'))];
    const shares = join(dir, 'shares');
    if (!mount(shares)) return context.skip('only root can mount');
    for (const discard of [false, true])
      expect(await codeOf(bring(dir, file, { discard }))).toBe('RESTORE_SHARES_ELSEWHERE');
    expect(readFileSync(join(shares, 'object.txt'), 'utf8')).toBe('one');
    unmountAll();
    await bring(dir, file);
    return expect(readFileSync(join(shares, 'object.txt'), 'utf8')).toBe('other');
  });

  it('that was killed while it tried to rename the shared objects is taken back', async () => {
    const dir = await peerOf('one');
    renameSync(join(dir, 'shares'), join(dir, 'shares.trial'));
    expect(await codeOf(checkPeer(dir, signal, driver))).toBe('RESTORE_UNFINISHED');
    await (await openPeer({ dir })).close();
    expect(readFileSync(join(dir, 'shares', 'object.txt'), 'utf8')).toBe('one');
    expect(readdirSync(dir)).not.toContain('shares.trial');
  });

  it('that fails after it is decided says so, and the next start completes it', async (context) => {
    const [dir, file] = [await peerOf('one'), await backupOf(await peerOf('other'))];
    if (!mount(join(dir, 'peer.sqlite'))) return context.skip('only root can mount');
    expect(await codeOf(bring(dir, file))).toBe('RESTORE_UNFINISHED');
    unmountAll();
    await (await openPeer({ dir })).close();
    expect(readFileSync(join(dir, 'shares', 'object.txt'), 'utf8')).toBe('other');
    return expect(readdirSync(dir)).not.toContain('restored');
  });
});

it('a restore moves the log of the database before out of the way', async () => {
  const [dir, file] = [await peerOf('before'), await backupOf(await peerOf('restored'))];
  writeFileSync(join(dir, 'peer.sqlite-wal'), 'the log of a killed peer');
  await bring(dir, file);
  expect(existsSync(join(dir, 'peer.sqlite-wal'))).toBe(false);
  expect(readFileSync(join(dir, 'before-restore', 'peer.sqlite-wal'), 'utf8')).toContain('killed');
});
