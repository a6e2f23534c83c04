import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.js';
import { locate } from '../../src/report/items.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
  mkdirSync(join(directory, 'real', 'sub'), { recursive: true });
  symlinkSync(join(directory, 'real'), join(directory, 'linked'));
  writeFileSync(join(directory, 'real', 'sub', 'a.md'), 'a');
});

async function found(path: string): Promise<string | undefined> {
  const folders = [{ name: 'notes', path: join(directory, 'linked') }, { name: 'inbox' }];
  const { config } = await loadConfig(writeConfig(directory, { peer: { url: 'embedded' }, folders }));
  const located = await locate(config, join(directory, path));
  return located && `${located.folder.name}: ${located.path}`;
}

describe('a path', () => {
  it('is found as the configuration names it, there or not', async () => {
    expect(await found('linked/sub/a.md')).toBe('notes: sub/a.md');
    expect(await found('inbox/none/at/all.md')).toBe('inbox: none/at/all.md');
    expect(await found('linked')).toBe('notes: ');
  });

  it('is found by its real path, there or not, where the folder is named by a link', async () => {
    expect(await found('real/sub/a.md')).toBe('notes: sub/a.md');
    expect(await found('real/gone/for/good.md')).toBe('notes: gone/for/good.md');
    expect(await found('real')).toBe('notes: ');
  });

  it('is found through another link, and a link in the folder stands for itself', async () => {
    symlinkSync(join(directory, 'real'), join(directory, 'another'));
    symlinkSync(join(directory, 'real', 'sub', 'a.md'), join(directory, 'real', 'link.md'));
    expect(await found('another/sub/a.md')).toBe('notes: sub/a.md');
    expect(await found('another')).toBe('notes: ');
    expect(await found('another/link.md')).toBe('notes: link.md');
  });

  it('is in none where a link in the folder leads out of it, and is where the link leads back', async () => {
    mkdirSync(join(directory, 'elsewhere'));
    symlinkSync(join(directory, 'elsewhere'), join(directory, 'real', 'out'));
    symlinkSync(join(directory, 'real', 'sub'), join(directory, 'real', 'back'));
    expect(await found('linked/out/a.md')).toBeUndefined();
    expect(await found('linked/out')).toBe('notes: out');
    expect(await found('linked/back/a.md')).toBe('notes: back/a.md');
  });

  it('outside is in none, also where a name only begins as that of a folder', async () => {
    expect(await found('elsewhere/a.md')).toBeUndefined();
    expect(await found('inbox-of-others/a.md')).toBeUndefined();
  });
});
