import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { request as requestOf } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ReloadReport } from '../../src/inspect/reload-report.js';
import { systemClock } from '../../src/lib/clock.js';
import { acquireLock } from '../../src/service/lock.js';
import { afterwards } from '../support/afterwards.js';
import { makeCertificate } from '../support/certificate.js';
import { Running } from '../support/cli.js';
import { until } from '../support/wait.js';
import { AtWork } from './at-work.js';

const url = (file: string) => `https://files.example.org/${file}`;

/** Whether a process has a handler for SIGHUP. */
function catchesHangUp(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  const [, mask = '0'] = /^SigCgt:\s*(\w+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (BigInt(`0x${mask}`) & 1n) === 1n;
}

describe('a running daemon that reads its configuration anew', { timeout: 240_000 }, () => {
  it('takes up a folder that was added, and leaves the others alone', async () => {
    const work = await AtWork.begin();
    work.drop('inbox/a.txt');
    work.drop('notes/n.txt');
    await work.start();
    await work.confirmed('inbox/a.txt');
    const watchOf = async (name: string) => (await work.status()).folders.find((f) => f.name === name)?.watch;
    await until(async () => (await watchOf('inbox'))?.state === 'watching', 'it watches');
    const before = await watchOf('inbox');
    work.configure({ folders: [{ name: 'inbox' }, { name: 'notes' }] });
    await work.hangUp();
    await work.confirmed('notes/n.txt');
    const after = await watchOf('inbox');
    expect(after?.since).toEqual(before?.since);
    // One that stood still for a second scans all folders by itself.
    if (!work.daemon.stdout.includes('The process stood still'))
      expect(after?.lastScan).toEqual(before?.lastScan);
    expect(work.collectionsOf(url('inbox/a.txt'))).toEqual(['inbox']);
    work.drop('notes/later.txt');
    work.drop('inbox/later.txt');
    await work.confirmed('notes/later.txt', 'inbox/later.txt');
    expect(await work.stop()).toMatchObject({ code: 0 });
  });

  it('lets a folder go that was removed: what waits there is never pushed, and back again nothing is pushed twice', async () => {
    const both = { folders: [{ name: 'inbox' }, { name: 'notes' }] };
    const work = await AtWork.begin(both);
    work.drop('notes/known.txt');
    await work.start();
    await work.confirmed('notes/known.txt');
    await work.ask('pause');
    work.drop('notes/waits.txt');
    await until(async () => (await work.why('notes/waits.txt'))?.verdict === 'pending', 'it waits');
    work.configure({ folders: [{ name: 'inbox' }] });
    expect((await work.run('reload')).stdout).toBe(`folder notes (${work.directory}/notes): removed\n`);
    expect((await work.why('notes/waits.txt'))?.verdict).toBe('outside');
    await work.ask('resume');
    work.drop('inbox/after.txt');
    work.drop('notes/unseen.txt');
    await work.confirmed('inbox/after.txt');
    expect(work.collectionsOf(url('notes/waits.txt'))).toEqual([]);
    work.configure(both);
    await work.hangUp();
    await work.confirmed('notes/known.txt', 'notes/waits.txt', 'notes/unseen.txt');
    expect(work.collectionsOf(url('notes/known.txt'))).toEqual(['notes']);
    expect(work.collectionsOf(url('notes/waits.txt'))).toEqual(['notes']);
  });

  it('pushes the documents of a folder again when their collection changed, and those alone', async () => {
    const work = await AtWork.begin({ folders: [{ name: 'inbox' }, { name: 'notes' }] });
    work.drop('inbox/a.txt');
    work.drop('notes/n.md');
    work.drop('notes/n.txt');
    await work.start();
    await work.confirmed('inbox/a.txt', 'notes/n.md', 'notes/n.txt');
    const rules = [{ match: '*.md', collection: 'markdown' }];
    work.configure({ folders: [{ name: 'inbox' }, { name: 'notes', rules }] });
    const report = await work.ask<ReloadReport>('reload');
    expect(report).toEqual({ changes: ['folder notes: rules changed'], restart: [] });
    await until(
      async () => (await work.peer.peerdoc(url('notes/n.md')))?.collections[0] === 'markdown',
      'it moved',
    );
    await until(async () => (await work.why('notes/n.md'))?.verdict === 'confirmed', 'confirmed');
    expect(work.collectionsOf(url('notes/n.md'))).toEqual(['notes', 'markdown']);
    expect(work.collectionsOf(url('notes/n.txt'))).toEqual(['notes']);
    expect(work.collectionsOf(url('inbox/a.txt'))).toEqual(['inbox']);
  });

  it('follows a folder to another path', async () => {
    const work = await AtWork.begin();
    work.drop('inbox/a.txt');
    work.drop('moved/b.txt');
    await work.start();
    await work.confirmed('inbox/a.txt');
    work.configure({ folders: [{ name: 'inbox', path: join(work.directory, 'moved') }] });
    await work.hangUp();
    await work.confirmed('moved/b.txt');
    const items = async () => (await work.status()).items;
    await until(async () => (await items()).gone === 1, 'what is not at the new path is gone');
  });

  it('renames a folder while its files travel: the new collection comes to the peer last', async () => {
    const work = await AtWork.begin();
    work.drop('inbox/a.txt');
    let [isReleased, cameEarly] = [false, false];
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    work.proxy.beforeHanding = ({ items }) => {
      if (items[0]?.collection === 'inbox') return released;
      cameEarly ||= !isReleased && items.some((item) => item.url === url('inbox/a.txt'));
      return undefined;
    };
    await work.start();
    await until(() => work.proxy.pushes.length > 0, 'it is on its way');
    const path = join(work.directory, 'inbox');
    work.configure({ folders: [{ name: 'renamed', path, url: 'https://files.example.org/inbox/' }] });
    await work.hangUp();
    work.drop('inbox/b.txt');
    await work.confirmed('inbox/b.txt');
    expect(cameEarly).toBe(false);
    isReleased = true;
    release();
    await work.confirmed('inbox/a.txt');
    expect(work.collectionsOf(url('inbox/a.txt'))).toEqual(['inbox', 'renamed']);
    expect((await work.peer.peerdoc(url('inbox/a.txt')))?.collections).toEqual(['renamed']);
  });

  it('changes nothing when the configuration is wrong, and says all that is', async () => {
    const work = await AtWork.begin();
    await work.start();
    const good = readFileSync(work.config, 'utf8');
    const wrong = { ...JSON.parse(good), push: { concurrency: 0 }, watch: { rescan: 'often' }, folders: [] };
    writeFileSync(work.config, JSON.stringify(wrong));
    await work.hangUp();
    for (const part of ['reload-failed', 'push.concurrency', 'watch.rescan', 'folders', 'goes on as before'])
      expect(work.daemon.stdout).toContain(part);
    const asked = await work.run('reload');
    expect(asked).toMatchObject({ code: 2, stdout: '' });
    for (const part of ['push.concurrency', 'watch.rescan', 'A running daemon goes on as before.'])
      expect(asked.stderr).toContain(part);
    work.drop('inbox/a.txt');
    await work.confirmed('inbox/a.txt');
    writeFileSync(work.config, good);
    expect((await work.run('reload')).stdout).toBe('Nothing changed.\n');
    expect(await work.stop()).toMatchObject({ code: 0 });
  });

  it('takes nothing of it when a secret or certificate that it names cannot be read', async () => {
    const work = await AtWork.begin();
    await work.start();
    const section = work.peer.section(work.proxy.url);
    work.configure({
      peer: { ...section, auth: { username: 'admin', password: { file: '/nowhere/password' } } },
      folders: [{ name: 'inbox' }, { name: 'notes' }],
      status: { listen: '127.0.0.1:0', token: { env: 'NOT_SET_ANYWHERE' } },
    });
    const { code, stderr } = await work.run('reload');
    expect(code).toBe(2);
    expect(stderr).toContain('/nowhere/password');
    expect(stderr).toContain('NOT_SET_ANYWHERE');
    const folders = [{ name: 'inbox' }, { name: 'notes' }];
    work.configure({ peer: { ...section, tls: { ca: '/nowhere/ca.pem' } }, folders });
    const alone = await work.run('reload');
    expect(alone.code).toBe(2);
    expect(alone.stderr).toContain('/nowhere/ca.pem');
    expect((await work.status()).folders.map(({ name }) => name)).toEqual(['inbox']);
    expect(await work.stop()).toMatchObject({ code: 0 });
  });

  it('names what waits for a restart until it is not so any more, and does the rest', async () => {
    const work = await AtWork.begin();
    await work.start();
    const before = readFileSync(work.config, 'utf8');
    const peer = { ...work.peer.section(work.proxy.url), maxAnswer: '1 MiB' };
    work.configure({ peer, folders: [{ name: 'inbox' }, { name: 'notes' }] });
    const { code, stdout } = await work.run('reload');
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `folder notes (${work.directory}/notes): added\npeer.maxAnswer: takes effect only by a restart\n`,
    });
    expect((await work.run('status')).stdout).toMatch(/^restart +.*peer\.maxAnswer$/m);
    work.drop('notes/n.txt');
    await work.confirmed('notes/n.txt');
    await work.hangUp();
    expect((await work.status()).restart).toEqual(['peer.maxAnswer']);
    writeFileSync(work.config, before);
    await work.hangUp();
    expect((await work.status()).restart).toBeUndefined();
  });

  it('reads the password anew, and asks a peer at once that refused the one before', async () => {
    const work = await AtWork.begin();
    const password = join(work.directory, 'password');
    writeFileSync(password, 'wrong');
    const auth = { username: 'admin', password: { file: password } };
    work.configure({ peer: { url: work.proxy.url, auth } });
    work.drop('inbox/a.txt');
    await work.start();
    const circuit = async () => (await work.status()).peer.door?.circuit;
    let nextProbeAt = 0;
    const isFarAway = async () => {
      const now = await circuit();
      nextProbeAt = now?.nextProbeAt ?? 0;
      return now?.reason?.kind === 'denied' && nextProbeAt - Date.now() > 10_000;
    };
    await until(isFarAway, 'the password was refused again and again', 60_000);
    writeFileSync(password, readFileSync(join(work.peer.data, 'admin-password')));
    const report = await work.ask<ReloadReport>('reload');
    expect(report).toEqual({ changes: ['peer.auth: other credentials'], restart: [] });
    await until(async () => (await circuit())?.state === 'closed', 'the peer takes it');
    expect(Date.now()).toBeLessThan(nextProbeAt);
    await work.confirmed('inbox/a.txt');
    expect((await work.run('reload')).stdout).toBe('Nothing changed.\n');
  });

  it('reads the certificates anew that it trusts: one that was renewed needs no restart', async () => {
    const work = await AtWork.begin();
    const own = makeCertificate();
    const front = createServer(own, (request, response) => {
      const { method = 'GET', headers, url = '/' } = request;
      const onwards = requestOf(work.peer.url + url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      onwards.on('error', () => response.destroy());
      request.pipe(onwards);
    });
    await new Promise<void>((listening) => front.listen(0, '127.0.0.1', listening));
    afterwards('test', () => {
      front.close();
      front.closeAllConnections();
    });
    const ca = join(work.directory, 'ca.pem');
    writeFileSync(ca, own.cert);
    const { port } = front.address() as AddressInfo;
    work.configure({ peer: { ...work.peer.section(`https://127.0.0.1:${port}`), tls: { ca } } });
    await work.start();
    work.drop('inbox/a.txt');
    await work.confirmed('inbox/a.txt');
    const renewed = makeCertificate();
    front.setSecureContext(renewed);
    front.closeAllConnections();
    work.drop('inbox/b.txt');
    const away = async () => (await work.status()).peer.door?.circuit.reason?.kind === 'unreachable';
    await until(away, 'the new certificate is not trusted');
    writeFileSync(ca, renewed.cert.slice(0, 200));
    const refused = await work.run('reload');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('damaged or cut off');
    writeFileSync(ca, renewed.cert);
    expect((await work.run('reload')).stdout).toBe('peer.tls.ca: other certificates\n');
    await work.confirmed('inbox/b.txt');
    expect((await work.run('reload')).stdout).toBe('Nothing changed.\n');
  });

  it('takes hints, rates, the audit and the level of its log at once', async () => {
    const work = await AtWork.begin();
    work.drop('inbox/a.txt');
    await work.start();
    await work.confirmed('inbox/a.txt');
    const watch = async () => (await work.status()).folders[0]?.watch?.state;
    await until(async () => (await watch()) === 'watching', 'it watches');
    const lookups = work.proxy.lookups.length;
    work.configure({ watch: { hints: false, rescan: '1s' }, push: { concurrency: 9 } });
    const config = JSON.parse(readFileSync(work.config, 'utf8'));
    writeFileSync(
      work.config,
      JSON.stringify({ ...config, log: { level: 'debug' }, audit: { every: '1s' } }),
    );
    await work.hangUp();
    await until(async () => (await watch()) === 'unwatched', 'hints are off');
    // 9 pushes, 16 look-ups, and 2 beside them.
    expect((await work.status()).peer.door?.concurrency.max).toBe(27);
    await until(() => work.proxy.lookups.length > lookups + 1, 'it is looked up again and again');
    work.drop('inbox/by-rescan.txt');
    await work.confirmed('inbox/by-rescan.txt');
    expect(work.daemon.stdout).toContain('"level":20');
  });

  it('takes up mirrors that were added, changed and removed, and the file of a removed one stays', async () => {
    const work = await AtWork.begin();
    work.drop('inbox/a.txt');
    await work.start();
    await work.confirmed('inbox/a.txt');
    const file = (name: string) => join(work.directory, 'mirror', name, 'a.txt.json');
    const citations = (name: string) => ({
      mirror: { citations: [{ folder: 'inbox', every: '1s', path: `${name}/{path}.json` }] },
    });
    work.configure(citations('first'));
    await work.hangUp();
    await until(() => existsSync(file('first')), 'the first file');
    work.configure(citations('second'));
    await work.hangUp();
    await until(() => existsSync(file('second')), 'the second file');
    expect((await work.status()).mirrors).toHaveLength(1);
    work.configure({});
    await work.hangUp();
    expect((await work.status()).mirrors).toEqual([]);
    expect(existsSync(file('second'))).toBe(true);
  });

  it('is not ended by a SIGHUP while it starts, and stops in good order amid many', async () => {
    const work = await AtWork.begin();
    work.drop('inbox/a.txt');
    const starting = work.start();
    // Not before the process listens for it: a signal to a process that is being loaded ends that.
    await until(() => catchesHangUp(work.daemon.child.pid), 'it listens for the signal');
    work.daemon.child.kill('SIGHUP');
    await starting;
    await work.daemon.says('"event":"reloaded"');
    await work.confirmed('inbox/a.txt');
    for (let i = 0; i < 50; i += 1) {
      work.configure({ folders: i % 2 === 0 ? [{ name: 'inbox' }] : [{ name: 'inbox' }, { name: 'notes' }] });
      work.daemon.child.kill('SIGHUP');
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const ended = await work.stop();
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain('everything known is on disk');
  });

  it('is said to be nobody where none runs', async () => {
    const work = await AtWork.begin();
    const { code, stderr } = await work.run('reload');
    expect(code).toBe(1);
    expect(stderr).toContain('No daemon runs with this configuration');
    mkdirSync(join(work.directory, 'state'));
    const again = await work.run('reload');
    expect(again.stderr).toMatch(
      /No daemon runs .*: none uses the state in .*\n {2}Start it with `peersync run`\./,
    );
  });

  it('is not there where the state was moved to in the file: reload says so, and what to do', async () => {
    const work = await AtWork.begin();
    await work.start();
    const config = JSON.parse(readFileSync(work.config, 'utf8'));
    const elsewhere = join(work.directory, 'elsewhere');
    writeFileSync(work.config, JSON.stringify({ ...config, state: { dir: elsewhere } }));
    const { code, stderr } = await work.run('reload');
    expect(code).toBe(1);
    expect(stderr).toContain(`its state would be in ${elsewhere}, where nothing is.`);
    expect(stderr).toContain('stop the daemon, move its old directory here, and start it again');
    await work.hangUp();
    expect((await work.status()).restart).toEqual(['state.dir']);
    await work.stop();
    renameSync(join(work.directory, 'state'), elsewhere);
    const moved = new Running(['run', '--config', work.config]);
    await moved.says('pushing to');
    await until(async () => (await work.run('reload')).code === 0, 'it can be asked');
  });

  it('is said not to take commands where somebody holds the state who does not listen', async () => {
    const work = await AtWork.begin();
    const lock = await acquireLock(join(work.directory, 'state'), { clock: systemClock });
    const { code, stderr } = await work.run('reload');
    expect(code).toBe(1);
    expect(stderr).toContain(`(pid ${process.pid} on ${hostname()}) does not take commands now`);
    await lock.release();
  });
});
