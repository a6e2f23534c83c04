import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import type { ReloadReport } from '../../src/report/live.js';
import { lockState } from '../../src/state/directory.js';
import { makeCertificate } from '../support/certificate.js';
import { ScriptedPeer, well } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import { deferred, until } from '../support/wait.js';

/** Whether a process has a handler for SIGHUP. */
function catchesHangUp(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  const [, mask = '0'] =
    /^SigCgt:\s*(\w+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (BigInt(`0x${mask}`) & 1n) === 1n;
}

describe('a reload of a running daemon', () => {
  let site: Site;
  beforeAll(async () => {
    site = await Site.begin({}, 'file');
    await site.start();
  });
  afterAll(() => site.stop());

  const named = (...names: readonly string[]) => ({ folders: names.map((name) => ({ name })) });

  /** Each test begins with folders of its own, and those alone. */
  async function has(...names: readonly string[]): Promise<void> {
    site.configure(named(...names));
    await site.hangUp();
    expect((await site.status()).folders.map(({ name }) => name)).toEqual(names);
  }

  /** Returns a function that returns the output of the daemon since this call. */
  function listening(): () => string {
    const from = site.daemon.stdout.length;
    return () => site.daemon.stdout.slice(from);
  }

  it('starts an added folder, and leaves the others alone', async () => {
    site.drop('kept/a.txt');
    site.drop('added/n.txt');
    await has('kept');
    await site.confirmed('kept/a.txt');
    const watchOf = async (name: string) =>
      (await site.status()).folders.find((f) => f.name === name)?.watch;
    await until(async () => (await watchOf('kept'))?.state === 'watching', 'it watches');
    const before = await watchOf('kept');
    site.configure(named('kept', 'added'));
    await site.hangUp();
    await site.confirmed('added/n.txt');
    const after = await watchOf('kept');
    expect(after?.since).toEqual(before?.since);
    expect(after?.lastScan).toEqual(before?.lastScan);
    expect(site.collectionsOf('kept/a.txt')).toEqual(['kept']);
    site.drop('added/later.txt');
    site.drop('kept/later.txt');
    await site.confirmed('added/later.txt', 'kept/later.txt');
  });

  it('drops the pending files of a removed folder, and pushes nothing twice when the folder is back', async () => {
    site.drop('leaves/known.txt');
    await has('stays', 'leaves');
    await site.confirmed('leaves/known.txt');
    await site.ask('pause');
    site.drop('leaves/waits.txt');
    await site.becomes('leaves/waits.txt', 'pending');
    site.configure(named('stays'));
    expect((await site.run('reload')).stdout).toBe(
      `folder "leaves" (${site.path('leaves')}): removed\n`,
    );
    await site.becomes('leaves/waits.txt', 'outside');
    await site.ask('resume');
    site.drop('stays/after.txt');
    site.drop('leaves/unseen.txt');
    await site.confirmed('stays/after.txt');
    expect(site.collectionsOf('leaves/waits.txt')).toEqual([]);
    site.configure(named('stays', 'leaves'));
    await site.hangUp();
    await site.confirmed('leaves/known.txt', 'leaves/waits.txt', 'leaves/unseen.txt');
    expect(site.collectionsOf('leaves/known.txt')).toEqual(['leaves']);
    expect(site.collectionsOf('leaves/waits.txt')).toEqual(['leaves']);
  });

  it('pushes only the documents whose collection changed', async () => {
    for (const file of ['plain/a.txt', 'ruled/n.md', 'ruled/n.txt']) site.drop(file);
    await has('plain', 'ruled');
    await site.confirmed('plain/a.txt', 'ruled/n.md', 'ruled/n.txt');
    const rules = [{ match: '*.md', collection: 'markdown' }];
    site.configure({ folders: [{ name: 'plain' }, { name: 'ruled', rules }] });
    const report = await site.ask<ReloadReport>('reload');
    expect(report).toEqual({ changes: ['folder "ruled": rules changed'], restart: [] });
    const shown = () => site.peer.peerdoc(site.url('ruled/n.md'));
    await until(async () => (await shown())?.collections[0] === 'markdown', 'it moved');
    await site.becomes('ruled/n.md', 'confirmed');
    expect(site.collectionsOf('ruled/n.md')).toEqual(['ruled', 'markdown']);
    expect(site.collectionsOf('ruled/n.txt')).toEqual(['ruled']);
    expect(site.collectionsOf('plain/a.txt')).toEqual(['plain']);
  });

  it('applies another path of a folder', async () => {
    site.drop('travels/a.txt');
    site.drop('moved/b.txt');
    await has('travels');
    await site.confirmed('travels/a.txt');
    const gone = async () => {
      const { items } = await site.status();
      return items.gone + items.removing + items.removed;
    };
    const before = await gone();
    site.configure({ folders: [{ name: 'travels', path: site.path('moved') }] });
    await site.hangUp();
    await site.confirmed('moved/b.txt');
    await until(async () => (await gone()) === before + 1, 'what is not at the new path is gone');
  });

  it('renames a folder while its files are in flight: the new collection reaches the peer last', async () => {
    let [isReleased, cameEarly] = [false, false];
    const released = deferred();
    site.proxy.behaviour = async (call) => {
      if (call.items[0]?.collection === 'named') await released.promise;
      else cameEarly ||= !isReleased && call.urls.includes(site.url('named/a.txt'));
      return call.forward();
    };
    const pushed = site.proxy.pushes.length;
    site.drop('named/a.txt');
    await has('named');
    await until(() => site.proxy.pushes.length > pushed, 'it is on its way');
    const folder = { name: 'renamed', path: site.path('named'), url: site.url('named/') };
    site.configure({ folders: [folder] });
    await site.hangUp();
    site.drop('named/b.txt');
    await site.confirmed('named/b.txt');
    expect(cameEarly).toBe(false);
    isReleased = true;
    released.resolve();
    await site.confirmed('named/a.txt');
    site.proxy.behaviour = well;
    expect(site.collectionsOf('named/a.txt')).toEqual(['named', 'renamed']);
    await site.expectAllInPeer();
  });

  it('changes nothing if the configuration is wrong, and reports all errors', async () => {
    await has('steady');
    const lines = listening();
    const good = readFileSync(site.config, 'utf8');
    const wrong = {
      ...JSON.parse(good),
      push: { concurrency: 0 },
      watch: { rescan: 'often' },
      folders: [],
    };
    writeFileSync(site.config, JSON.stringify(wrong));
    await site.hangUp();
    for (const part of [
      'reload-failed',
      'push.concurrency',
      'watch.rescan',
      'folders',
      'everything continues as before',
    ])
      expect(lines()).toContain(part);
    const refused = {
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('push.concurrency'),
    };
    expect((await site.status()).configuration).toMatchObject({ refused });
    const asked = await site.run('reload');
    expect(asked).toMatchObject({ code: 2, stdout: '' });
    for (const part of [
      'push.concurrency',
      'watch.rescan',
      'If a daemon runs with this file, it goes on as before.',
    ])
      expect(asked.stderr).toContain(part);
    expect(await site.run('status')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('peersync runs'),
      stderr: expect.stringContaining('push.concurrency'),
    });
    expect(await site.run('why', 'steady/b.txt')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('Folder "steady" takes it'),
    });
    expect(await site.run('mirror')).toMatchObject({ code: 0 });
    site.drop('steady/a.txt');
    await site.confirmed('steady/a.txt');
    writeFileSync(site.config, good);
    const output = (await site.run('status')).stdout;
    expect(output).toMatch(
      /^config +The changed configuration was refused.* errors: .*push\.concurrency/m,
    );
    expect((await site.run('reload')).stdout).toBe('Nothing changed.\n');
    expect((await site.status()).configuration).not.toHaveProperty('refused');
  });

  it('changes nothing if a secret or certificate cannot be read', async () => {
    await has('alone');
    const auth = { username: 'admin', password: { file: '/nowhere/password' } };
    const status = { listen: '127.0.0.1:0', token: { env: 'NOT_SET_ANYWHERE' } };
    for (const [parts, ...missing] of [
      [{ peer: site.section({ auth }), status }, '/nowhere/password', 'NOT_SET_ANYWHERE'],
      [{ peer: site.section({ tls: { ca: '/nowhere/ca.pem' } }) }, '/nowhere/ca.pem'],
    ] as const) {
      site.configure({ ...named('alone', 'another'), ...parts });
      const { code, stderr } = await site.run('reload');
      expect(code).toBe(2);
      for (const part of missing) expect(stderr).toContain(part);
    }
    expect((await site.status()).folders.map(({ name }) => name)).toEqual(['alone']);
  });

  it('reports settings that need a restart as long as they do, and applies the others', async () => {
    await has('first');
    site.configure({ peer: site.section({ maxAnswer: '1 MiB' }), ...named('first', 'second') });
    expect(await site.run('reload')).toMatchObject({
      code: 0,
      stdout: `folder "second" (${site.path('second')}): added\npeer.maxAnswer: takes effect only by a restart\n`,
    });
    expect((await site.run('status')).stdout).toMatch(/^restart +.*peer\.maxAnswer\.$/m);
    site.drop('second/n.txt');
    await site.confirmed('second/n.txt');
    await site.hangUp();
    expect((await site.status()).restart).toEqual(['peer.maxAnswer']);
    await has('first');
    expect((await site.status()).restart).toBeUndefined();
  });

  it('applies hints, rates, the audit and the log level at once', async () => {
    site.drop('hinted/a.txt');
    await has('hinted');
    await site.confirmed('hinted/a.txt');
    const lines = listening();
    const watch = async () => (await site.status()).folders[0]?.watch?.state;
    await until(async () => (await watch()) === 'watching', 'it watches');
    const lookups = site.proxy.lookups.length;
    const watching = { hints: false, rescan: '1s' };
    site.configure({ ...named('hinted'), watch: watching, push: { concurrency: 9 } });
    const config = JSON.parse(readFileSync(site.config, 'utf8'));
    writeFileSync(
      site.config,
      JSON.stringify({ ...config, log: { level: 'debug' }, audit: { every: '1s' } }),
    );
    await site.hangUp();
    await until(async () => (await watch()) === 'unwatched', 'hints are off');
    // 9 pushes and 16 look-ups.
    expect((await site.status()).peer.queue?.concurrency.max).toBe(25);
    await until(() => site.proxy.lookups.length > lookups + 1, 'it is looked up again and again');
    site.drop('hinted/by-rescan.txt');
    await site.confirmed('hinted/by-rescan.txt');
    expect(lines()).toContain('"level":20');
  });

  it('applies added, changed and removed mirrors, and keeps the file of a removed one', async () => {
    site.drop('cited/a.txt');
    await has('cited');
    await site.confirmed('cited/a.txt');
    for (const name of ['first', 'second']) {
      const citations = [{ folder: 'cited', every: '1s', path: `${name}/{path}.json` }];
      site.configure({ ...named('cited'), mirror: { citations } });
      await site.hangUp();
      await until(() => existsSync(site.path(`mirror/${name}/a.txt.json`)), `the ${name} file`);
    }
    expect((await site.status()).mirrors).toHaveLength(1);
    await has('cited');
    expect((await site.status()).mirrors).toEqual([]);
    expect(existsSync(site.path('mirror/second/a.txt.json'))).toBe(true);
  });
});

