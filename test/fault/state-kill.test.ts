import { resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { isItem } from '../../src/state/entry.js';
import { State, type StateView } from '../../src/state/state.js';
import { Running } from '../support/cli.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const FILES = 301;
let program: string;

/** A process that writes to a state without end. */
class Writer extends Running {
  constructor(dir: string) {
    super([dir, String(FILES)], { program });
  }

  /** The last change that it said is on disk. */
  get acknowledged(): number {
    const whole = this.stdout.slice(0, this.stdout.lastIndexOf('\n') + 1);
    return Math.max(0, ...(whole.match(/^\d+$/gm) ?? []).map(Number));
  }
}

/** Each file is as its last acknowledged change left it, or as the change after that did. */
function expectAcknowledged(view: StateView, acknowledged: number): void {
  expect(Number(view.meta('number') ?? 0)).toBeGreaterThanOrEqual(acknowledged);
  for (let change = Math.max(1, acknowledged - FILES + 1); change <= acknowledged; change += 1) {
    const file = change % FILES;
    const found = view.get('inbox', `${file % 7}/${file}`);
    const allowed = [change, change + FILES].map((n) => (n % 11 === 0 ? undefined : n));
    expect(allowed).toContain(found !== undefined && isItem(found) ? found.attempts : undefined);
  }
}

beforeAll(async () => {
  program = await compiledProgram(resolve(import.meta.dirname, 'state-writer.ts'));
});

describe('a state whose process is killed', () => {
  it('has everything that was said to be on disk, 20 times over', async () => {
    const dir = temporaryDirectory();
    let acknowledged = 0;
    for (let round = 0; round < 20; round += 1) {
      const writer = new Writer(dir);
      const before = acknowledged;
      await until(() => writer.acknowledged > before + round * 15, 'the writer got going');
      await writer.kill('SIGKILL');
      acknowledged = writer.acknowledged;
      expectAcknowledged(await State.read(dir), acknowledged);
    }
    const state = await State.open(dir, { clock: systemClock, log: silentLogger });
    expectAcknowledged(state, acknowledged);
    expect(state.figures().generation).toBeGreaterThan(5);
    await state.close();
  });

  it('can be read at any moment while it is written and compacted', async () => {
    const dir = temporaryDirectory();
    const writer = new Writer(dir);
    await until(() => writer.acknowledged > 0, 'the writer got going');
    for (let i = 0; i < 60; i += 1) {
      const { acknowledged } = writer;
      const view = await State.read(dir);
      expect(view.repairs).toEqual([]);
      expect(Number(view.meta('number'))).toBeGreaterThanOrEqual(acknowledged);
      expect(view.entries.size).toBeGreaterThan(0);
    }
    await writer.kill('SIGKILL');
  });
});
