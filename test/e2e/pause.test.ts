import { describe, expect, it } from 'vitest';
import { peersync } from '../support/cli.js';
import { until } from '../support/wait.js';
import { AtWork } from './at-work.js';

describe('a daemon that a person pauses', { timeout: 240_000 }, () => {
  it('sends nothing, goes on reading, is still paused after a restart, and goes on when it is resumed', async () => {
    const work = await AtWork.begin({ mirror: { citations: [{ folder: 'inbox' }] } });
    work.drop('inbox/before.txt');
    await work.start();
    await work.confirmed('inbox/before.txt');
    const paused = await peersync(['pause', '--config', work.config]);
    expect(paused).toMatchObject({ code: 0, stderr: '' });
    expect(paused.stdout).toMatch(/^Paused until `peersync resume`: nothing is sent to the peer/);
    // What a person asks the peer for is answered; no mirror runs.
    expect(await work.run('verify')).toMatchObject({ code: 0 });
    const mirror = await work.run('mirror');
    expect(mirror).toMatchObject({ code: 1, stderr: expect.stringContaining('peersync is paused') });
    const asked = work.proxy.requests.length;
    work.drop('inbox/after.txt');
    await until(async () => (await work.why('inbox/after.txt'))?.verdict === 'pending', 'it was read');
    expect((await work.why('inbox/after.txt'))?.next).toContain('peersync is paused');
    expect((await work.run('status')).stdout).toMatch(/^paused +since .*`peersync resume` ends it$/m);
    // Not gently: the pause was on disk when it was answered.
    await work.daemon.kill('SIGKILL');
    await work.start();
    await until(async () => (await work.status()).folders[0]?.watch?.state === 'watching', 'it watches');
    expect((await work.status()).paused).toBeDefined();
    work.drop('inbox/later.txt');
    await until(async () => (await work.why('inbox/later.txt'))?.verdict === 'pending', 'it was read');
    expect(work.proxy.requests.slice(asked)).toEqual([]);
    const resumed = await peersync(['resume', '--config', work.config]);
    expect(resumed).toMatchObject({ code: 0, stdout: 'Resumed: the work with the peer goes on.\n' });
    await work.confirmed('inbox/after.txt', 'inbox/later.txt');
    expect((await work.status()).paused).toBeUndefined();
    expect((await work.run('resume')).stdout).toBe('It was not paused.\n');
    await work.stop();
    await work.start();
    expect((await work.status()).paused).toBeUndefined();
  });

  it('can be paused before it runs, and `once` says so instead of waiting', async () => {
    const work = await AtWork.begin();
    work.drop('inbox/a.txt');
    expect(await work.run('pause', '--for', '1h')).toMatchObject({ code: 0 });
    expect((await work.run('status')).stdout).toMatch(/^paused +since .*the next run begins so/m);
    const paused = await work.run('once');
    expect(paused.code).toBe(1);
    expect(paused.stderr).toMatch(/peersync is paused for another (1h|5\dm( \d+s)?); 1 item waits\./);
    expect(work.proxy.pushes).toEqual([]);
    expect((await work.run('resume')).stdout).toBe('Resumed: the work with the peer goes on.\n');
    expect(await work.run('once')).toMatchObject({ code: 0 });
  });
});
