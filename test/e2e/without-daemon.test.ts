import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { pendingRecord } from '../state/records.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';

/** A state with these files, and a peer whose password nobody knows. */
async function withFiles(...paths: readonly string[]) {
  const directory = temporaryDirectory();
  const auth = { username: 'admin', password: { env: 'NO_SUCH_VARIABLE' } };
  const config = writeConfig(directory, { peer: { url: 'http://127.0.0.1:1', auth } });
  const state = await State.open(join(directory, 'state'), { clock: systemClock, log: silentLogger });
  const notBefore = systemClock.now() + 3_600_000;
  for (const path of paths) state.put({ ...pendingRecord(path), notBefore });
  await state.close();
  const cwd = temporaryDirectory();
  return { directory, run: (...args: string[]) => peersync([...args, '-c', config], { cwd }) };
}

describe('without a daemon', () => {
  it('needs no password of the peer to pause, to resume and to try again', async () => {
    const { run } = await withFiles('a.txt');
    expect(await run('pause')).toMatchObject({ code: 0, stderr: '' });
    expect((await run('status', '--json')).stdout).toContain('"paused":{"since"');
    expect((await run('resume')).stdout).toMatch(/^Resumed/);
    expect((await run('retry', '--all')).stdout).toBe('1 item is pending again.\n');
  });

  it('takes the bare name of a file where only one has it', async () => {
    const { directory, run } = await withFiles('deep/one.md', 'x/two.md', 'y/two.md');
    expect((await run('why', 'one.md')).stdout).toContain(join(directory, 'inbox/deep/one.md'));
    expect((await run('retry', 'one.md')).stdout).toBe('1 item is pending again.\n');
    const both = await run('why', 'two.md');
    expect(both.code).toBe(2);
    expect(both.stderr).toMatch(/2 files are named "two\.md": .*x\/two\.md, .*y\/two\.md\./);
    expect((await run('retry', 'none.md')).stderr).toContain('No known file is named "none.md".');
  });
});

it('the help of a command begins with its own options', async () => {
  const { stdout } = await peersync(['help', 'once']);
  expect(stdout.indexOf('--timeout')).toBeLessThan(stdout.indexOf('General options:'));
  expect(stdout.indexOf('General options:')).toBeLessThan(stdout.indexOf('--config'));
});
