import { closeSync, openSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { writeFileAtomic } from '../../src/lib/atomic.js';
import { temporaryDirectory } from '../support/temp.js';

it('a file is never written through a link in place of the temporary file', async () => {
  const directory = temporaryDirectory();
  const other = join(directory, 'other');
  writeFileSync(other, 'kept');
  const temporary = join(directory, 'new.tmp');
  symlinkSync(other, temporary);
  const path = join(directory, 'file');
  await writeFileAtomic(path, 'new', { temporary });
  expect([readFileSync(path, 'utf8'), readFileSync(other, 'utf8')]).toEqual(['new', 'kept']);
});

it('a file is replaced only after the new content is on disk, and its directory is synced', async () => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, 'old');
  const steps: string[] = [];
  await writeFileAtomic(path, 'new', {
    ready: async (handle) => {
      const all: FileHandle = Object.getPrototypeOf(handle);
      const sync = all.sync;
      const spy = vi.spyOn(all, 'sync').mockImplementation(async function (this: FileHandle) {
        await sync.call(this);
        steps.push((await this.stat()).isDirectory() ? 'directory' : 'file');
      });
      onTestFinished(() => spy.mockRestore());
      return true;
    },
    lastLook: () => void steps.push(readFileSync(path, 'utf8')),
  });
  expect(steps).toEqual(['file', 'old', 'directory']);
  expect(readFileSync(path, 'utf8')).toBe('new');
});

it('a reader that opened a file before it is replaced reads the old content to its end', async () => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, 'old');
  const reader = openSync(path, 'r');
  onTestFinished(() => closeSync(reader));
  await writeFileAtomic(path, 'the new content');
  expect(readFileSync(reader, 'utf8')).toBe('old');
  expect(readFileSync(path, 'utf8')).toBe('the new content');
});
