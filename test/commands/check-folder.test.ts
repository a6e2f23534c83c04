import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { checkFolder } from '../../src/commands/check.js';
import { checkConfig } from '../../src/config/load.js';
import { temporaryDirectory } from '../support/temp.js';

it('check counts the directories that are watched, and none that rules keep out', async () => {
  const directory = temporaryDirectory();
  for (const path of ['a/b', '.git/objects/00', 'kept/out'])
    mkdirSync(join(directory, path), { recursive: true });
  writeFileSync(join(directory, '.peersyncignore'), 'kept/\n');
  const config = await checkConfig({ folders: [{ path: directory, collection: 'c' }] }, '/srv/config.json');
  const [folder] = config.folders;
  if (folder === undefined) throw new Error('no folder');
  expect(await checkFolder(folder, config)).toMatchObject({
    directories: 3,
    finding: { ok: true, message: `${directory} is readable, 3 directories` },
  });
});
