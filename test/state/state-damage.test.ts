import {
  cpSync,
  createReadStream,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blockOf, decompressed } from '../../src/state/compression.js';
import type { Entry } from '../../src/state/entry.js';
import { lineOf as framed } from '../../src/state/rows.js';
import { State, type StateView } from '../../src/state/state.js';
import { skipped } from '../../src/state/transitions.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { lifeOf, opened, pathsOf, pendingRecord } from './records.js';

const FILES = 30;
const lineOf = (value: unknown) => framed(JSON.stringify(value));
const linesOf = (path: string) => readFileSync(path, 'utf8').split(/(?<=\n)/);
const joined = (lines: readonly string[]) => Buffer.from(lines.join(''));
const append = (path: string, content: string | Buffer) =>
  writeFileSync(path, content, { flag: 'a' });

/** Makes a state of three generations. 2 and 3 remain, both with snapshot and journal. */
async function stateOfThreeGenerations() {
  const dir = temporaryDirectory();
  const state = await opened(dir);
  const step = async (index: 0 | 1 | 2, from: number, to: number) => {
    for (let i = from; i < to; i += 1) state.put(lifeOf(pendingRecord(`${i}`))[index]);
    await state.commit();
  };
  await step(0, 0, 20);
  await state.compact();
  await step(1, 0, 10);
  await step(0, 20, FILES);
  await state.compact();
  await step(2, 0, 5);
  await step(1, 20, 25);
  const records = sorted(state);
  await state.close();
  const files = ['acknowledged', 'journal-2', 'journal-3', 'snapshot-2', 'snapshot-3'];
  expect(readdirSync(dir).sort()).toEqual(files);
  return { dir, records, snapshot: join(dir, 'snapshot-3'), journal: join(dir, 'journal-3') };
}

/** Makes a state of one journal with one record, that of `a`. */
async function smallState(): Promise<{ dir: string; journal: string }> {
  const dir = temporaryDirectory();
  const state = await opened(dir);
  state.put(pendingRecord('a'));
  await state.close();
  return { dir, journal: join(dir, 'journal-1') };
}

async function snapshotLines(path: string): Promise<string[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of decompressed(createReadStream(path))) chunks.push(chunk);
  return Buffer.concat(chunks)
    .toString()
    .split(/(?<=\n)/);
}

/** Makes each line of a snapshot a block, and damages the blocks of lines with these texts. */
async function damageBlocks(path: string, texts: readonly string[]): Promise<void> {
  const blocks = (await snapshotLines(path)).map((line) => {
    const block = blockOf(Buffer.from(line));
    if (texts.some((text) => line.includes(text)))
      block.writeUInt8(block.readUInt8(block.length - 4) ^ 0x10, block.length - 4);
    return block;
  });
  writeFileSync(path, Buffer.concat(blocks));
}

function sorted(view: StateView): readonly Entry[] {
  return [...view.entries.all()].sort((a, b) => Number(a.path) - Number(b.path));
}

function flip(path: string, at: number, mask = 0x10): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(at) ^ mask, at);
  writeFileSync(path, bytes);
}

/** Damages a byte of a line. */
function flipInLine(path: string, line: number, at: number): void {
  flip(path, Buffer.byteLength(linesOf(path).slice(0, line).join('')) + at);
}

/** Waits until a snapshot was written, and expects the state to open without repairs. */
async function expectMended(state: State, dir: string): Promise<void> {
  await until(() => !state.figures().compacting, 'a sound snapshot was written');
  const records = sorted(state);
  await state.close();
  const again = await opened(dir);
  expect(again.repairs).toEqual([]);
  expect(sorted(again)).toEqual(records);
}