describe('a reload', () => {
  it('reads the password again, and sends a request at once to a peer that refused the old one', async () => {
    const site = await Site.begin();
    const password = site.path('password');
    writeFileSync(password, 'wrong');
    const auth = { username: 'admin', password: { file: password } };
    site.configure({ peer: site.section({ auth }) });
    site.drop('inbox/a.txt');
    await site.start();
    const circuit = async () => (await site.status()).peer.queue?.circuit;
    let nextProbeAt = 0;
    const isFarAway = async () => {
      const now = await circuit();
      nextProbeAt = now?.nextProbeAt ?? 0;
      return now?.reason?.kind === 'denied' && nextProbeAt - Date.now() > 10_000;
    };
    await until(isFarAway, 'the password was refused again and again');
    writeFileSync(password, readFileSync(`${site.peer.data}/admin-password`));
    const report = await site.ask<ReloadReport>('reload');
    expect(report).toEqual({ changes: ['peer.auth: other credentials'], restart: [] });
    await until(async () => (await circuit())?.state === 'closed', 'the peer takes it');
    expect(Date.now()).toBeLessThan(nextProbeAt);
    await site.confirmed('inbox/a.txt');
    expect((await site.run('reload')).stdout).toBe('Nothing changed.\n');
  });

  it('reads the trusted certificates again: a renewed one needs no restart', async () => {
    const site = await Site.begin();
    const own = makeCertificate();
    const front = await ScriptedPeer.start(site.peer.url, { tls: own });
    const ca = site.path('ca.pem');
    writeFileSync(ca, own.cert);
    site.configure({ peer: site.section({ url: front.url, tls: { ca } }) });
    await site.start();
    site.drop('inbox/a.txt');
    await site.confirmed('inbox/a.txt');
    const renewed = makeCertificate();
    front.renewCertificate(renewed);
    front.breakConnections();
    site.drop('inbox/b.txt');
    const away = async () =>
      (await site.status()).peer.queue?.circuit.reason?.kind === 'unreachable';
    await until(away, 'the new certificate is not trusted');
    writeFileSync(ca, renewed.cert.slice(0, 200));
    const refused = await site.run('reload');
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('damaged or cut off'),
    });
    writeFileSync(ca, renewed.cert);
    expect((await site.run('reload')).stdout).toBe('peer.tls.ca: other certificates\n');
    await site.confirmed('inbox/b.txt');
    expect((await site.run('reload')).stdout).toBe('Nothing changed.\n');
  });

  it('a SIGHUP during the start does not end the daemon, and many do not disturb a stop', async () => {
    const site = await Site.begin();
    site.drop('inbox/a.txt');
    const starting = site.start();
    // Not before the process listens for it: a signal to a process that is being loaded ends that.
    await until(() => catchesHangUp(site.daemon.child.pid), 'it listens for the signal');
    site.daemon.child.kill('SIGHUP');
    await starting;
    await site.daemon.says('"event":"reloaded"');
    await site.confirmed('inbox/a.txt');
    for (let i = 0; i < 50; i += 1) {
      site.configure({
        folders: i % 2 === 0 ? [{ name: 'inbox' }] : [{ name: 'inbox' }, { name: 'notes' }],
      });
      site.daemon.child.kill('SIGHUP');
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect((await site.stop()).stdout).toContain('everything known is on disk');
  });

  it('fails with a reason if no daemon runs, or the process that holds the state takes no commands', async () => {
    const site = await Site.begin();
    const reload = async () => {
      const { code, stderr } = await site.run('reload');
      expect(code).toBe(1);
      return stderr;
    };
    expect(await reload()).toContain('No daemon runs with this configuration');
    mkdirSync(site.stateDirectory);
    expect(await reload()).toMatch(/none uses the state in .*\n {2}Start it with `peersync run`\./);
    const lock = await lockState(site.stateDirectory, { clock: systemClock });
    expect(await reload()).toContain(
      `(pid ${process.pid} on ${hostname()}) does not take commands now`,
    );
    await lock.release();
  });

  it('reports that the daemon uses another state directory than the file, with a hint', async () => {
    const site = await Site.begin();
    await site.start();
    const config = JSON.parse(readFileSync(site.config, 'utf8'));
    const elsewhere = site.path('elsewhere');
    writeFileSync(site.config, JSON.stringify({ ...config, state: { dir: elsewhere } }));
    const { code, stderr } = await site.run('reload');
    expect(code).toBe(1);
    expect(stderr).toContain(`there is no state in ${elsewhere}.`);
    expect(stderr).toContain('stop it, move that directory here, and start it again');
    await site.hangUp();
    expect((await site.status()).restart).toEqual(['state.dir']);
    await site.stop();
    renameSync(site.stateDirectory, elsewhere);
    await site.spawn().says('pushing to');
    await until(async () => (await site.run('reload')).code === 0, 'it can be asked');
  });
});
