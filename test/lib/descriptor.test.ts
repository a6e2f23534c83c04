import { closeSync, mkdirSync, openSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { isAt, READ_FLAGS } from '../../src/lib/file.js';
import { temporaryDirectory } from '../support/temp.js';

function opened(path: string): number {
  const fd = openSync(path, READ_FLAGS);
  onTestFinished(() => closeSync(fd));
  return fd;
}

it('a file is at its path, and not behind a link whose name differs only by case', () => {
  const root = temporaryDirectory();
  for (const name of ['notes', 'Notes']) {
    mkdirSync(join(root, name));
    writeFileSync(join(root, name, 'f.txt'), name);
  }
  const meant = join(root, 'notes/f.txt');
  expect(isAt(opened(meant), meant)).toBe(true);
  expect(isAt(opened(join(root, 'Notes/f.txt')), meant)).toBe(false);
  renameSync(join(root, 'notes'), join(root, 'before'));
  symlinkSync('Notes', join(root, 'notes'));
  const fd = opened(meant);
  expect(() => isAt(fd, meant)).toThrow(/ENOTDIR|ELOOP/);
});