describe('a damaged state', () => {
  it('falls back from a snapshot with a wrong byte to the previous one', async () => {
    const { dir, records, snapshot } = await stateOfThreeGenerations();
    flip(snapshot, Math.floor(statSync(snapshot).size / 3));
    const state = await opened(dir);
    expect(sorted(state)).toEqual(records);
    expect(state.repairs).toEqual(['snapshot-3 is damaged; what came before it was read instead.']);
    await expectMended(state, dir);
  });

  it('falls back from a snapshot that ends too early, at any line or in the middle of a block', async () => {
    const { dir, records, snapshot } = await stateOfThreeGenerations();
    const sound = readFileSync(snapshot);
    const lines = await snapshotLines(snapshot);
    const cut: Buffer[] = Array.from({ length: 10 }, (_, i) =>
      sound.subarray(0, (sound.length * i) / 10),
    );
    for (let kept = 0; kept < lines.length; kept += 4)
      cut.push(blockOf(joined(lines.slice(0, kept))));
    for (const bytes of cut) {
      writeFileSync(snapshot, bytes);
      const view = await State.read(dir);
      expect(sorted(view)).toEqual(records);
      expect(view.repairs).toHaveLength(1);
    }
  });

  it('rejects a snapshot whose lines are intact but come from another snapshot', async () => {
    const { dir, records, snapshot } = await stateOfThreeGenerations();
    const [first = '', , ...rest] = await snapshotLines(snapshot);
    const [, other = ''] = await snapshotLines(join(dir, 'snapshot-2'));
    writeFileSync(snapshot, blockOf(joined([first, other, ...rest])));
    const view = await State.read(dir);
    expect(view.repairs).toEqual([expect.stringContaining('snapshot-3 is damaged')]);
    expect(sorted(view)).toEqual(records);
  });

  it('still yields every line of the intact blocks if no snapshot is complete', async () => {
    const { dir, records, snapshot } = await stateOfThreeGenerations();
    await damageBlocks(snapshot, ['"15"', '["u",0,']);
    await damageBlocks(join(dir, 'snapshot-2'), ['{"records"']);
    const view = await State.read(dir);
    expect(sorted(view)).toEqual(records);
    expect(view.repairs).toHaveLength(3);
    expect(view.repairs.at(-1)).toContain('No snapshot is whole');
    for (const name of ['snapshot-2', 'journal-2']) rmSync(join(dir, name));
    expect(sorted(await State.read(dir))).toEqual(records.filter((entry) => entry.path !== '15'));
  });

  it('truncates an unfinished line that a crash left, and reports it', async () => {
    const { dir, records, journal } = await stateOfThreeGenerations();
    const { size } = statSync(journal);
    append(journal, `${lineOf(['-', 'inbox', '1']).slice(0, -3)}\n0000 torn`);
    const torn = statSync(journal).size - size;
    for (const name of ['journal-4.tmp', 'snapshot-3.tmp'])
      writeFileSync(join(dir, name), 'unfinished');
    expect((await State.read(dir)).repairs).toEqual([]);
    const state = await opened(dir);
    expect(state.repairs).toEqual([`The last ${torn} bytes of journal-3 were torn and cut off.`]);
    expect(sorted(state)).toEqual(records);
    expect(statSync(journal).size).toBe(size);
    expect(readdirSync(dir).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    state.put(pendingRecord('new'));
    await state.close();
    expect((await opened(dir)).repairs).toEqual([]);
  });

  it('creates no file through a link that is in its place', async () => {
    const { dir } = await stateOfThreeGenerations();
    const other = join(dir, 'other');
    writeFileSync(other, 'kept');
    const state = await opened(dir);
    for (const kind of ['journal', 'snapshot']) symlinkSync(other, join(dir, `${kind}-4.tmp`));
    state.put(pendingRecord('new'));
    await state.compact();
    await state.close();
    expect(readFileSync(other, 'utf8')).toBe('kept');
    expect(sorted(await State.read(dir)).map(({ path }) => path)).toContain('new');
  });

  it('skips and counts damaged lines among intact ones, and is then compacted', async () => {
    const { dir, records, journal } = await stateOfThreeGenerations();
    const fileLines = linesOf(journal).flatMap((line, i) =>
      line.slice(9).startsWith('"inbox"') ? [i] : [],
    );
    flipInLine(journal, fileLines[1] ?? 0, 30);
    flipInLine(journal, fileLines[6] ?? 0, 3);
    const state = await opened(dir);
    const repair = 'journal-3 has 2 damaged lines; the files of these lines are checked again.';
    expect(state.repairs).toEqual([repair]);
    expect(sorted(state).filter((entry, i) => entry.status !== records[i]?.status)).toHaveLength(2);
    await expectMended(state, dir);
  });

  it('reports which journal is missing', async () => {
    const { dir, journal } = await stateOfThreeGenerations();
    const copy = join(temporaryDirectory(), 'copy');
    cpSync(dir, copy, { recursive: true });
    for (const name of ['snapshot-3', 'journal-2']) rmSync(join(copy, name));
    const view = await State.read(copy);
    expect(view.repairs).toEqual(['journal-2 is missing; its changes are lost.']);
    expect(view.get('inbox', '0')?.status).toBe('confirmed');
    rmSync(journal);
    const state = await opened(dir);
    expect(state.repairs).toEqual(['journal-3 is missing; its changes are lost.']);
    expect(state.entries.size).toBe(FILES);
    state.put(pendingRecord('new'));
    await state.close();
    expect((await State.read(dir)).get('inbox', 'new')).toBeDefined();
  });

  it('still yields the rest if a long stretch of bytes is overwritten', async () => {
    const { dir, journal } = await smallState();
    append(journal, Buffer.alloc(9_000_000, 'x'));
    append(journal, `\n${lineOf(['m', 'after', 1])}`);
    const view = await State.read(dir);
    expect(view.get('inbox', 'a')).toBeDefined();
    expect(view.meta('after')).toBe(1);
    expect(view.repairs).toHaveLength(1);
  });

  it('never loses more than the lines that a wrong byte touches', async () => {
    const { dir, records } = await stateOfThreeGenerations();
    const name = fc.constantFrom(...readdirSync(dir));
    const where = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    await fc.assert(
      fc.asyncProperty(name, where, fc.integer({ min: 1, max: 255 }), async (name, where, mask) => {
        const path = join(dir, name);
        const sound = readFileSync(path);
        flip(path, Math.floor(where * sound.length), mask);
        const view = await State.read(dir);
        writeFileSync(path, sound);
        const wrong = records.filter(({ folder, path, status, version }) => {
          const other = view.get(folder, path);
          return other?.status !== status || other.version.size !== version.size;
        });
        expect(view.entries.size).toBeLessThanOrEqual(records.length);
        expect(wrong.length).toBeLessThanOrEqual(2);
      }),
      { numRuns: 300 },
    );
  });

  it('loses nothing with one of the two lines of a URL base, and only the files of that base with both', async () => {
    const dir = temporaryDirectory();
    const journal = join(dir, 'journal-1');
    const state = await opened(dir);
    state.put(pendingRecord('a'));
    await state.commit();
    state.put(pendingRecord('b', 'other'));
    const { version } = pendingRecord('c');
    const skip = skipped(
      undefined,
      { folder: 'other', path: 'c' },
      version,
      { code: 'C', message: 'm', hint: 'h' },
      0,
    );
    state.put(skip);
    await state.close();
    const bases = linesOf(journal).flatMap((line, i) => (line.includes('["u",0,') ? [i] : []));
    const [first = 0, second = 0] = bases;
    expect(bases).toEqual([first, second]);
    flipInLine(journal, first, 12);
    expect(await pathsOf(dir)).toEqual(['a', 'b', 'c']);
    flipInLine(journal, second, 12);
    const view = await State.read(dir);
    expect(view.get('other', 'b')).toEqual(pendingRecord('b', 'other'));
    expect(await pathsOf(dir)).toEqual(['b', 'c']);
    expect(view.repairs.at(-1)).toBe('The URL base of 1 file is lost; it is new again.');
  });

  it('does not reuse the number of a lost URL base while the journal has files with it', async () => {
    const { dir, journal } = await smallState();
    writeFileSync(journal, readFileSync(journal, 'utf8').replaceAll('["u",0,', '["U",0,'));
    const state = await opened(dir);
    state.put(pendingRecord('b', 'other'));
    await state.close();
    // Simulates a kill before the snapshot that leaves them out.
    rmSync(join(dir, 'snapshot-2'), { force: true });
    expect([...(await State.read(dir)).entries.all()]).toEqual([pendingRecord('b', 'other')]);
  });

  it('is refused if it has a record of an unknown kind', async () => {
    const { dir, journal } = await smallState();
    append(journal, lineOf(['?', 'inbox', 'a']));
    const message = `The state in ${dir} cannot be understood: a record has the unknown status "?".`;
    await expect(State.read(dir)).rejects.toMatchObject({ code: 'STATE_DAMAGED', message });
  });

  it('is refused and left unchanged if no line is intact', async () => {
    const { dir, journal } = await smallState();
    truncateSync(journal, 0);
    append(journal, 'this is not a journal\n');
    const message = `The state in ${dir} cannot be understood: none of its files has a sound header.`;
    await expect(opened(dir)).rejects.toMatchObject({ code: 'STATE_DAMAGED', message });
    expect(readFileSync(journal, 'utf8')).toBe('this is not a journal\n');
  });

  it.each([
    [
      { schema: 3 },
      'STATE_NEWER',
      'was written by a newer peersync (schema 2.3; this one knows 2.2).',
    ],
    [
      { format: 3 },
      'STATE_NEWER',
      'was written by a newer peersync (schema 3.2; this one knows 2.2).',
    ],
    [{ schema: 1 }, 'STATE_DAMAGED', 'cannot be understood: it is from before the first release.'],
  ])(
    'is refused and left unchanged if it has another version (%j)',
    async (version, code, words) => {
      const { dir, journal } = await stateOfThreeGenerations();
      const [header = '', ...rest] = linesOf(journal);
      writeFileSync(
        journal,
        [lineOf({ ...JSON.parse(header.slice(9)), ...version }), ...rest].join(''),
      );
      const copy = join(temporaryDirectory(), 'copy');
      cpSync(dir, copy, { recursive: true });
      const message = `The state in ${dir} ${words}`;
      await expect(opened(dir)).rejects.toMatchObject({ code, message });
      for (const name of readdirSync(copy))
        expect(readFileSync(join(dir, name)).equals(readFileSync(join(copy, name)))).toBe(true);
    },
  );
});

/** Returns the size of the newest journal without its last line, which was acknowledged. */
function beforeLastLine(journal: string): number {
  return statSync(journal).size - Buffer.byteLength(linesOf(journal).at(-1) ?? '');
}

describe('a state that lost data from disk', () => {
  type Files = Awaited<ReturnType<typeof stateOfThreeGenerations>>;

  it.each<readonly [string, (files: Files) => unknown]>([
    ['its journal', ({ journal }) => rmSync(journal)],
    ['all of its journal', ({ journal }) => truncateSync(journal, 0)],
    ['the end of its journal', ({ journal }) => truncateSync(journal, statSync(journal).size - 5)],
    [
      'the last line of its journal',
      ({ journal }) => truncateSync(journal, beforeLastLine(journal)),
    ],
    [
      'a bit of the last line of its journal',
      ({ journal }) => flip(journal, beforeLastLine(journal) + 20),
    ],
    ['the last newline of its journal', ({ journal }) => flip(journal, statSync(journal).size - 1)],
    ['a line in the middle of its journal', ({ journal }) => flipInLine(journal, 3, 30)],
    ['a bit of its snapshot', ({ snapshot }) => flip(snapshot, 400)],
    [
      'its snapshot and its journal',
      ({ snapshot, journal }) => {
        rmSync(snapshot);
        rmSync(journal);
      },
    ],
    [
      'its snapshot, and the previous journal',
      ({ dir, snapshot }) => {
        rmSync(snapshot);
        rmSync(join(dir, 'journal-2'));
      },
    ],
    [
      'a bit of its snapshot, and one of the previous journal',
      ({ dir, snapshot }) => {
        flip(snapshot, 400);
        flipInLine(join(dir, 'journal-2'), 3, 30);
      },
    ],
    [
      'the end of its journal, and the file `acknowledged`',
      ({ dir, journal }) => {
        rmSync(join(dir, 'acknowledged'));
        truncateSync(journal, statSync(journal).size - 5);
      },
    ],
    [
      'the end of its journal, and a bit of the file `acknowledged`',
      ({ dir, journal }) => {
        flip(join(dir, 'acknowledged'), 12);
        truncateSync(journal, statSync(journal).size - 5);
      },
    ],
  ])('records the loss permanently: %s', async (_, damage) => {
    const files = await stateOfThreeGenerations();
    damage(files);
    const clock = new FakeClock();
    const state = await opened(files.dir, { clock });
    expect(state.repairedAt).toBe(clock.now());
    // It is on disk although nothing was committed since.
    expect((await State.read(files.dir)).repairedAt).toBe(clock.now());
    await expectMended(state, files.dir);
    const at = clock.now();
    await clock.advance(1_000);
    expect((await opened(files.dir, { clock })).repairedAt).toBe(at);
  });

  it.each<readonly [string, (files: Files) => unknown]>([
    ['nothing', () => {}],
    [
      'an unacknowledged line that a crash tore',
      ({ journal }) => append(journal, lineOf(['-', 'inbox', '1']).slice(0, -3)),
    ],
    [
      'unacknowledged lines that a crash tore',
      ({ journal }) => append(journal, `xx${lineOf(['-', 'inbox', '1'])}0000 torn`),
    ],
    ['the file `acknowledged`', ({ dir }) => rmSync(join(dir, 'acknowledged'))],
  ])('does not record a loss of %s', async (_, damage) => {
    const files = await stateOfThreeGenerations();
    damage(files);
    const state = await opened(files.dir);
    expect(state.repairedAt).toBeUndefined();
    expect(sorted(state)).toEqual(files.records);
  });
});
