import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LANES, type Lane, type Outcome } from '../../src/queue/options.js';
import { Bad, openQueue, settle, slots } from './queue-setup.js';

const KINDS = ['answered', 'unreachable', 'failing', 'busy', 'denied'] as const;

type Step =
  | { readonly do: 'run'; readonly lane: Lane; readonly abortable: boolean }
  | { readonly do: 'end'; readonly which: number; readonly kind: (typeof KINDS)[number] }
  | { readonly do: 'abort'; readonly which: number }
  | { readonly do: 'limit'; readonly concurrency: number }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'pause' | 'resume' | 'tryNow' };

const doing = <T extends string>(...what: T[]) => fc.constantFrom(...what);
const which = fc.nat(20);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: doing('run'),
      lane: fc.constantFrom(...LANES),
      abortable: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: doing('end'),
      which,
      kind: doing('answered', 'answered', ...KINDS),
    }),
  },
  fc.record({ do: doing('abort'), which }),
  fc.record({ do: doing('limit'), concurrency: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ do: doing('wait'), ms: fc.integer({ min: 1, max: 20_000 }) }),
  fc.record({ do: doing('pause', 'resume', 'tryNow') }),
);

test('whatever happens, requests start within the limits of their lane, none that may start is left waiting, and all end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      let concurrency = 3;
      const { queue, clock } = openQueue({ lanes: slots(concurrency) });
      const running: { readonly lane: Lane; readonly end: (kind: Outcome['kind']) => void }[] = [];
      const callers: AbortController[] = [];
      const ends: Promise<unknown>[] = [];
      const wrong: string[] = [];
      let settled = 0;
      const onSettled = () => {
        settled += 1;
      };
      const work = (lane: Lane) => (signal: AbortSignal) =>
        new Promise<void>((resolve, reject) => {
          const status = queue.status();
          if (status.lanes[lane].running > concurrency)
            wrong.push(`more than the concurrency of ${lane}`);
          if (lane !== 'interactive' && status.paused !== undefined) wrong.push('while paused');
          const entry = {
            lane,
            end: (kind: Outcome['kind']) => {
              running.splice(running.indexOf(entry), 1);
              if (kind === 'answered') resolve();
              else reject(new Bad({ kind }));
            },
          };
          running.push(entry);
          signal.addEventListener('abort', () => running.includes(entry) && entry.end('aborted'));
        });
      for (const what of steps) {
        if (what.do === 'run') {
          const caller = new AbortController();
          if (what.abortable) callers.push(caller);
          const end = queue.run(
            what.lane,
            work(what.lane),
            what.abortable ? { signal: caller.signal } : {},
          );
          ends.push(end.then(onSettled, onSettled));
        }
        if (what.do === 'end') running[what.which % running.length]?.end(what.kind);
        if (what.do === 'abort') callers[what.which % callers.length]?.abort(new Error('enough'));
        if (what.do === 'limit') {
          concurrency = what.concurrency;
          queue.limit({ lanes: slots(concurrency) });
        }
        if (what.do === 'wait') await clock.advance(what.ms);
        if (what.do === 'pause') queue.pause({ since: clock.now() });
        if (what.do === 'resume') queue.resume();
        if (what.do === 'tryNow') queue.tryNow();
        await settle();
        expect(wrong).toEqual([]);
        for (const lane of LANES)
          expect(queue.mayStart(lane), `${lane} after ${what.do}`).toBe(false);
      }
      queue.resume();
      for (let i = 0; i < 200 && settled < ends.length; i += 1) {
        for (const { end } of [...running]) end('answered');
        await clock.advance(300_000);
      }
      expect(settled).toBe(ends.length);
      await queue.stop(0);
      expect(clock.waiting).toBe(0);
    }),
    { numRuns: 60 },
  );
}, 60_000);
