import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { StatusReport } from '../../src/report/status-report.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';

it.skipIf(!hasRedis)(
  'status and check show a worker that comes, works and goes, and a Redis that goes away',
  async () => {
    const directory = temporaryDirectory();
    const redis = new RedisServer(directory);
    await redis.start();
    const config = writeConfig(directory, {
      peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
      documents: { concurrency: 1, commands: { '.slow': ['slowly', '{file}'] } },
      fleet: { redis: redis.url },
    });
    const script = '#!/bin/sh\nsleep 0.3\ncat "$1"\n';
    writeFileSync(join(directory, 'slowly'), script, { mode: 0o755 });
    const env = { PATH: `${directory}:${process.env.PATH}` };
    const ask = (...args: readonly string[]) => peersync([...args, '-c', config], { env });
    const status = async () =>
      JSON.parse((await ask('status', '--json')).stdout || '{}') as Partial<StatusReport>;
    const worker = async () => (await status()).fleet?.workers[0];

    const alone = await ask('check', '--worker');
    expect(alone).toMatchObject({ code: 0, stderr: '' });
    expect(alone.stdout).toMatch(/^note +folder inbox: .* is empty$/m);
    expect(alone.stdout).toMatch(/^ok +redis: .* answers at unix:/m);
    expect(alone.stdout).toMatch(/^note +owner: nobody gives work now$/m);
    for (let i = 0; i < 40; i += 1)
      writeFileSync(join(directory, 'inbox', `${i}.slow`), `The words of document ${i}.`);

    const owner = new Running(['run', '-c', config], { env });
    const helper = new Running(['worker', '-c', config], { env });
    await until(async () => ((await worker())?.done ?? 0) > 0, 'the worker reads documents');
    expect(await worker()).toMatchObject({ pid: helper.child.pid, slots: 1, failed: 0 });
    expect((await ask('status')).stdout).toMatch(
      /^fleet +1 worker, \d jobs? under way, \d waiting/m,
    );
    expect((await ask('check')).stdout).toMatch(/^ok +workers: 1 worker \(.+\)$/m);
    const helped = await ask('check', '--worker');
    expect(helped.stdout).toMatch(/^ok +owner: peersync on ".+" gives the work, and has the same/m);

    await helper.kill('SIGTERM');
    await until(async () => {
      const seen = await worker();
      return seen === undefined || seen.idle?.reason === 'stopping';
    }, 'the owner knows that it stops');
    expect((await status()).fleet?.lost).toEqual([]);

    await redis.kill();
    const away = async () => (await status()).conditions?.find(({ code }) => code === 'FLEET_AWAY');
    await until(async () => (await away()) !== undefined, 'Redis is away');
    expect((await away())?.hint).toContain(`\`peersync check -c ${config}\` looks again.`);
    const checked = await ask('check');
    expect(checked.code).toBe(1);
    expect(checked.stdout).toMatch(/^FAILED +redis: No Redis listens at unix:/m);
    await owner.kill('SIGKILL');
  },
);
