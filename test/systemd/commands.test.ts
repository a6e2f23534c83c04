import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { peersync } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { systemTool } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';

const config = (auth?: object, more: object = {}): { directory: string; path: string } => {
  const directory = temporaryDirectory();
  const peer = auth === undefined ? { url: 'embedded' } : { url: 'https://peer.example.org', auth };
  return { directory, path: writeConfig(directory, { peer, ...more }) };
};

describe('service install', () => {
  it('shows with --dry-run what it would do for a user, and does not do it', async () => {
    const { directory, path } = config(
      { username: 'admin', password: { credential: 'secret' } },
      { status: { token: { credential: 'token' } } },
    );
    const env = { ...systemTool('systemctl', 'echo "systemd 255 (255.1)"'), XDG_CONFIG_HOME: directory };
    const words = ['service', 'install', '--user', '--name', 'docs', '--dry-run', '-c', path];
    const { code, stdout, stderr } = await peersync(words, { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`would write ${directory}/systemd/user/peersync@.service:\n`);
    expect(stdout).toContain(
      `would write ${directory}/systemd/user/peersync@docs.service.d/50-installed.conf:\n`,
    );
    expect(stdout).toContain(`LoadCredential=secret:${directory}/peersync/docs.secret\n`);
    expect(stdout).toContain('RestartSteps=6');
    expect(stdout).toContain(`would make the directory ${directory}/state\n`);
    expect(stdout).toContain('would run systemctl --user restart peersync@docs.service\n');
    expect(stdout).toContain(`! Put the peer's password into ${directory}/peersync/docs.secret`);
    expect(stdout).toContain(`! Put the token of the status page into ${directory}/peersync/docs.token`);
    const elsewhere = await peersync([...words, '--credential-file', '/etc/elsewhere'], { env });
    expect(elsewhere.stdout).toContain('LoadCredential=secret:/etc/elsewhere\n');
    expect(elsewhere.stdout).toContain(`LoadCredential=token:${directory}/peersync/docs.token\n`);
    expect(stdout).toMatch(/Nothing was done\.\n$/);
    expect(await peersync(['service', 'uninstall', '--user', '--name', 'docs'], { env })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('was not installed by'),
    });
  });

  it('refuses in words what cannot be: names, users, a wrong configuration, no systemd', async () => {
    const { directory, path } = config();
    const env = systemTool('systemctl', 'echo "systemd 252"');
    const refused = async (...words: string[]) => {
      const { code, stderr } = await peersync(['service', 'install', '-c', path, ...words], { env });
      expect(stderr).not.toContain('should not have happened');
      return { code, stderr };
    };
    expect(await refused('--name', '../x')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--name'),
    });
    expect(await refused('--user', '--run-as', 'ada')).toMatchObject({ code: 2 });
    expect(await refused('--run-as', 'a b')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--run-as'),
    });
    writeFileSync(join(directory, 'config.json'), '{}');
    expect(await refused('--dry-run')).toMatchObject({ code: 2, stderr: expect.stringContaining('folders') });
    const nowhere = temporaryDirectory();
    const none = await peersync(['service', 'status'], { env: { PATH: nowhere } });
    expect(none).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The program systemctl is not there.'),
    });
  });

  it('takes nothing but what it wrote for its own', async () => {
    const { directory, path } = config();
    const env = { ...systemTool('systemctl', 'echo "systemd 252"'), XDG_CONFIG_HOME: directory };
    const unit = join(directory, 'systemd/user/peersync.service');
    mkdirSync(join(directory, 'systemd/user'), { recursive: true });
    writeFileSync(unit, '[Service]\n');
    const words = ['service', 'install', '--user', '--dry-run', '-c', path];
    expect(await peersync(words, { env })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${unit} is there already`),
    });
  });
});

describe('service status', () => {
  it('tells what systemd knows', async () => {
    const shown =
      'LoadState=loaded\\nActiveState=failed\\nSubState=failed\\nResult=watchdog\\nMainPID=0\\nNRestarts=3\\n';
    const env = systemTool('systemctl', `printf '${shown}'`);
    const { code, stdout } = await peersync(['service', 'status', '--json'], { env });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      unit: 'peersync.service',
      active: 'failed',
      result: 'watchdog',
      restarts: 3,
    });
    expect((await peersync(['service', 'status'], { env })).stdout).toMatch(/^result +watchdog$/m);
  });

  it.skipIf(existsSync('/run/systemd/system'))('says where no systemd is that there is none', async () => {
    const env = systemTool('systemctl', 'echo "System has not been booted with systemd." >&2; exit 1');
    expect(await peersync(['service', 'status'], { env })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('This system was not started by systemd.\n  Start `peersync run` by'),
    });
  });

  it('says how to install what is not', async () => {
    const env = systemTool('systemctl', `printf 'LoadState=not-found\\nActiveState=inactive\\n'`);
    expect(await peersync(['service', 'status'], { env })).toMatchObject({
      code: 1,
      stdout: 'peersync.service is not installed; `peersync service install` does that.\n',
    });
  });
});
