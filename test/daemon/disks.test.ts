import { chmodSync, mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Disk, DiskInquiry } from '../../src/daemon/watchdog.js';
import { systemClock } from '../../src/lib/clock.js';
import { quoted } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

afterEach(() => vi.unstubAllEnvs());

function inquiry(disks: readonly Disk[], answersMs = 60_000): DiskInquiry {
  return new DiskInquiry({ disks: () => disks, clock: systemClock, answersMs });
}

/** A directory that nobody has touched for long. */
function old(isOwn: boolean): Disk {
  const path = temporaryDirectory();
  utimesSync(path, 1_000, 1_000);
  return { path, isOwn };
}

describe('an inquiry among disks', () => {
  it('writes to a directory of our own, for else a frozen disk would seem to answer, and to no other', async () => {
    const [own, theirs] = [old(true), old(false)];
    expect(await inquiry([own, theirs]).silent()).toBeUndefined();
    expect(statSync(own.path).mtimeMs).toBeGreaterThan(1_000_000);
    expect(statSync(theirs.path).mtimeMs).toBe(1_000_000);
  });

  it('takes a directory that is not there for an answer', async () => {
    const path = join(temporaryDirectory(), 'gone');
    const disks = [true, false].map((isOwn) => ({ path, isOwn }));
    expect(await inquiry(disks).silent()).toBeUndefined();
    expect(() => statSync(path)).toThrow();
  });

  it('names the first that gives no answer in time, and asks it once until it does', async () => {
    const directory = temporaryDirectory();
    const [asked, bin, answer] = ['asked', 'bin', 'answer'].map((name) => join(directory, name));
    if (asked === undefined || bin === undefined || answer === undefined) throw new Error('no names');
    mkdirSync(bin);
    const [well, hung] = [old(false), old(true)];
    const script = `#!/bin/sh
case "$2" in ${quoted(hung.path)}) echo >> ${quoted(asked)}; until [ -e ${quoted(answer)} ]; do sleep 0.1; done;; esac
`;
    writeFileSync(join(bin, 'sync'), script);
    chmodSync(join(bin, 'sync'), 0o755);
    vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
    const disks = inquiry([well, hung], 3_000);
    // The healthy one may be slow on a busy machine.
    await until(async () => (await disks.silent()) === hung.path, 'the silent one is named');
    expect(await disks.silent()).toBe(hung.path);
    expect(statSync(asked).size).toBe(1);
    writeFileSync(answer, '');
    await until(async () => (await disks.silent()) === undefined, 'it answers');
  });
});
