import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { serve } from '../support/server.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';

let directory: string;
let root: string;
let config: string;
/** Whether answers stop in the middle, and never end. */
let hangs: boolean;

beforeEach(async () => {
  hangs = true;
  const url = await serve((request, response) => {
    request.resume();
    if (request.url?.includes('share')) {
      response.setHeader('content-type', 'application/octet-stream');
      response.write(Buffer.alloc(100_000, 'x'));
    } else {
      response.setHeader('content-type', 'application/json');
      response.write('{"table":"t","columns":["a"],"rows":[\n{"pk":"k","cells":{"a":"1"}}');
    }
    if (!hangs) response.end(request.url?.includes('share') ? '' : ']}');
  });
  directory = temporaryDirectory();
  root = join(directory, 'mirror');
  config = writeConfig(directory, {
    peer: {
      url,
      dialect: 'standard',
      timeouts: { body: '60s' },
    },
    mirror: { root, tables: [{ table: 't' }], shares: [{ data: 's' }] },
  });
});

const temporaryFiles = (): string[] =>
  existsSync(root)
    ? readdirSync(root, { recursive: true })
        .map(String)
        .filter((name) => name.includes('.tmp'))
    : [];

it('the mirror command that is stopped in the middle of an answer leaves nothing half done', async () => {
  const running = new Running(['mirror', '--config', config]);
  await until(() => temporaryFiles().length > 0, 'an answer hangs in the middle');
  const { code, signal, stderr } = await running.kill('SIGINT');
  expect({ code, signal }).toEqual({ code: 1, signal: null });
  expect(stderr).toContain('Stopped before it was done.');
  expect(temporaryFiles()).toEqual([]);
  hangs = false;
  expect(await peersync(['mirror', '--config', config])).toMatchObject({ code: 0 });
});

it('once gives up a table that hangs in the middle, and does not wait for it any longer', async () => {
  const began = performance.now();
  const { code, stderr } = await peersync(['once', '--timeout', '1s', '--config', config]);
  expect(code).toBe(1);
  expect(stderr).toContain('after 1s');
  expect(performance.now() - began).toBeLessThan(40_000);
  expect(temporaryFiles()).toEqual([]);
});
