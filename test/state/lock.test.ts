import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock as clock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { lockState, stateHolder } from '../../src/state/directory.js';
import { State } from '../../src/state/state.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
/** A pid that no process has: it is above the kernel's maximum. */
const NO_PID = 2 ** 22 + 1;

/**
 * Creates a state directory that `nobody` owns, with a journal that `writer` owns if one is given.
 */
function directoryOfNobody(writer?: number): string {
  const dir = temporaryDirectory();
  chownSync(dir, NOBODY, NOBODY);
  if (writer !== undefined) {
    writeFileSync(join(dir, 'journal-1'), '', { mode: 0o600 });
    chownSync(join(dir, 'journal-1'), writer, writer);
  }
  return dir;
}

/**
 * Runs `work` as `nobody` in `dir`, which is then `.`: that user may have no access to the
 * directories above.
 */
async function asNobody(dir: string, work: () => Promise<void>): Promise<void> {
  const before = process.cwd();
  process.chdir(dir);
  process.seteuid?.(NOBODY);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
    process.chdir(before);
  }
}

describe('the lock of a state directory', () => {
  it('creates the directory, refuses a second daemon, and says which process has it and what to do', async () => {
    const dir = join(temporaryDirectory(), 'not', 'there', 'yet');
    expect(await stateHolder(dir)).toBeUndefined();
    expect(existsSync(dir)).toBe(false);
    const lock = await lockState(dir, { clock: new FakeClock(Date.UTC(2026, 0, 1)) });
    expect(await stateHolder(dir)).toEqual(lock.holder);
    await expect(lockState(dir, { clock })).rejects.toMatchObject({
      code: 'STATE_LOCKED',
      exitCode: 1,
      message: `Another peersync (pid ${process.pid}, since 2026-01-01T00:00:00.000Z) uses the state directory ${dir}.`,
      hint: expect.stringContaining(
        'Stop it to start this one, or give this one another state.dir',
      ),
    });
    await lock.release();
    await lockState(dir, { clock });
  });

  it.each([0o777, 0o1777, 0o770, 0o775])(
    'refuses a directory that other users can write to (mode %o)',
    async (mode) => {
      const dir = temporaryDirectory();
      chmodSync(dir, mode);
      await expect(lockState(dir, { clock })).rejects.toMatchObject({
        code: 'STATE_OPEN_TO_OTHERS',
        hint: expect.stringContaining(`chmod go-w ${dir}`),
      });
      expect(readdirSync(dir)).toEqual([]);
      const blank = join(temporaryDirectory(), 'of others');
      mkdirSync(blank);
      chmodSync(blank, mode);
      await expect(lockState(blank, { clock })).rejects.toMatchObject({
        hint: expect.stringContaining(`\`chmod go-w '${blank}'\``),
      });
      const below = join(dir, 'own');
      await (await lockState(below, { clock })).release();
    },
  );

  it('names the machine of a holder on another machine', async () => {
    const dir = temporaryDirectory();
    const { holder } = await lockState(dir, { clock });
    writeFileSync(
      join(dir, 'lock'),
      JSON.stringify({ ...holder, host: `not-${hostname()}`, pid: NO_PID }),
    );
    await expect(lockState(dir, { clock })).rejects.toMatchObject({
      code: 'STATE_LOCKED_ELSEWHERE',
      message: expect.stringContaining(`(pid ${NO_PID} on not-${hostname()}, since `),
      hint: expect.stringContaining('a minute at most'),
    });
  });

  it('reports a directory that is not writable, and leaves it unchanged', async () => {
    const dir = temporaryDirectory();
    const { holder, release } = await lockState(dir, { clock });
    await release();
    const dead = JSON.stringify({ ...holder, started: '1' });
    writeFileSync(join(dir, 'lock'), dead);
    chmodSync(dir, 0o500);
    try {
      if (isRoot) process.seteuid?.(NOBODY);
      await expect(lockState(dir, { clock })).rejects.toMatchObject({
        code: 'STATE_UNWRITABLE',
        message: `The state in ${dir} cannot be written (EACCES).`,
        hint: expect.stringContaining('Make the directory writable'),
      });
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(dir, 0o700);
    }
    expect(readdirSync(dir)).toEqual(['lock']);
    expect(readFileSync(join(dir, 'lock'), 'utf8')).toBe(dead);
  });

  it.runIf(isRoot).each([
    ['with a state in it', NOBODY, ['journal-1']],
    ['which is still empty', undefined, []],
  ])(
    'refuses root the directory of another user, %s, and says which user to run as',
    async (_, writer, files) => {
      const dir = directoryOfNobody(writer);
      await expect(lockState(dir, { clock })).rejects.toMatchObject({
        code: 'STATE_OF_ANOTHER_USER',
        exitCode: 1,
        message: expect.stringMatching(/^The state in .* belongs to (nobody|nfsnobody|#65534): /),
        hint: expect.stringMatching(
          /`sudo -u '(nobody|nfsnobody|#65534)' peersync …`.*`chown -R root /,
        ),
      });
      expect(readdirSync(dir)).toEqual(files);
    },
  );

  it.runIf(isRoot)(
    "lets root use a state that root wrote in another user's directory",
    async () => {
      await (await lockState(directoryOfNobody(0), { clock })).release();
    },
  );

  it.runIf(isRoot)(
    'lets root use the state if the file system assigns all files to one user',
    async () => {
      const dir = directoryOfNobody(NOBODY);
      const geteuid = vi.spyOn(process, 'geteuid').mockReturnValue(0);
      onTestFinished(() => geteuid.mockRestore());
      await asNobody(dir, async () => {
        await (await lockState('.', { clock })).release();
      });
      expect(readdirSync(dir)).toEqual(['journal-1']);
    },
  );

  it.runIf(isRoot)(
    'names the file that root left in the state of a user, and says how to change its owner',
    async () => {
      const dir = directoryOfNobody(0);
      const hint = expect.stringMatching(
        /`sudo chown -R (nobody|nfsnobody|65534) \.`; .*`sudo -u '.*' peersync …`/,
      );
      const refused = async (work: () => Promise<unknown>, code: string, message: string) =>
        await asNobody(dir, () => expect(work()).rejects.toMatchObject({ code, message, hint }));
      const read = 'The state in . cannot be read (EACCES: journal-1 belongs to root).';
      await refused(() => State.open('.', { clock, log: silentLogger }), 'STATE_UNREADABLE', read);
      writeFileSync(join(dir, 'lock'), '{}', { mode: 0o600 });
      const written = 'The state in . cannot be written (EACCES: lock belongs to root).';
      await refused(() => lockState('.', { clock }), 'STATE_UNWRITABLE', written);
    },
  );
});
