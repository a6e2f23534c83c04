import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  assertOurs,
  dropIn,
  isOurs,
  type Runs,
  Steps,
  unitCommand,
  unitWord,
} from '../../src/commands/service/site.js';
import { checkConfig } from '../../src/config/load.js';
import { temporaryDirectory } from '../support/temp.js';

/** The drop-in of an installation. */
async function dropInOf(config: object, parts: Partial<Runs> = {}): Promise<string> {
  const configPath = parts.configPath ?? '/etc/peersync/config.json';
  const program = '/usr/lib/node_modules/peersync/dist/cli.js';
  return dropIn({
    scope: 'system',
    role: 'daemon',
    node: '/usr/bin/node',
    program,
    programRoot: '/usr/lib/node_modules',
    credentialFile: (name) => `/etc/peersync/${name}`,
    systemd: 252,
    ...parts,
    configPath,
    config: await checkConfig(config, configPath),
  });
}

const folders = [{ path: '/srv/docs', collection: 'c' }];
const state = { dir: '/var/lib/peersync/state' };
const remote = { peer: { url: 'https://peer.example.org' }, state, folders };
const auth = { username: 'admin', password: { credential: 'peer-password' } };
const withAuth = { ...remote, peer: { ...remote.peer, auth } };
const unsafe = expect.objectContaining({ code: 'SERVICE_WORD' }) as Error;

/** The lines of a drop-in that begin so. */
const linesOf = (text: string, begin: string) =>
  text.split('\n').filter((line) => line.startsWith(begin));

it('words in a unit are quoted, so that systemd does not interpret them', () => {
  expect(unitWord('/srv/a b')).toBe('"/srv/a b"');
  expect(unitWord('/srv/100%n "x" \\y')).toBe('"/srv/100%%n \\"x\\" \\\\y"');
  expect(() => unitWord('/srv/a\nExecStart=/bin/evil')).toThrow(unsafe);
  expect(unitCommand(['/usr/bin/node', '/a/$HOME', 'run'])).toBe(
    '":/usr/bin/node" "/a/$HOME" "run"',
  );
});

describe('the drop-in of an installation', () => {
  it('contains the program, the files that it reads and the directories that it writes', async () => {
    expect(await dropInOf(remote)).toBe(`[Service]
ExecStart=
ExecStart=":/usr/bin/node" "/usr/lib/node_modules/peersync/dist/cli.js" "run" "--config" "/etc/peersync/config.json"
ExecReload=
ExecReload=":/usr/bin/node" "/usr/lib/node_modules/peersync/dist/cli.js" "reload" "--config" "/etc/peersync/config.json"
ReadOnlyPaths="-/srv/docs"
ReadWritePaths="/var/lib/peersync/state"
`);
  });

  it('grants access to paths in homes and temporary directories', async () => {
    const node = '/root/.nvm/versions/node/v22.0.0/bin/node';
    const mirror = { root: '/tmp/mirrored', shares: [{ data: 'x.csv' }] };
    const config = {
      peer: { url: 'embedded' },
      folders: [{ path: '/home/ada/notes', collection: 'c' }],
      mirror,
    };
    const configPath = '/home/ada/sync/config.json';
    const text = await dropInOf(config, { node, programRoot: '/home/ada/peersync', configPath });
    const read = ['/home/ada/sync', node, '/home/ada/peersync', '/home/ada/notes'];
    const bound = read.map((path) => `BindReadOnlyPaths="-${path}"`);
    expect(linesOf(text, 'BindReadOnlyPaths=')).toEqual(bound);
    const written = ['/home/ada/sync/data/state', '/home/ada/sync/data/peer', '/tmp/mirrored'];
    expect(linesOf(text, 'BindPaths=')).toEqual(written.map((path) => `BindPaths="${path}"`));
  });

  it('loads the credential of the peer, runs as the given user, and restarts with growing delays if systemd supports it', async () => {
    const parts = { runAs: 'ada', systemd: 255, credentialFile: () => '/etc/100% mine' };
    const text = await dropInOf(withAuth, parts);
    expect(text).toContain('\nLoadCredential=peer-password:/etc/100%% mine\n');
    expect(text).toContain('\nUser=ada\nGroup=\n');
    expect(text).toContain('\nRestartSteps=6\nRestartMaxDelaySec=5min\n');
    expect(await dropInOf(withAuth)).not.toMatch(/RestartSteps|User=/);
    for (const path of ['/etc/x\nUser=root', '/etc/x\\', '/etc/x '])
      await expect(dropInOf(withAuth, { credentialFile: () => path })).rejects.toThrow(unsafe);
  });

  it.each([
    [
      'another credential',
      { credential: 'page-token' },
      'LoadCredential=page-token:/etc/peersync/page-token\n',
    ],
    ['that of the peer, once', { credential: 'peer-password' }, ''],
    ['a file', { file: '/home/ada/token' }, 'BindReadOnlyPaths="-/home/ada/token"\n'],
  ])('grants access to the token of the status page: %s', async (_, token, more) => {
    const text = await dropInOf({ ...withAuth, status: { token } });
    const lines = linesOf(text, 'LoadCredential=').concat(linesOf(text, 'BindReadOnlyPaths='));
    const password = 'LoadCredential=peer-password:/etc/peersync/peer-password\n';
    expect(lines.map((line) => `${line}\n`).join('')).toBe(password + more);
  });

  it('of a worker writes nothing, and reads only what a worker needs', async () => {
    const fleet = {
      redis: 'rediss://redis.example.org',
      ca: '/home/ada/ca.pem',
      password: { credential: 'redis-password' },
    };
    const status = { token: { credential: 'page-token' } };
    const text = await dropInOf({ ...withAuth, status, fleet }, { role: 'worker' });
    expect(text).toBe(`[Service]
ExecStart=
ExecStart=":/usr/bin/node" "/usr/lib/node_modules/peersync/dist/cli.js" "worker" "--config" "/etc/peersync/config.json"
LoadCredential=redis-password:/etc/peersync/redis-password
BindReadOnlyPaths="-/home/ada/ca.pem"
ReadOnlyPaths="-/srv/docs"
`);
    const pushing = { ...withAuth, fleet: { ...fleet, share: ['extract', 'push'] } };
    const credentials = linesOf(await dropInOf(pushing, { role: 'worker' }), 'LoadCredential=');
    expect(credentials.map((line) => line.split(/[=:]/)[1])).toEqual([
      'redis-password',
      'peer-password',
    ]);
    // The daemon needs the password of Redis, too.
    expect(linesOf(await dropInOf({ ...remote, fleet }), 'LoadCredential=')).toHaveLength(1);
  });

  it('is valid for systemd', async (context) => {
    if (spawnSync('systemd-analyze', ['--version']).status !== 0)
      context.skip('systemd-analyze is not installed');
    const odd = '/srv/my "docs" %n $HOME \\x ü';
    const config = { ...remote, folders: [{ name: 'odd', path: odd, collection: 'c' }] };
    const text = await dropInOf(config, { node: '/bin/sh', programRoot: odd });
    const unit = join(temporaryDirectory(), 'peersync-test.service');
    const service = text.replace('ExecStart=\n', '').replace('ExecReload=\n', '');
    writeFileSync(unit, `[Unit]\nDescription=x\n${service}`);
    const verified = spawnSync('systemd-analyze', ['verify', '--man=no', unit], {
      encoding: 'utf8',
    });
    expect(verified).toMatchObject({ stderr: '', status: 0 });
  });
});

