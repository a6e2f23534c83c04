import { readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/state/entry.js';
import type { State } from '../../src/state/state.js';
import { temporaryDirectory } from '../support/temp.js';
import { anyEntry } from './arbitrary.js';
import { opened } from './records.js';

const options = { policy: { compactMinBytes: 3_000, writeBytes: 300 } };

const name = fc.constantFrom('a', 'b', 'd/a', 'd/e/a', 'ü');
type Step =
  | { readonly do: 'put'; readonly path: string; readonly entry: Entry }
  | { readonly do: 'remove'; readonly path: string }
  | { readonly do: 'commit' | 'compact' };
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('put' as const), path: name, entry: anyEntry }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), path: name }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('commit' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('compact' as const) }) },
);
/**
 * The actions between two starts, and how the run ends: how much of the unacknowledged data reached
 * the disk.
 */
const life = fc.record({
  steps: fc.array(step, { maxLength: 15 }),
  unacknowledged: fc.array(step, { maxLength: 4 }),
  survives: fc.double({ min: 0, max: 1, noNaN: true }),
  garbage: fc.oneof(fc.constant(new Uint8Array()), fc.uint8Array({ maxLength: 40 })),
});

/**
 * The records that may be found for each file after a restart: the acknowledged one first, then the
 * unacknowledged ones.
 */
class Model {
  readonly #allowed = new Map<string, (Entry | undefined)[]>();

  change(path: string, entry: Entry | undefined): void {
    this.#allowed.set(path, [...(this.#allowed.get(path) ?? [undefined]), entry]);
  }

  acknowledge(): void {
    for (const [path, allowed] of this.#allowed) this.#allowed.set(path, allowed.slice(-1));
  }

  /** Expects an allowed record for each file. From then on, only the record found is allowed. */
  expect(state: State): void {
    for (const [path, allowed] of this.#allowed) {
      const found = state.get('inbox', path);
      expect(allowed).toContainEqual(found);
      this.#allowed.set(path, [found]);
    }
  }
}

async function perform(state: State, steps: readonly Step[], model: Model): Promise<void> {
  for (const each of steps) {
    if (each.do === 'put') {
      const entry = { ...each.entry, folder: 'inbox', path: each.path } as Entry;
      model.change(each.path, entry);
      state.put(entry);
    } else if (each.do === 'remove') {
      model.change(each.path, undefined);
      state.remove('inbox', each.path);
    } else if (each.do === 'commit') {
      await state.commit();
      model.acknowledge();
    } else {
      await state.compact();
    }
  }
}

function newestJournal(dir: string): string {
  const generations = readdirSync(dir).map((file) =>
    Number(/^journal-(\d+)$/.exec(file)?.[1] ?? 0),
  );
  return join(dir, `journal-${Math.max(...generations)}`);
}

describe('a crash', () => {
  it('never loses an acknowledged change, at whatever unacknowledged byte it cuts the journal', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
        const dir = temporaryDirectory();
        const model = new Model();
        for (const { steps, unacknowledged, survives, garbage } of lives) {
          const state = await opened(dir, options);
          model.expect(state);
          await perform(state, [...steps, { do: 'commit' }], model);
          const journal = newestJournal(dir);
          const { size } = statSync(journal);
          const changes = unacknowledged.filter(
            (each) => each.do === 'put' || each.do === 'remove',
          );
          await perform(state, changes, model);
          await state.close();
          if (newestJournal(dir) !== journal) continue;
          truncateSync(journal, Math.ceil(size + survives * (statSync(journal).size - size)));
          writeFileSync(journal, garbage, { flag: 'a' });
        }
        const state = await opened(dir, options);
        model.expect(state);
        await state.close();
      }),
      { numRuns: 70 },
    );
  });
});
