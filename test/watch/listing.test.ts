import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';

afterEach(() => {
  vi.doUnmock('node:fs');
  vi.resetModules();
});

it('a listing leaves threads to the others where its disk does not answer', async () => {
  const asking = { now: 0, most: 0 };
  vi.resetModules();
  vi.doMock('node:fs', async (original) => {
    const fs = await original<typeof import('node:fs')>();
    const lstat = (path: string, done: (...answer: unknown[]) => void) => {
      asking.now += 1;
      asking.most = Math.max(asking.most, asking.now);
      fs.lstat(path, (...answer) => {
        asking.now -= 1;
        done(...answer);
      });
    };
    return { ...fs, lstat };
  });
  const { listing } = await import('../../src/watch/listing.js');
  const directory = temporaryDirectory();
  for (let i = 0; i < 700; i += 1) writeFileSync(join(directory, `f${i}`), '');
  const names: string[] = [];
  for await (const batch of listing(directory)) names.push(...batch.map(({ name }) => name));
  expect(names).toHaveLength(700);
  expect(asking.most).toBe(2);
});
