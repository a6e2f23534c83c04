import { expect, it } from 'vitest';
import type { FoundProgram } from '../../src/content/helpers/finder.js';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { DaemonPrograms } from '../../src/daemon/programs.js';
import { FakeClock } from '../support/fake-clock.js';
import { loggerTo } from '../support/logger.js';

const MINUTE = 60_000;

/** A finder that finds what a test installs, and counts its looks. */
class PlayedFinder {
  current = NO_PROGRAMS;
  looks = 0;
  fails = false;
  installed: readonly string[] = [];
  #known: readonly string[] = [];

  async refresh(): Promise<boolean> {
    this.looks += 1;
    if (this.fails) throw new Error('no more processes');
    const isOther = this.installed.join() !== this.#known.join();
    this.#known = this.installed;
    return isOther;
  }

  found(): readonly FoundProgram[] {
    return ['catdoc', 'tesseract'].map((program) => ({
      program,
      reads: 'files',
      package: program,
      path: this.#known.includes(program) ? `/usr/bin/${program}` : undefined,
    }));
  }
}

async function setUp() {
  const clock = new FakeClock();
  const finder = new PlayedFinder();
  const said: string[] = [];
  let changes = 0;
  const onChange = () => {
    changes += 1;
  };
  const programs = await DaemonPrograms.open({ finder, clock, log: loggerTo(said), onChange });
  return { clock, finder, programs, said, changes: () => changes };
}

it('programs are looked for at the start, and at a scan once a minute', async () => {
  const { clock, finder, programs } = await setUp();
  expect(finder.looks).toBe(1);
  programs.onScan();
  await clock.advance(MINUTE - 1);
  programs.onScan();
  await clock.advance(0);
  expect(finder.looks).toBe(1);
  await clock.advance(1);
  programs.onScan();
  programs.onScan();
  await clock.advance(0);
  expect(finder.looks).toBe(2);
});

it('programs that come and go are named in one line, and files are looked at again', async () => {
  const { changes, finder, programs, said } = await setUp();
  expect(await programs.refresh()).toBeUndefined();
  expect([said, changes()]).toEqual([[], 0]);
  finder.installed = ['catdoc', 'tesseract'];
  const change = 'programs that read documents: found catdoc, tesseract';
  expect(await programs.refresh()).toBe(change);
  const again = 'files that were skipped without them are looked at again';
  expect([said, changes()]).toEqual([[`info: ${change}; ${again}`], 1]);
  finder.installed = ['tesseract'];
  expect(await programs.refresh()).toBe('programs that read documents: catdoc not found any more');
  expect(changes()).toBe(2);
});

it('a look that fails at a scan is logged, and the next one is made', async () => {
  const { changes, clock, finder, programs, said } = await setUp();
  finder.fails = true;
  await clock.advance(MINUTE);
  programs.onScan();
  await clock.advance(MINUTE);
  expect(said).toEqual([
    'error: The programs that read documents cannot be found: no more processes',
  ]);
  finder.fails = false;
  finder.installed = ['catdoc'];
  programs.onScan();
  await clock.advance(0);
  expect(changes()).toBe(1);
});
