import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Running } from '../support/cli.js';
import { Site } from '../support/site.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

function can(command: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'pipe' });
    return true;
  } catch {
    return false;
  }
}

const mounts = (() => {
  const path = temporaryDirectory('file');
  return can('mount', '-t', 'tmpfs', 'tmpfs', path) && can('umount', path);
})();
const unshares = can('unshare', '--uts', '--pid', '--fork', 'true');
const skipped = (is: boolean, what: string) => (is ? '' : ` (skipped: ${what} here)`);

/** A site whose daemon has confirmed a dozen files. */
async function confirmedSite(prepare: (site: Site) => void = () => {}): Promise<Site> {
  const site = await Site.begin();
  prepare(site);
  site.dropSome('a');
  await site.start();
  await site.allConfirmed();
  return site;
}

/** The daemon ends by itself, and says why. */
async function expectLost(site: Site): Promise<void> {
  const { code, stderr, stdout } = await site.daemon.ended;
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining(site.stateDirectory),
  });
  expect(stderr).toMatch(
    /was removed, unmounted or taken over while peersync ran\.\n.*start peersync again/i,
  );
  expect(stdout).toContain('What is known was written anew');
}

/** The next start knows what was known, and pushes nothing. */
async function expectKnown(site: Site): Promise<void> {
  const pushed = site.collectionsOf('inbox/a0.txt').length;
  await site.start();
  await site.allConfirmed();
  site.drop('inbox/new.txt');
  await site.confirmed('inbox/new.txt');
  expect(site.collectionsOf('inbox/a0.txt')).toHaveLength(pushed);
  expect((await site.status()).repairs).toEqual([]);
}

describe('a state directory that disappears under a running daemon', () => {
  it('ends the daemon with a reason, is written anew, and the next start continues from there', async () => {
    const site = await confirmedSite();
    rmSync(site.stateDirectory, { recursive: true });
    await expectLost(site);
    await expectKnown(site);
  });

  it.skipIf(!mounts)(
    `by its mount does the same${skipped(mounts, 'no tmpfs can be mounted')}`,
    async () => {
      const site = await confirmedSite(({ stateDirectory }) => {
        mkdirSync(stateDirectory, { mode: 0o700 });
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=700', 'tmpfs', stateDirectory]);
      });
      execFileSync('umount', ['-l', site.stateDirectory]);
      await expectLost(site);
      await expectKnown(site);
    },
  );

  it('is left to a second daemon that started meanwhile', async () => {
    const site = await confirmedSite();
    const first = site.daemon;
    // Stopped, it cannot be the first to notice.
    first.child.kill('SIGSTOP');
    rmSync(site.stateDirectory, { recursive: true });
    await site.start();
    first.child.kill('SIGCONT');
    const { code, stdout } = await first.ended;
    expect(code).toBe(1);
    expect(stdout).toMatch(/could not be written anew .*Another peersync/);
    expect(site.daemon.child.exitCode).toBeNull();
  });

  it('without its journals is written anew', async () => {
    const site = await confirmedSite();
    for (const generation of [1, 2])
      rmSync(join(site.stateDirectory, `journal-${generation}`), { force: true });
    await site.daemon.says('everything known is written anew');
    await until(async () => (await site.json('list')).lines.length === 12, 'the state is whole');
    await site.daemon.kill('SIGKILL');
    await expectKnown(site);
  });
});

/** Starts a daemon in PID and UTS namespaces of its own, as a container does. */
function daemonInContainer(site: Site, host: string): Running {
  const program = join(import.meta.dirname, '../support/in-container.mjs');
  const env = { CONTAINER_HOSTNAME: host };
  return new Running(['run', '--config', site.config], { program, env, life: 'test' });
}

describe(`the lock of the state${skipped(unshares, 'namespaces cannot be made')}`, () => {
  it.skipIf(!unshares).each([
    ['with the same host name', hostname()],
    ['with another host name', 'in-a-container'],
  ])(
    'keeps out a second daemon in another PID namespace %s, even while the first is stopped',
    async (_name, host) => {
      const site = await confirmedSite();
      site.daemon.child.kill('SIGSTOP');
      const refused = await daemonInContainer(site, host).ended;
      site.daemon.child.kill('SIGCONT');
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain('uses the state directory');
      await site.status();
    },
  );

  it.skipIf(!unshares)(
    'is available at once after a kill -9 under another host name and in another PID namespace',
    async () => {
      const site = await Site.begin();
      site.dropSome('a');
      const first = daemonInContainer(site, 'in-a-container');
      await first.says('confirmed');
      await first.kill('SIGKILL');
      await site.start();
      await site.allConfirmed();
    },
  );
});
