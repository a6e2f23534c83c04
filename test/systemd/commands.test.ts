import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { peersync } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { systemTool } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';

/** A systemctl that does this, as part of an environment. */
const systemctl = (script: string, more: object = {}) => ({
  ...systemTool('systemctl', script),
  ...more,
});

/** A configuration in a directory of its own, which is also where a user's units stand. */
function setUp(version: number, auth?: object, more: object = {}) {
  const directory = temporaryDirectory();
  const peer = auth === undefined ? { url: 'embedded' } : { url: 'https://peer.example.org', auth };
  const path = writeConfig(directory, { peer, ...more });
  const env = systemctl(`echo "systemd ${version} (${version}.1)"`, { XDG_CONFIG_HOME: directory });
  const run = (...words: string[]) => peersync(['service', ...words], { env });
  const install = (...words: string[]) => run('install', '-c', path, ...words);
  return { directory, run, install };
}

/** Matches the result of a failed command. */
const failed = (code: number, part: string) => ({
  code,
  stderr: expect.stringContaining(part) as unknown,
});

describe('service install', () => {
  it('shows with --dry-run the steps for a user, and performs none', async () => {
    const auth = { username: 'admin', password: { credential: 'secret' } };
    const { directory, run, install } = setUp(255, auth, {
      status: { token: { credential: 'token' } },
    });
    const words = ['--user', '--name', 'docs', '--dry-run'];
    const { code, stdout, stderr } = await install(...words);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const part of [
      `would write ${directory}/systemd/user/peersync@.service:\n`,
      `would write ${directory}/systemd/user/peersync@docs.service.d/50-installed.conf:\n`,
      `LoadCredential=secret:${directory}/peersync/docs.secret\n`,
      'RestartSteps=6',
      `would make the directory ${directory}/state\n`,
      'would run systemctl --user restart peersync@docs.service\n',
      `! Put the peer's password into ${directory}/peersync/docs.secret`,
      `! Put the token of the status page into ${directory}/peersync/docs.token`,
    ])
      expect(stdout).toContain(part);
    expect(stdout).toMatch(/Nothing was done\.\n$/);
    const elsewhere = await install(...words, '--credential-file', '/etc/elsewhere');
    expect(elsewhere.stdout).toContain('LoadCredential=secret:/etc/elsewhere\n');
    expect(elsewhere.stdout).toContain(`LoadCredential=token:${directory}/peersync/docs.token\n`);
    const uninstalled = await run('uninstall', '--user', '--name', 'docs');
    expect(uninstalled).toMatchObject(failed(1, 'was not installed by'));
  });

  it.each([
    [['--name', '../x'], '--name'],
    [['--user', '--run-as', 'ada'], ''],
    [['--run-as', 'a b'], '--run-as'],
    [['--dry-run'], 'folders'],
  ])('refuses impossible options with a reason: %j', async (words, part) => {
    const { directory, install } = setUp(252);
    if (part === 'folders') writeFileSync(join(directory, 'config.json'), '{}');
    const result = await install(...words);
    expect(result).toMatchObject(failed(2, part));
    expect(result.stderr).not.toContain('should not have happened');
  });

  it('shows the steps for a worker: a unit of its own, and no directory that is written', async () => {
    const fleet = { redis: 'redis://10.0.0.5', password: { credential: 'redis-password' } };
    const { directory, install } = setUp(252, undefined, { fleet });
    const { code, stdout, stderr } = await install('--worker', '--dry-run');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const units = '/etc/systemd/system';
    for (const part of [
      `would write ${units}/peersync-worker@.service:\n`,
      `would write ${units}/peersync-worker@config.service.d/50-installed.conf:\n`,
      'would write /etc/sysusers.d/peersync.conf:\n',
      'LoadCredential=redis-password:/etc/peersync/redis-password\n',
      'would run systemctl restart peersync-worker@config.service\n',
      '! Put the password of Redis into /etc/peersync/redis-password',
    ])
      expect(stdout).toContain(part);
    expect(stdout).toMatch(/ExecStart=.*"worker" "--config" ".*config\.json"/);
    expect(stdout).not.toContain(`would make the directory ${directory}`);
    const named = await install('--worker', '--name', 'docs', '--dry-run');
    expect(named.stdout).toContain('restart peersync-worker@docs.service\n');
    expect(named.stdout).toContain('LoadCredential=redis-password:/etc/peersync/docs.redis-pass');
  });

  it('refuses a worker of a user, and one whose configuration names no Redis', async () => {
    const { install } = setUp(252);
    expect(await install('--worker', '--user')).toMatchObject(failed(2, '--user: a worker is'));
    expect(await install('--worker', '--dry-run')).toMatchObject(failed(2, 'has no `fleet`'));
  });

  it('changes only files that it wrote', async () => {
    const { directory, install } = setUp(252);
    const unit = join(directory, 'systemd/user/peersync.service');
    mkdirSync(join(directory, 'systemd/user'), { recursive: true });
    writeFileSync(unit, '[Service]\n');
    expect(await install('--user', '--dry-run')).toMatchObject(
      failed(1, `${unit} is there already`),
    );
  });
});

describe('service status', () => {
  const status = (script: string, ...words: string[]) =>
    peersync(['service', 'status', ...words], { env: systemctl(script) });

  it('shows the status of systemd', async () => {
    const shown =
      'LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=watchdog\nMainPID=0\nNRestarts=3';
    const { code, stdout } = await status(`echo '${shown}'`, '--json');
    expect(code).toBe(1);
    const known = { unit: 'peersync.service', active: 'failed', result: 'watchdog', restarts: 3 };
    expect(JSON.parse(stdout)).toMatchObject(known);
    expect((await status(`echo '${shown}'`)).stdout).toMatch(/^result +watchdog$/m);
  });

  it.skipIf(existsSync('/run/systemd/system'))('reports that there is no systemd', async () => {
    const result = await status('echo "System has not been booted with systemd." >&2; exit 1');
    expect(result).toMatchObject(
      failed(1, 'This system was not started by systemd.\n  Start `peersync run` by'),
    );
  });

  it('names the install command for a missing unit, and reports a missing systemctl', async () => {
    const none = await peersync(['service', 'status'], { env: { PATH: temporaryDirectory() } });
    expect(none).toMatchObject(failed(1, 'The program systemctl is not there.'));
    const stdout = 'peersync.service is not installed; `peersync service install` does that.\n';
    expect(await status(`printf 'LoadState=not-found\\nActiveState=inactive\\n'`)).toMatchObject({
      code: 1,
      stdout,
    });
  });
});