describe('an installation', () => {
  const steps = new Steps({ dryRun: false, json: true });
  /** Makes a directory. @returns whether it was told that it did */
  const makes = async (path: string, owner?: string) => {
    const before = steps.did.length;
    await steps.directory(path, 0o700, owner);
    return steps.did.length > before;
  };

  it('replaces and removes its own files, and leaves other files alone', async () => {
    const directory = temporaryDirectory();
    const file = join(directory, 'peersync.service.d/50-installed.conf');
    await assertOurs(file);
    await steps.write(file, '[Service]\n');
    await assertOurs(file);
    expect(await isOurs(file)).toBe(true);
    await steps.remove(file);
    expect(() => readFileSync(join(directory, 'peersync.service.d'))).toThrow('ENOENT');
    const foreign = join(directory, 'peersync.service');
    writeFileSync(foreign, '[Service]\n');
    await expect(assertOurs(foreign)).rejects.toMatchObject({ code: 'SERVICE_FOREIGN' });
    expect(await isOurs(foreign)).toBe(false);
    // A directory of drop-ins in which somebody else has one stays.
    await steps.write(file, '');
    const mine = join(directory, 'peersync.service.d/mine.conf');
    writeFileSync(mine, '');
    await steps.remove(file);
    expect(readFileSync(mine, 'utf8')).toBe('');
  });

  it.skipIf(process.getuid?.() !== 0)(
    'installs for another user, and follows only links of root',
    async () => {
      const base = temporaryDirectory();
      const nobody = { uid: 65_534, gid: 65_534 };
      const make = (path: string) => makes(join(base, path), 'nobody');
      for (const name of ['home', 'secret', 'disk']) mkdirSync(join(base, name));
      symlinkSync('disk', join(base, 'link'));
      expect(await make('link/a/b')).toBe(true);
      for (const path of ['disk/a', 'disk/a/b'])
        expect(statSync(join(base, path))).toMatchObject(nobody);
      expect(statSync(join(base, 'disk')).uid).toBe(0);
      // Once, with those above it.
      expect(await make('link/a/b')).toBe(false);

      chownSync(join(base, 'home'), nobody.uid, nobody.gid);
      symlinkSync('../secret', join(base, 'home/mine'));
      await expect(make('home/mine/a')).rejects.toMatchObject({ code: 'SERVICE_FAILED' });
      lchownSync(join(base, 'home/mine'), nobody.uid, nobody.gid);
      await expect(make('home/mine/a')).rejects.toMatchObject({ code: 'SERVICE_FAILED' });
      // Everybody may create links here, as in /tmp.
      mkdirSync(join(base, 'shared'));
      chmodSync(join(base, 'shared'), 0o1777);
      symlinkSync('../secret', join(base, 'shared/theirs'));
      lchownSync(join(base, 'shared/theirs'), nobody.uid, nobody.gid);
      await expect(make('shared/theirs/a')).rejects.toMatchObject({ code: 'SERVICE_FAILED' });
      expect(readdirSync(join(base, 'secret'))).toEqual([]);
      expect(await make('home/other/a')).toBe(true);
      symlinkSync('round', join(base, 'round'));
      await expect(make('round/a')).rejects.toMatchObject({ code: 'SERVICE_FAILED' });
    },
  );
});
