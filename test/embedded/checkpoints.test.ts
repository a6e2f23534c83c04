import { readFileSync, statSync, truncateSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Checkpoints, LOG_FULL } from '../../src/embedded/checkpoints.js';
import type { Database } from '../../src/embedded/database.js';
import { silentLogger } from '../../src/lib/logger.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { openDatabase } from './support.js';

/** Commits more than SQLite keeps in its log between two checkpoints. */
function commitMuch(database: Database): void {
  for (let n = 0; n < 20; n += 1)
    database.run('INSERT INTO tables (name, rows) VALUES (randomblob(500000), 0)');
}

describe('suspended checkpoints', () => {
  it('leave the file as it is until they are resumed, or a minute passed without a word', async () => {
    const database = openDatabase(temporaryDirectory());
    const clock = new FakeClock();
    const checkpoints = new Checkpoints(database, clock, silentLogger);
    const log = () => statSync(`${database.path}-wal`).size;
    const file = () => readFileSync(database.path);

    const { lease, size } = checkpoints.suspend();
    const before = file();
    expect([before.length, log()]).toEqual([size, 0]);
    commitMuch(database);
    expect(file().equals(before)).toBe(true);
    checkpoints.resume(lease);
    expect(file().equals(before), 'the answer waits for no checkpoint').toBe(true);
    await clock.advance(1_000);
    expect(file().equals(before)).toBe(false);
    expect(log()).toBe(0);

    const second = checkpoints.suspend();
    commitMuch(database);
    await clock.advance(50_000);
    checkpoints.renew(second.lease);
    await clock.advance(50_000);
    expect(log()).toBeGreaterThan(9_000_000);
    await clock.advance(10_000);
    expect(log()).toBe(0);
    expect(() => checkpoints.resume(second.lease)).toThrow(/not renewed in time/);
    commitMuch(database);
    expect(log()).toBeLessThan(9_000_000);

    const third = checkpoints.suspend();
    commitMuch(database);
    truncateSync(`${database.path}-wal`, 2 ** 30 + 1);
    expect(() => checkpoints.renew(third.lease)).toThrow(
      expect.objectContaining({ status: LOG_FULL }),
    );
    await clock.advance(1_000);
    expect(log()).toBe(0);
    database.close();
  });
});
