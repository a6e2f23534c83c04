import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';

const units = resolve(import.meta.dirname, '../../systemd');
const LARGEST_EXPOSURE = 1.5;

function hasAnalyze(): boolean {
  try {
    execFileSync('systemd-analyze', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** What systemd says of how exposed a unit is, from 0 to 10. */
function exposureOf(name: string, text: string): number {
  const directory = temporaryDirectory();
  mkdirSync(directory, { recursive: true });
  const file = join(directory, name);
  writeFileSync(file, text);
  const words = ['security', '--offline=true', '--no-pager', file];
  const said = execFileSync('systemd-analyze', words, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return Number(/Overall exposure level for .*: ([\d.]+)/.exec(said)?.[1] ?? Number.NaN);
}

const analyze = hasAnalyze() ? '' : ' (skipped: systemd-analyze is not installed)';

describe('the units', () => {
  it('are all there', () => {
    expect(readdirSync(units).sort()).toEqual([
      'README.md',
      'peersync.service',
      'peersync.sysusers.conf',
      'peersync.tmpfiles.conf',
      'peersync.user.service',
      'peersync@.service',
    ]);
  });

  for (const name of ['peersync.service', 'peersync@.service', 'peersync.user.service'])
    it.skipIf(analyze !== '')(`${name} is exposed to at most ${LARGEST_EXPOSURE}${analyze}`, () => {
      const text = readFileSync(join(units, name), 'utf8');
      // The services of a user never run as root, which this question cannot know.
      const asked = name.includes('.user.') ? text.replace('[Service]', '[Service]\nUser=ada') : text;
      expect(exposureOf(name, asked)).toBeLessThanOrEqual(LARGEST_EXPOSURE);
    });

  it('leave threads for the rest where a disk hangs, and have free memory go back', () => {
    for (const name of ['peersync.service', 'peersync@.service', 'peersync.user.service']) {
      const text = readFileSync(join(units, name), 'utf8');
      expect(text).toMatch(/^Environment=UV_THREADPOOL_SIZE=16$/m);
      expect(text).toMatch(/^Environment=MALLOC_TRIM_THRESHOLD_=131072$/m);
    }
  });

  it('are alike but for whom they serve', () => {
    const settings = (name: string): Set<string> =>
      new Set(
        readFileSync(join(units, name), 'utf8')
          .split('\n')
          .filter((line) => /^[A-Z]\w+=/.test(line)),
      );
    const [system, template, user] = ['peersync.service', 'peersync@.service', 'peersync.user.service'].map(
      settings,
    );
    const without = (a = new Set<string>(), b = new Set<string>()) =>
      [...a].filter((line) => !b.has(line)).map((line) => line.split('=')[0]);
    expect(without(template, system)).toEqual([
      'Description',
      'ExecStart',
      'ExecReload',
      'SyslogIdentifier',
      'StateDirectory',
    ]);
    expect(without(user, system)).toEqual(['ExecStart', 'ExecReload', 'UMask', 'ProtectHome', 'WantedBy']);
  });
});
