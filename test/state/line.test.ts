import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import type { Entry } from '../../src/state/entry.js';
import { decode, encode, statusOf, UrlBases } from '../../src/state/line.js';
import { State } from '../../src/state/state.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { anyEntry } from './arbitrary.js';
import { lifeOf, pendingRecord } from './records.js';

describe('a record as a line of text', () => {
  it('is read as it was written, to the last digit', () => {
    fc.assert(
      fc.property(anyEntry, (entry) => {
        const bases = new UrlBases();
        const line = encode(entry, bases);
        expect(decode(line, entry.folder, entry.path, bases)).toStrictEqual(entry);
        expect(statusOf(line)).toBe(entry.status);
      }),
      { numRuns: 1_000 },
    );
  });

  it('takes at most 200 characters for a confirmed file, wherever that is', () => {
    const bases = new UrlBases();
    const path = 'some/directory/with/ümläuten and other/things/a file.txt';
    const [, , confirmed] = lifeOf(pendingRecord(path));
    expect(encode(confirmed, bases).length).toBeLessThanOrEqual(200);
    expect(encode(confirmed, bases)).not.toContain('example.org');
    expect(bases.size).toBe(1);
  });
});

describe('a state of schema 1', () => {
  it('is read as the version that wrote it read it, and written anew', async () => {
    const written = join(import.meta.dirname, 'schema-1');
    const expected: readonly Entry[] = JSON.parse(readFileSync(join(written, 'expected.json'), 'utf8'));
    const dir = join(temporaryDirectory(), 'state');
    cpSync(written, dir, { recursive: true });
    const state = await State.open(dir, { clock: new FakeClock(), log: silentLogger });
    expect([...state.entries.all()]).toEqual(expected);
    expect(state.meta('peer')).toEqual({ url: 'http://localhost', seen: [1, 2.5] });
    expect(state.meta('old')).toBeUndefined();
    expect(state.repairs).toEqual([]);
    await until(() => state.figures().compactions === 1, 'a snapshot in the present schema was written');
    await state.close();
    const again = await State.read(dir);
    expect([...again.entries.all()]).toEqual(expected);
    const generation = state.figures().generation;
    const snapshot = readFileSync(join(dir, `snapshot-${generation}`), 'utf8');
    expect(snapshot).toContain('"schema":2');
    expect(snapshot).not.toContain('other%20folder/new.md');
  });
});
