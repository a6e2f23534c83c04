import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { writeFileAtomic } from '../../src/lib/atomic.js';
import { temporaryDirectory } from '../support/temp.js';

it('a file is replaced when what takes its place is on disk, and not before', async () => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, 'old');
  const steps: string[] = [];
  await writeFileAtomic(path, 'new', {
    ready: async (handle) => {
      const sync = handle.sync.bind(handle);
      vi.spyOn(handle, 'sync').mockImplementation(async () => {
        await sync();
        steps.push('synced');
      });
      return true;
    },
    lastLook: () => void steps.push(readFileSync(path, 'utf8')),
  });
  expect(steps).toEqual(['synced', 'old']);
  expect(readFileSync(path, 'utf8')).toBe('new');
});
