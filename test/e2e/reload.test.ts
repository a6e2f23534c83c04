import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { request as requestOf } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import type { ReloadReport } from '../../src/report/status.js';
import { lockState } from '../../src/state/directory.js';
import { afterwards } from '../support/afterwards.js';
import { makeCertificate } from '../support/certificate.js';
import { Running } from '../support/cli.js';
import { well } from '../support/scripted-peer.js';
import { until } from '../support/wait.js';
import { AtWork } from './at-work.js';

/** Whether a process has a handler for SIGHUP. */
function catchesHangUp(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  const [, mask = '0'] = /^SigCgt:\s*(\w+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (BigInt(`0x${mask}`) & 1n) === 1n;
}

describe('a running daemon that reads its configuration anew', { timeout: 240_000 }, () => {
  let work: AtWork;
  beforeAll(async () => {
    work = await AtWork.begin({}, 'file');
    await work.start();
  });
  afterAll(async () => {
    expect(await work.stop()).toMatchObject({ code: 0 });
  });

  /** Each test begins with folders of its own, and those alone. */
  async function has(...names: readonly string[]): Promise<void> {
    work.configure({ folders: names.map((name) => ({ name })) });
    await work.hangUp();
    expect((await work.status()).folders.map(({ name }) => name)).toEqual(names);
  }

  /** What the daemon said since then. */
  function listening(): () => string {
    const from = work.daemon.stdout.length;
    return () => work.daemon.stdout.slice(from);
  }

  it('takes up a folder that was added, and leaves the others alone', async () => {
    work.drop('kept/a.txt');
    work.drop('added/n.txt');
    await has('kept');
    await work.confirmed('kept/a.txt');
    const watchOf = async (name: string) => (await work.status()).folders.find((f) => f.name === name)?.watch;
    await until(async () => (await watchOf('kept'))?.state === 'watching', 'it watches');
    const before = await watchOf('kept');
    work.configure({ folders: [{ name: 'kept' }, { name: 'added' }] });
    await work.hangUp();
    await work.confirmed('added/n.txt');
    const after = await watchOf('kept');
    expect(after?.since).toEqual(before?.since);
    // One that stood still for a second scans all folders by itself.
    if (!work.daemon.stdout.includes('The process stood still'))
      expect(after?.lastScan).toEqual(before?.lastScan);
    expect(work.collectionsOf('kept/a.txt')).toEqual(['kept']);
    work.drop('added/later.txt');
    work.drop('kept/later.txt');
    await work.confirmed('added/later.txt', 'kept/later.txt');
  });

  it('lets a folder go that was removed: what waits there is never pushed, and back again nothing is pushed twice', async () => {
    const both = { folders: [{ name: 'stays' }, { name: 'leaves' }] };
    work.drop('leaves/known.txt');
    await has('stays', 'leaves');
    await work.confirmed('leaves/known.txt');
    await work.ask('pause');
    work.drop('leaves/waits.txt');
    await until(async () => (await work.why('leaves/waits.txt'))?.verdict === 'pending', 'it waits');
    work.configure({ folders: [{ name: 'stays' }] });
    expect((await work.run('reload')).stdout).toBe(`folder leaves (${work.directory}/leaves): removed\n`);
    expect((await work.why('leaves/waits.txt'))?.verdict).toBe('outside');
    await work.ask('resume');
    work.drop('stays/after.txt');
    work.drop('leaves/unseen.txt');
    await work.confirmed('stays/after.txt');
    expect(work.collectionsOf('leaves/waits.txt')).toEqual([]);
    work.configure(both);
    await work.hangUp();
    await work.confirmed('leaves/known.txt', 'leaves/waits.txt', 'leaves/unseen.txt');
    expect(work.collectionsOf('leaves/known.txt')).toEqual(['leaves']);
    expect(work.collectionsOf('leaves/waits.txt')).toEqual(['leaves']);
  });

  it('pushes the documents of a folder again when their collection changed, and those alone', async () => {
    work.drop('plain/a.txt');
    work.drop('ruled/n.md');
    work.drop('ruled/n.txt');
    await has('plain', 'ruled');
    await work.confirmed('plain/a.txt', 'ruled/n.md', 'ruled/n.txt');
    const rules = [{ match: '*.md', collection: 'markdown' }];
    work.configure({ folders: [{ name: 'plain' }, { name: 'ruled', rules }] });
    const report = await work.ask<ReloadReport>('reload');
    expect(report).toEqual({ changes: ['folder ruled: rules changed'], restart: [] });
    const shown = () => work.peer.peerdoc(work.url('ruled/n.md'));
    await until(async () => (await shown())?.collections[0] === 'markdown', 'it moved');
    await until(async () => (await work.why('ruled/n.md'))?.verdict === 'confirmed', 'confirmed');
    expect(work.collectionsOf('ruled/n.md')).toEqual(['ruled', 'markdown']);
    expect(work.collectionsOf('ruled/n.txt')).toEqual(['ruled']);
    expect(work.collectionsOf('plain/a.txt')).toEqual(['plain']);
  });

  it('follows a folder to another path', async () => {
    work.drop('travels/a.txt');
    work.drop('moved/b.txt');
    await has('travels');
    await work.confirmed('travels/a.txt');
    const gone = async () => (await work.status()).items.gone;
    const before = await gone();
    work.configure({ folders: [{ name: 'travels', path: join(work.directory, 'moved') }] });
    await work.hangUp();
    await work.confirmed('moved/b.txt');
    await until(async () => (await gone()) === before + 1, 'what is not at the new path is gone');
  });

  it('renames a folder while its files travel: the new collection comes to the peer last', async () => {
    let [isReleased, cameEarly] = [false, false];
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    onTestFinished(() => {
      work.proxy.behaviour = well;
      release();
    });
    work.proxy.behaviour = async (call) => {
      if (call.items[0]?.collection === 'named') await released;
      else cameEarly ||= !isReleased && call.urls.includes(work.url('named/a.txt'));
      return call.forward();
    };
    const pushed = work.proxy.pushes.length;
    work.drop('named/a.txt');
    await has('named');
    await until(() => work.proxy.pushes.length > pushed, 'it is on its way');
    const path = join(work.directory, 'named');
    work.configure({ folders: [{ name: 'renamed', path, url: work.url('named/') }] });
    await work.hangUp();
    work.drop('named/b.txt');
    await work.confirmed('named/b.txt');
    expect(cameEarly).toBe(false);
    isReleased = true;
    release();
    await work.confirmed('named/a.txt');
    expect(work.collectionsOf('named/a.txt')).toEqual(['named', 'renamed']);
    expect((await work.peer.peerdoc(work.url('named/a.txt')))?.collections).toEqual(['renamed']);
  });

  it('changes nothing when the configuration is wrong, and says all that is', async () => {
    await has('steady');
    const said = listening();
    const good = readFileSync(work.config, 'utf8');
    const wrong = { ...JSON.parse(good), push: { concurrency: 0 }, watch: { rescan: 'often' }, folders: [] };
    writeFileSync(work.config, JSON.stringify(wrong));
    await work.hangUp();
    for (const part of ['reload-failed', 'push.concurrency', 'watch.rescan', 'folders', 'goes on as before'])
      expect(said()).toContain(part);
    const refused = { code: 'CONFIG_INVALID', message: expect.stringContaining('push.concurrency') };
    expect((await work.status()).configuration).toMatchObject({ refused });
    const asked = await work.run('reload');
    expect(asked).toMatchObject({ code: 2, stdout: '' });
    for (const part of ['push.concurrency', 'watch.rescan', 'A running daemon goes on as before.'])
      expect(asked.stderr).toContain(part);
    expect(await work.run('status')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('peersync runs'),
      stderr: expect.stringContaining('push.concurrency'),
    });
    expect(await work.run('why', 'steady/b.txt')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Folder steady takes it'),
    });
    expect(await work.run('mirror')).toMatchObject({ code: 0 });
    work.drop('steady/a.txt');
    await work.confirmed('steady/a.txt');
    writeFileSync(work.config, good);
    const told = (await work.run('status')).stdout;
    expect(told).toMatch(/^config +The changed configuration was refused.* problems: .*push\.concurrency/m);
    expect((await work.run('reload')).stdout).toBe('Nothing changed.\n');
    expect((await work.status()).configuration).not.toHaveProperty('refused');
  });

  it('takes nothing of it when a secret or certificate that it names cannot be read', async () => {
    await has('alone');
    const section = work.peer.section(work.proxy.url);
    const folders = [{ name: 'alone' }, { name: 'another' }];
    work.configure({
      peer: { ...section, auth: { username: 'admin', password: { file: '/nowhere/password' } } },
      folders,
      status: { listen: '127.0.0.1:0', token: { env: 'NOT_SET_ANYWHERE' } },
    });
    const { code, stderr } = await work.run('reload');
    expect(code).toBe(2);
    expect(stderr).toContain('/nowhere/password');
    expect(stderr).toContain('NOT_SET_ANYWHERE');
    work.configure({ peer: { ...section, tls: { ca: '/nowhere/ca.pem' } }, folders });
    const certificate = await work.run('reload');
    expect(certificate.code).toBe(2);
    expect(certificate.stderr).toContain('/nowhere/ca.pem');
    expect((await work.status()).folders.map(({ name }) => name)).toEqual(['alone']);
  });

  it('names what waits for a restart until it is not so any more, and does the rest', async () => {
    await has('first');
    const before = readFileSync(work.config, 'utf8');
    const peer = { ...work.peer.section(work.proxy.url), maxAnswer: '1 MiB' };
    work.configure({ peer, folders: [{ name: 'first' }, { name: 'second' }] });
    const { code, stdout } = await work.run('reload');
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `folder second (${work.directory}/second): added\npeer.maxAnswer: takes effect only by a restart\n`,
    });
    expect((await work.run('status')).stdout).toMatch(/^restart +.*peer\.maxAnswer\.$/m);
    work.drop('second/n.txt');
    await work.confirmed('second/n.txt');
    await work.hangUp();
    expect((await work.status()).restart).toEqual(['peer.maxAnswer']);
    writeFileSync(work.config, before);
    await work.hangUp();
    expect((await work.status()).restart).toBeUndefined();
  });

  it('takes hints, rates, the audit and the level of its log at once', async () => {
    work.drop('hinted/a.txt');
    await has('hinted');
    await work.confirmed('hinted/a.txt');
    const said = listening();
    const watch = async () => (await work.status()).folders[0]?.watch?.state;
    await until(async () => (await watch()) === 'watching', 'it watches');
    const lookups = work.proxy.lookups.length;
    work.configure({
      folders: [{ name: 'hinted' }],
      ...{ watch: { hints: false, rescan: '1s' }, push: { concurrency: 9 } },
    });
    const config = JSON.parse(readFileSync(work.config, 'utf8'));
    writeFileSync(
      work.config,
      JSON.stringify({ ...config, log: { level: 'debug' }, audit: { every: '1s' } }),
    );
    await work.hangUp();
    await until(async () => (await watch()) === 'unwatched', 'hints are off');
    // 9 pushes and 16 look-ups.
    expect((await work.status()).peer.queue?.concurrency.max).toBe(25);
    await until(() => work.proxy.lookups.length > lookups + 1, 'it is looked up again and again');
    work.drop('hinted/by-rescan.txt');
    await work.confirmed('hinted/by-rescan.txt');
    expect(said()).toContain('"level":20');
  });

  it('takes up mirrors that were added, changed and removed, and the file of a removed one stays', async () => {
    work.drop('cited/a.txt');
    await has('cited');
    await work.confirmed('cited/a.txt');
    const folders = [{ name: 'cited' }];
    const file = (name: string) => join(work.directory, 'mirror', name, 'a.txt.json');
    const citations = (name: string) => ({
      folders,
      mirror: { citations: [{ folder: 'cited', every: '1s', path: `${name}/{path}.json` }] },
    });
    work.configure(citations('first'));
    await work.hangUp();
    await until(() => existsSync(file('first')), 'the first file');
    work.configure(citations('second'));
    await work.hangUp();
    await until(() => existsSync(file('second')), 'the second file');
    expect((await work.status()).mirrors).toHaveLength(1);
    work.configure({ folders });
    await work.hangUp();
    expect((await work.status()).mirrors).toEqual([]);
    expect(existsSync(file('second'))).toBe(true);
  });
});

describe('a daemon that reads its configuration anew', { timeout: 240_000 }, () => {
  it('reads the password anew, and asks a peer at once that refused the one before', async () => {
    const work = await AtWork.begin();
    const password = join(work.directory, 'password');
    writeFileSync(password, 'wrong');
    const auth = { username: 'admin', password: { file: password } };
    work.configure({ peer: { url: work.proxy.url, auth } });
    work.drop('inbox/a.txt');
    await work.start();
    const circuit = async () => (await work.status()).peer.queue?.circuit;
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
    const away = async () => (await work.status()).peer.queue?.circuit.reason?.kind === 'unreachable';
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
    const lock = await lockState(join(work.directory, 'state'), { clock: systemClock });
    const { code, stderr } = await work.run('reload');
    expect(code).toBe(1);
    expect(stderr).toContain(`(pid ${process.pid} on ${hostname()}) does not take commands now`);
    await lock.release();
  });
});
