import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readyFiles, targetsOf } from '../../src/commands/push.js';
import type { FolderConfig } from '../../src/config/config.js';
import { standard } from '../../src/peer/standard.js';
import { temporaryDirectory } from '../support/temp.js';

const NO_FOLDERS: readonly FolderConfig[] = [];

async function textOf(
  text: Awaited<ReturnType<typeof readyFiles>>[number]['text'] | undefined,
): Promise<string> {
  if (text === undefined || !('chunks' in text)) throw new Error('the text does not stream');
  const chunks: Uint8Array[] = [];
  for await (const chunk of text.chunks()) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('the document of a file that is pushed by hand', () => {
  it.each([
    ['/srv/a b/ü.md', undefined, 'file:///srv/a%20b/%C3%BC.md'],
    ['/srv/a b.md', 'https://x.org/docs/', 'https://x.org/docs/a%20b.md'],
    ['/srv/a b.md', 'HTTPS://X.org/other?id=3', 'https://x.org/other?id=3'],
  ])('%s with the URL %s is %s', (file, url, expected) => {
    expect(targetsOf([file], url, NO_FOLDERS)).toEqual([{ file, url: expected }]);
  });

  it.each([
    [['a'], 'nowhere', /--url: received "nowhere"/],
    [['a'], 'javascript:alert(1)', /--url/],
    [['a'], 'https://u:p@x.org/a', /--url/],
    [['a'], 'https://u:p@x.org/', /--url/],
    [['a', 'b'], 'https://x.org/a', /for 2 files/],
    [['x/a', 'y/a'], 'https://x.org/', /x\/a and y\/a would both become/],
  ])('%j with the URL %s is refused', (files, url, message) => {
    expect(() => targetsOf(files, url, NO_FOLDERS)).toThrow(message);
  });

  it('is never one that a watched folder keeps, however it is spelled', () => {
    const folder = { name: 'inbox', path: '/srv/inbox', url: 'https://x.org/in%20box/' } as FolderConfig;
    for (const url of [
      'https://x.org/in%20box/',
      'https://X.org:443/in box/a.md',
      'https://x.org/%69n%20box/a.md',
    ])
      expect(() => targetsOf(['a.md'], url, [folder])).toThrow(/belongs to the folder inbox/);
    expect(targetsOf(['a.md'], 'https://x.org/in%20boxes/', [folder])).toHaveLength(1);
  });
});

describe('a file that is pushed by hand', () => {
  it('is read as files of folders are: converted to UTF-8, also behind a link', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'latin.txt'), Buffer.from('Grüße', 'latin1'));
    symlinkSync('latin.txt', join(directory, 'link.txt'));
    const targets = targetsOf(
      [join(directory, 'latin.txt'), join(directory, 'link.txt')],
      undefined,
      NO_FOLDERS,
    );
    const files = await readyFiles(targets, standard.content);
    expect(files.map(({ size }) => size)).toEqual([7, 7]);
    expect(await textOf(files[1]?.text)).toBe('Grüße');
  });

  it('is refused with its own words where it cannot go, all of them at once', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'binary'), 'a\0b');
    writeFileSync(join(directory, 'empty'), '');
    writeFileSync(join(directory, 'good'), 'good');
    mkdirSync(join(directory, 'directory'));
    const files = ['binary', 'empty', 'good', 'directory', 'missing'].map((name) => join(directory, name));
    const error: unknown = await readyFiles(targetsOf(files, undefined, NO_FOLDERS), standard.content).catch(
      (e: unknown) => e,
    );
    expect(error).toBeInstanceOf(AggregateError);
    expect((error as AggregateError).errors).toMatchObject([
      { code: 'NOT_TEXT', message: `${files[0]}: The file is not text, and this peer takes only text.` },
      { code: 'EMPTY' },
      { code: 'NOT_A_FILE' },
      { code: 'NO_SUCH_FILE' },
    ]);
  });

  it('that changes while it is sent is not sent', async () => {
    const file = join(temporaryDirectory(), 'a.txt');
    writeFileSync(file, 'before');
    const [ready] = await readyFiles(targetsOf([file], undefined, NO_FOLDERS), standard.content);
    writeFileSync(file, 'after it');
    await expect(textOf(ready?.text)).rejects.toThrow(/changed/);
  });
});
