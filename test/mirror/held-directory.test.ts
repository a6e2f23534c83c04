import {
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { ConflictFiles } from '../../src/mirror/conflict-files.js';
import { EditedFile } from '../../src/mirror/two-way/edited-file.js';
import { removeWhole, replaceWhole } from '../../src/mirror/whole-file.js';
import { canExchange, exchanging } from '../support/exchange.js';
import { temporaryDirectory } from '../support/temp.js';

/** PEERSYNC_SWAP_SECONDS sets how long the directory is swapped. */
const SECONDS = Number(process.env.PEERSYNC_SWAP_SECONDS ?? 3);
const SECRET = 'pk,a\nsecret,1\n';

it.skipIf(!canExchange())(
  `nothing outside of the mirror root is written, removed or read while a directory in it and a link to the outside change places for ${SECONDS} s`,
  async () => {
    const directory = temporaryDirectory();
    const [root, outside] = [join(directory, 'mirror'), join(directory, 'outside')];
    mkdirSync(join(root, 'lists'), { recursive: true });
    mkdirSync(outside);
    for (const name of ['prices.csv', 'removed.csv', 'edited.csv'])
      writeFileSync(join(outside, name), SECRET);
    const edited = 'pk,a\nmine,1\n';
    writeFileSync(join(root, 'lists/edited.csv'), edited);
    for (const at of [root, outside])
      utimesSync(
        join(at, at === root ? 'lists/edited.csv' : 'edited.csv'),
        1_700_000_000,
        1_700_000_000,
      );
    symlinkSync(outside, join(root, 'link'));
    const target = (name: string) => ({ root, path: `lists/${name}` });
    const conflicts = new ConflictFiles(target('prices.csv'), systemClock);
    const file = new EditedFile(target('edited.csv'), 'edited', systemClock);

    const attack = exchanging(join(root, 'lists'), join(root, 'link'), SECONDS, 0.0005);
    const done = { written: 0, refused: 0 };
    const tried = async (work: Promise<unknown>) => {
      const isDone = await work.then(
        () => true,
        () => false,
      );
      done[isDone ? 'written' : 'refused'] += 1;
    };
    for (let turn = 0; !attack.isOver(); turn += 1) {
      const text = `pk,a\nk,${turn}\n`;
      await tried(replaceWhole(target('prices.csv'), [text], { versions: turn % 2 }));
      await tried(replaceWhole(target('removed.csv'), [text]));
      await tried(removeWhole(target('removed.csv')));
      await tried(replaceWhole(target(`deep/${turn % 7}/new.csv`), [text]));
      if (turn < 90) await tried(conflicts.save(Buffer.from(text), `${turn}`, 0o644));
      const read = await file.read(AbortSignal.timeout(5_000)).catch(() => undefined);
      expect(read?.bytes.toString() ?? edited).toBe(edited);
      expect(readdirSync(outside).sort()).toEqual(['edited.csv', 'prices.csv', 'removed.csv']);
    }
    expect(await attack.ended).toBe(0);
    for (const name of readdirSync(outside))
      expect(readFileSync(join(outside, name), 'utf8')).toBe(SECRET);
    // The attack met the work, and did not keep all of it from being done.
    expect(Math.min(done.written, done.refused)).toBeGreaterThan(0);
  },
  SECONDS * 1_000 + 60_000,
);
