import { describe, expect, it } from 'vitest';
import type { FileStat } from '../../src/lib/file.js';
import { gone } from '../../src/state/transitions.js';
import { Debouncer } from '../../src/watch/debouncer.js';
import { UnreadFiles } from '../../src/watch/deletion-candidates.js';
import { pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';

const SETTLE = 60_000;

const WENT_MS_AGO = 5_000;

/** Whether a removed file of 100 bytes may be one of these unread files, by path. */
async function mayBeOneOf(files: Readonly<Record<string, Partial<FileStat>>>, aheadMs = 0) {
  const clock = new FakeClock();
  clock.set(aheadMs);
  const debouncer = new Debouncer(SETTLE, clock);
  const went = clock.now() - WENT_MS_AGO;
  const stat = { size: 100, mtimeMs: 1, ctimeMs: went - 1_000 + aheadMs, ino: 7 };
  for (const [path, changes] of Object.entries(files))
    debouncer.atRest(path, { ...stat, ino: 8, ...changes });
  const known = pendingRecord('a');
  const item = gone({ ...known, version: { ...known.version, ...stat } }, went);
  let unread: UnreadFiles | undefined;
  void UnreadFiles.of(debouncer, new Map(), clock).then((found) => {
    unread = found;
  });
  await clock.advance(200);
  return unread?.mayBe(item);
}

describe('a removed file', () => {
  it.each<[string, boolean, Partial<FileStat>]>([
    ['may be the new name of the same inode', true, { ino: 7, ctimeMs: Number.MAX_SAFE_INTEGER }],
    ['may be a copy that was there when it went', true, {}],
    ['is not a file of another size', false, { size: 101, ino: 7 }],
  ])('%s', async (_, expected, changes) => {
    expect(await mayBeOneOf({ b: changes })).toBe(expected);
  });

  it('is not a file that came after it went, whatever the wall clock says', async () => {
    const clock = new FakeClock();
    for (const aheadMs of [0, 86_400_000, -86_400_000])
      expect(await mayBeOneOf({ b: { ctimeMs: clock.now() - 1_000 + aheadMs } }, aheadMs)).toBe(
        false,
      );
  });

  it('may be back at its own path', async () => {
    expect(await mayBeOneOf({ a: { size: 1, ino: 9 } })).toBe(true);
  });
});
