import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';

it('a folder that gets another name while its files wait keeps nobody waiting for the old one', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'notes');
  mkdirSync(path);
  writeFileSync(join(path, 'plan.md'), '# A plan\n');
  const once = (timeout: string, config: string) =>
    peersync(['once', '--json', '--timeout', timeout, '--config', config]);
  const away = writeConfig(directory, {
    peer: { url: 'http://127.0.0.1:1' },
    folders: [{ name: 'old', path }],
  });
  expect((await once('12s', away)).code).toBe(4);
  const embedded = { dir: join(directory, 'peer'), port: 0 };
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded },
    folders: [{ name: 'new', path }],
  });
  const { code, stdout, stderr } = await once('100s', config);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout).items).toMatchObject({ pending: 0, confirmed: 1, gone: 1 });
});
