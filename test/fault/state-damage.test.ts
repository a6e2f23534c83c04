import { cpSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import type { Entry } from '../../src/state/entry.js';
import { type AdapterOptions, lineOf as framed } from '../../src/state/journal.js';
import { State, type StateView } from '../../src/state/state.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const options: AdapterOptions = { clock: new FakeClock(), log: silentLogger };
const FILES = 30;
const lineOf = (value: unknown) => framed(JSON.stringify(value));

/** A state of three generations, two of which are still there: 2 and 3, both with snapshot and journal. */
async function stateOfThreeGenerations(): Promise<{ dir: string; records: readonly Entry[] }> {
  const dir = temporaryDirectory();
  const state = await State.open(dir, options);
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
  expect(readdirSync(dir).sort()).toEqual(['journal-2', 'journal-3', 'snapshot-2', 'snapshot-3']);
  return { dir, records };
}

function sorted(view: StateView): readonly Entry[] {
  return [...view.entries.all()].sort((a, b) => Number(a.path) - Number(b.path));
}

function flip(path: string, at: number, mask = 0x10): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(at) ^ mask, at);
  writeFileSync(path, bytes);
}

describe('a damaged state', () => {
  it.each([0, 0.3, 0.999])(
    'falls back from a snapshot with a wrong byte at %d to the one before',
    async (where) => {
      const { dir, records } = await stateOfThreeGenerations();
      const path = join(dir, 'snapshot-3');
      flip(path, Math.floor(where * statSync(path).size));
      const state = await State.open(dir, options);
      expect(sorted(state)).toEqual(records);
      expect(state.repairs).toEqual(['snapshot-3 is damaged; what came before it was read instead.']);
      await until(() => !state.figures().compacting, 'a sound snapshot was written');
      await state.close();
      const again = await State.open(dir, options);
      expect(again.repairs).toEqual([]);
      expect(sorted(again)).toEqual(records);
      await again.close();
    },
  );

  it('falls back from a snapshot that ends too early, at any line', async () => {
    const { dir, records } = await stateOfThreeGenerations();
    const lines = readFileSync(join(dir, 'snapshot-3'), 'utf8').split(/(?<=\n)/);
    for (let kept = 0; kept < lines.length; kept += 4) {
      writeFileSync(join(dir, 'snapshot-3'), lines.slice(0, kept).join(''));
      const view = await State.read(dir);
      expect(sorted(view)).toEqual(records);
      expect(view.repairs).toHaveLength(1);
    }
  });

  it('does not take a snapshot whose lines are sound but of another time', async () => {
    const { dir, records } = await stateOfThreeGenerations();
    const lines = readFileSync(join(dir, 'snapshot-3'), 'utf8').split(/(?<=\n)/);
    const old = readFileSync(join(dir, 'snapshot-2'), 'utf8').split(/(?<=\n)/);
    writeFileSync(join(dir, 'snapshot-3'), [lines[0], old[1], ...lines.slice(2)].join(''));
    const view = await State.read(dir);
    expect(view.repairs).toEqual([expect.stringContaining('snapshot-3 is damaged')]);
    expect(sorted(view)).toEqual(records);
  });

  it('without a whole snapshot still gives all that is sound', async () => {
    const { dir, records } = await stateOfThreeGenerations();
    const lines = readFileSync(join(dir, 'snapshot-3'), 'utf8').split(/(?<=\n)/);
    const hit = lines.findIndex((line) => line.includes('"15"'));
    flip(join(dir, 'snapshot-3'), Buffer.byteLength(lines.slice(0, hit).join('')) + 20);
    flip(join(dir, 'snapshot-2'), statSync(join(dir, 'snapshot-2')).size - 3);
    const view = await State.read(dir);
    expect(sorted(view)).toEqual(records);
    expect(view.repairs).toHaveLength(3);
    rmSync(join(dir, 'snapshot-2'));
    rmSync(join(dir, 'journal-2'));
    expect(sorted(await State.read(dir))).toEqual(records.filter((entry) => entry.path !== '15'));
  });

  it('cuts off what a crash left unfinished, and says so', async () => {
    const { dir, records } = await stateOfThreeGenerations();
    const path = join(dir, 'journal-3');
    const { size } = statSync(path);
    writeFileSync(path, `${lineOf(['-', 'inbox', '1']).slice(0, -3)}\n0000 torn`, { flag: 'a' });
    const torn = statSync(path).size - size;
    expect((await State.read(dir)).repairs).toEqual([]);
    const state = await State.open(dir, options);
    expect(state.repairs).toEqual([`The last ${torn} bytes of journal-3 were torn and cut off.`]);
    expect(sorted(state)).toEqual(records);
    expect(statSync(path).size).toBe(size);
    await state.close();
  });

  it('passes over damaged lines among sound ones, counts them, and writes itself anew', async () => {
    const { dir, records } = await stateOfThreeGenerations();
    const path = join(dir, 'journal-3');
    const lines = readFileSync(path, 'utf8').split(/(?<=\n)/);
    const told = lines.flatMap((line, i) => (line.slice(9).startsWith('"inbox"') ? [i] : []));
    flip(path, Buffer.byteLength(lines.slice(0, told[1]).join('')) + 30);
    flip(path, Buffer.byteLength(lines.slice(0, told[6]).join('')) + 3);
    const state = await State.open(dir, options);
    expect(state.repairs).toEqual([
      'journal-3 has 2 damaged lines; the files they told of are looked at again.',
    ]);
    expect(sorted(state).filter((entry, i) => entry.status !== records[i]?.status)).toHaveLength(2);
    await until(() => !state.figures().compacting, 'a sound snapshot was written');
    await state.close();
    expect((await State.read(dir)).repairs).toEqual([]);
  });

  it('says which journal is missing', async () => {
    const { dir } = await stateOfThreeGenerations();
    rmSync(join(dir, 'journal-3'));
    const state = await State.open(dir, options);
    expect(state.repairs).toEqual(['journal-3 is missing; its changes are lost.']);
    expect(state.entries.size).toBe(FILES);
    state.put(pendingRecord('new'));
    await state.close();
    expect((await State.read(dir)).get('inbox', 'new')).toBeDefined();
  });

  it('with a long stretch of anything in it still gives the rest', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, options);
    state.put(pendingRecord('a'));
    await state.close();
    writeFileSync(join(dir, 'journal-1'), Buffer.alloc(9_000_000, 'x'), { flag: 'a' });
    writeFileSync(join(dir, 'journal-1'), `\n${lineOf(['m', 'after', 1])}`, { flag: 'a' });
    const view = await State.read(dir);
    expect(view.get('inbox', 'a')).toBeDefined();
    expect(view.meta('after')).toBe(1);
    expect(view.repairs).toHaveLength(1);
  });

  it('never loses more than the lines that a wrong byte touches', async () => {
    const { dir, records } = await stateOfThreeGenerations();
    const names = readdirSync(dir);
    const damage = fc.record({
      name: fc.constantFrom(...names),
      where: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      mask: fc.integer({ min: 1, max: 255 }),
    });
    await fc.assert(
      fc.asyncProperty(damage, async ({ name, where, mask }) => {
        const path = join(dir, name);
        const sound = readFileSync(path);
        flip(path, Math.floor(where * sound.length), mask);
        const view = await State.read(dir);
        const found = sorted(view);
        writeFileSync(path, sound);
        const wrong = records.filter((entry) => {
          const other = view.get(entry.folder, entry.path);
          return other?.status !== entry.status || other.version.size !== entry.version.size;
        });
        expect(found.length).toBeLessThanOrEqual(records.length);
        expect(wrong.length).toBeLessThanOrEqual(2);
      }),
      { numRuns: 300 },
    );
  });

  it('loses nothing with one line of a URL base, and only the files of it with both', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, options);
    state.put(pendingRecord('a'));
    await state.commit();
    state.put(pendingRecord('b', 'other'));
    await state.close();
    const path = join(dir, 'journal-1');
    const lines = readFileSync(path, 'utf8').split(/(?<=\n)/);
    const bases = lines.flatMap((line, i) => (line.includes('["u",0,') ? [i] : []));
    expect(bases).toHaveLength(2);
    const at = bases.map((i) => Buffer.byteLength(lines.slice(0, i).join('')) + 12);
    flip(path, at[0] ?? 0);
    expect([...(await State.read(dir)).entries.all('inbox')].map(({ path }) => path)).toEqual(['a']);
    flip(path, at[1] ?? 0);
    const view = await State.read(dir);
    expect([...view.entries.all()]).toEqual([pendingRecord('b', 'other')]);
    expect(view.repairs.at(-1)).toBe('The URL base of 1 file is lost; it is new again.');
  });

  it('gives the number of a lost URL base to no other one, though its files are still in the journal', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, options);
    state.put(pendingRecord('a'));
    await state.close();
    const path = join(dir, 'journal-1');
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('["u",0,', '["U",0,'));
    const after = await State.open(dir, options);
    after.put(pendingRecord('b', 'other'));
    await after.close();
    // As after a kill before the snapshot that leaves them out.
    rmSync(join(dir, 'snapshot-2'), { force: true });
    expect([...(await State.read(dir)).entries.all()]).toEqual([pendingRecord('b', 'other')]);
  });

  it('with a record of a kind that nobody knows is refused', async () => {
    const dir = temporaryDirectory();
    await (await State.open(dir, options)).close();
    writeFileSync(join(dir, 'journal-1'), lineOf(['?', 'inbox', 'a']), { flag: 'a' });
    await expect(State.read(dir)).rejects.toMatchObject({
      code: 'STATE_DAMAGED',
      message: `The state in ${dir} cannot be understood: a record has the unknown status "?".`,
    });
  });

  it('in which nothing is sound is refused and left as it is', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, options);
    state.put(pendingRecord('a'));
    await state.close();
    truncateSync(join(dir, 'journal-1'), 0);
    writeFileSync(join(dir, 'journal-1'), 'this is not a journal\n');
    await expect(State.open(dir, options)).rejects.toMatchObject({
      code: 'STATE_DAMAGED',
      message: `The state in ${dir} cannot be understood: none of its files has a sound header.`,
    });
    expect(readFileSync(join(dir, 'journal-1'), 'utf8')).toBe('this is not a journal\n');
  });
});

describe('the version of a state', () => {
  /** Changes the header of a file as another version would have written it. */
  function rewriteHeader(path: string, change: object): void {
    const [first = '', ...rest] = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, [lineOf({ ...JSON.parse(first.slice(9)), ...change }).trimEnd(), ...rest].join('\n'));
  }

  it.each([{ schema: 3 }, { format: 2 }])(
    'that is newer (%j) is refused and left as it is',
    async (newer) => {
      const { dir } = await stateOfThreeGenerations();
      rewriteHeader(join(dir, 'journal-3'), newer);
      const copy = join(temporaryDirectory(), 'copy');
      cpSync(dir, copy, { recursive: true });
      await expect(State.open(dir, options)).rejects.toMatchObject({
        code: 'STATE_NEWER',
        message: expect.stringMatching(
          /was written by a newer peersync \(schema (1\.3|2\.2); this one knows 1\.2\)/,
        ),
      });
      for (const name of readdirSync(copy)) {
        expect(readFileSync(join(dir, name)).equals(readFileSync(join(copy, name)))).toBe(true);
      }
    },
  );
});
