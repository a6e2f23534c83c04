import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';

const directory = resolve(import.meta.dirname, '../../systemd');
const UNITS = [
  'peersync.service',
  'peersync@.service',
  'peersync.user.service',
  'peersync-worker@.service',
] as const;
const LARGEST_EXPOSURE = 1.5;

const textOf = (name: string) => readFileSync(join(directory, name), 'utf8');
const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0;

/** Returns the exposure level that systemd computes for a unit, from 0 to 10. */
function exposureOf(name: string): number {
  const file = join(temporaryDirectory(), name);
  // The services of a user never run as root, which this question cannot know.
  const user = name.includes('.user.') ? '[Service]\nUser=ada' : '[Service]';
  writeFileSync(file, textOf(name).replace('[Service]', user));
  const words = ['security', '--offline=true', '--no-pager', file];
  const { stdout } = spawnSync('systemd-analyze', words, { encoding: 'utf8' });
  return Number(/Overall exposure level for .*: ([\d.]+)/.exec(stdout)?.[1] ?? Number.NaN);
}

describe('the units', () => {
  it.skipIf(!hasAnalyze).each(UNITS)(`%s is exposed to at most ${LARGEST_EXPOSURE}`, (name) => {
    expect(exposureOf(name)).toBeLessThanOrEqual(LARGEST_EXPOSURE);
  });

  it.each(UNITS)('%s keeps free threads if a disk hangs, and returns free memory', (name) => {
    expect(textOf(name)).toMatch(/^Environment=UV_THREADPOOL_SIZE=16$/m);
    expect(textOf(name)).toMatch(/^Environment=MALLOC_TRIM_THRESHOLD_=131072$/m);
  });

  it('are the same for the system and for users', () => {
    const settings = (name: string) =>
      textOf(name)
        .split('\n')
        .filter((line) => /^[A-Z]\w+=/.test(line));
    const system = new Set(settings('peersync.service'));
    const others = (name: string) =>
      settings(name)
        .filter((line) => !system.has(line))
        .map((line) => line.split('=')[0]);
    const template = [
      'Description',
      'ExecStart',
      'ExecReload',
      'SyslogIdentifier',
      'StateDirectory',
    ];
    expect(others('peersync@.service')).toEqual(template);
    const user = ['ExecStart', 'ExecReload', 'UMask', 'ProtectHome', 'WantedBy'];
    expect(others('peersync.user.service')).toEqual(user);
    const worker = [
      'Description',
      'Type',
      'ExecStart',
      'SyslogIdentifier',
      'UMask',
      'MemoryHigh',
      'MemoryMax',
      'TasksMax',
    ];
    expect(others('peersync-worker@.service')).toEqual(worker);
    // It keeps nothing, and says nothing to systemd.
    for (const setting of ['StateDirectory', 'WatchdogSec', 'ExecReload', 'NotifyAccess'])
      expect(textOf('peersync-worker@.service')).not.toMatch(new RegExp(`^${setting}=`, 'm'));
    expect(textOf('peersync-worker@.service')).toMatch(/^PrivateTmp=yes$/m);
  });

  it.skipIf(!hasAnalyze)('of a worker is valid for systemd', () => {
    const file = join(temporaryDirectory(), 'peersync-worker@.service');
    const text = textOf('peersync-worker@.service').replace('/usr/bin/peersync', '/bin/sh');
    writeFileSync(file, text);
    const words = ['verify', '--man=no', file.replace('@.', '@config.')];
    const verified = spawnSync('systemd-analyze', words, { encoding: 'utf8' });
    expect(verified).toMatchObject({ stderr: '', status: 0 });
  });
});
