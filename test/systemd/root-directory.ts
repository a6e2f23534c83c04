import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const PROGRAMS = ['debootstrap', 'systemd-nspawn', 'nsenter', 'setpriv', 'apt-get'];

/** Why no systemd can be booted here, or undefined when one can. */
export function whyNoSystemd(): string | undefined {
  if (process.platform !== 'linux') return 'this is no Linux';
  if (process.getuid?.() !== 0) return 'only root can boot a container';
  const missing = PROGRAMS.filter((program) => !isThere(program));
  if (missing.length > 0)
    return `not installed: ${missing.join(', ')} (debootstrap, systemd-container)`;
  return undefined;
}

function isThere(program: string): boolean {
  return ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].some(
    (directory) => existsSync(join(directory, program)),
  );
}

/**
 * A small Debian with systemd, as a directory; made once, which takes a minute, and kept in a
 * cache. Nobody writes to it.
 */
export function rootDirectory(): string {
  const suite =
    /^VERSION_CODENAME=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'stable';
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const root = join(cache, 'peersync', `systemd-${suite}-with-ocr-and-redis`);
  if (existsSync(root)) return root;
  const unfinished = `${root}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  const packages =
    'systemd,systemd-sysv,dbus,libpam-systemd,libstdc++6,tesseract-ocr,poppler-utils,redis-server';
  try {
    execFileSync(
      'debootstrap',
      ['--variant=minbase', `--include=${packages}`, suite, unfinished, mirrorOf(suite)],
      { stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 16 * 2 ** 20 },
    );
    if (!existsSync(root)) renameSync(unfinished, root);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return root;
}

/** Returns the package mirror that this machine uses. */
function mirrorOf(suite: string): string {
  const targets = execFileSync(
    'apt-get',
    ['indextargets', '--format', '$(RELEASE) $(COMPONENT) $(REPO_URI)', 'Created-By: Packages'],
    { encoding: 'utf8' },
  );
  const main = targets
    .split('\n')
    .map((line) => line.split(' '))
    .find(([release, component]) => release === suite && component === 'main');
  const uri = main?.[2];
  if (uri === undefined) throw new Error(`this machine's apt has no source of ${suite} main`);
  return uri;
}
