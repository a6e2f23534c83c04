import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FORMAT, int, MIGRATED_FORMAT } from '../../src/embedded/database.js';
import { temporaryDirectory } from '../support/temp.js';
import { answered, openDatabase, openPeer, push } from './support.js';

/** Makes a directory with one document, one table and one shared object, in this format. */
async function directoryOfFormat(format: number): Promise<string> {
  const dir = temporaryDirectory();
  const peer = await openPeer({ dir });
  await push(peer, { 'http://h/kept': 'kept' });
  await answered(peer, '/api/table_p.json', { table: 'notes', commitrow: 'x', col_a: 'kept' });
  await peer.close();
  const database = openDatabase(dir);
  database.run(`PRAGMA user_version = ${format}`);
  database.close();
  return dir;
}

function errorOf(dir: string): unknown {
  try {
    openDatabase(dir).close();
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('the database', () => {
  it('has the format and the rows that it had when it was closed', async () => {
    const database = openDatabase(await directoryOfFormat(FORMAT));
    expect(int(database.row('PRAGMA user_version'), 'user_version')).toBe(FORMAT);
    expect(int(database.row('SELECT count(*) AS n FROM table_rows'), 'n')).toBe(1);
    database.close();
  });

  it.each([1, MIGRATED_FORMAT - 1])(
    'of the older format %i is refused, and not changed',
    async (format) => {
      const dir = await directoryOfFormat(format);
      const path = join(dir, 'peer.sqlite');
      const before = readFileSync(path);
      expect(errorOf(dir)).toMatchObject({
        code: 'EMBEDDED_DIR_OLDER',
        message: expect.stringMatching(
          new RegExp(`has format ${format}, .* reads formats ${MIGRATED_FORMAT} to ${FORMAT}`),
        ),
        hint: expect.stringMatching(/mv .*peer\.sqlite .*peer\.sqlite\.old.*start peersync again/),
        details: { path, found: format, known: FORMAT },
      });
      expect(readFileSync(path)).toEqual(before);
    },
  );

  it('of a newer format is refused', async () => {
    const dir = await directoryOfFormat(FORMAT + 1);
    expect(errorOf(dir)).toMatchObject({ code: 'EMBEDDED_DIR_NEWER' });
  });

  it('of another program is refused, and gets no tables', async () => {
    const dir = await directoryOfFormat(0);
    expect(errorOf(dir)).toMatchObject({ code: 'EMBEDDED_DIR_DAMAGED' });
  });
});
