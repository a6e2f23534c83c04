import { describe, expect, it, onTestFinished } from 'vitest';
import { PeersyncError } from '../../src/lib/errors.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import type { Peerdoc } from '../../src/peer/peerdoc.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { type Answer, type Judge, LookUp, type Verdict } from '../../src/uplink/look-up.js';
import { LookUpLoop } from '../../src/uplink/look-up-loop.js';
import { LookUpPass } from '../../src/uplink/look-up-pass.js';
import { FakeClock } from '../support/fake-clock.js';
import { failing, unreachable } from '../support/fake-peer.js';
import { QUICK } from '../support/uplink-world.js';
import { deferred } from '../support/wait.js';

const HOLD_MS = 10_000;
const MAX_INTERVAL_MS = 1_000;

type Shown = 'expected' | 'other' | PeersyncError;

/** Judges documents by their title, and records what it is called with. */
class TitleJudge implements Judge<string, string> {
  readonly settledAt = new Map<string, number>();
  readonly titles: string[] = [];
  readonly failures: string[] = [];
  again: 'later' | 'atOnce' | 'never' = 'later';
  provisionalMs = 0;
  onDecision: () => Promise<void> | void = () => {};
  /** Called when the judge acts on an answer that counts. */
  onSettled: (key: string) => void = () => {};

  constructor(readonly clock: FakeClock) {}

  judge(look: LookUp<string>, answer: Answer): Verdict<string> {
    if (answer.kind !== 'document') return { kind: 'unusable', why: answer.failure.message };
    const { title = '' } = answer.doc ?? {};
    this.titles.push(`${look.subject}: ${title}`);
    return title === 'other'
      ? { kind: 'unexpected', why: 'the peer shows another one' }
      : { kind: 'expected', found: title, provisionalMs: this.provisionalMs };
  }

  async settled(look: LookUp<string>): Promise<void> {
    this.settledAt.set(look.subject, this.clock.now());
    this.onSettled(look.subject);
  }

  async whenAgain(_: LookUp<string>, answer: Answer) {
    if (answer.kind !== 'document') this.failures.push(answer.kind);
    await this.onDecision();
    return this.again;
  }

  async unsettled() {}
}

/**
 * A look-up loop on a fake clock, at a peer that answers with the title `expected` unless a test
 * has it give another answer. It is apart from a world because a test asserts each millisecond at
 * which the peer is asked: nothing else may use the clock.
 */
class LookUpSetup {
  readonly clock = new FakeClock();
  readonly began = this.clock.now();
  readonly judge = new TitleJudge(this.clock);
  readonly asked: { readonly urls: readonly string[]; readonly atMs: number }[] = [];
  readonly #stopping = new AbortController();
  readonly loop: LookUpLoop<string, string>;
  readonly deps: UplinkDeps;
  answer: (url: string, times: number) => Shown | Promise<Shown> = () => 'expected';
  isPushing = false;

  constructor({
    holdMs = HOLD_MS,
    isEmbedded = false,
    maxInMemory = 100,
    maxWaitForPushMs = 0,
  }: {
    readonly holdMs?: number;
    readonly isEmbedded?: boolean;
    readonly maxInMemory?: number;
    readonly maxWaitForPushMs?: number;
  } = {}) {
    const peerdocs = async (urls: readonly string[]) => {
      this.asked.push({ urls, atMs: this.clock.now() - this.began });
      return await Promise.all(urls.map((url) => this.#show(url)));
    };
    this.deps = {
      clock: this.clock,
      dialect: { current: DIALECTS.standard },
      settings: {
        ...QUICK,
        confirm: { ...QUICK.confirm, hold: holdMs, maxInterval: MAX_INTERVAL_MS },
      },
      queue: {
        run: (_: string, request: (signal: AbortSignal) => unknown) =>
          request(this.#stopping.signal),
        ready: async () => {},
        hasRoom: () => true,
        isBusy: () => this.isPushing,
      },
      peer: { peerdoc: async ({ url }: { url: string }) => (await peerdocs([url]))[0] },
      embeddedPeer: isEmbedded ? { peerdocs } : undefined,
    } as unknown as UplinkDeps;
    this.loop = new LookUpLoop(this.deps, this.judge, {
      name: 'test',
      what: 'nothing is looked up',
      maxInMemory,
      maxWaitForPushMs,
      entries: async function* () {},
      onFound: () => {},
    });
  }

  async #show(url: string): Promise<Peerdoc> {
    const times = this.asked.filter(({ urls }) => urls.includes(url)).length;
    const title = await this.answer(url, times);
    if (title instanceof PeersyncError) throw title;
    return { url, title, at: this.clock.now(), fields: {} };
  }

  start(): this {
    const running = this.loop.run(this.#stopping.signal);
    onTestFinished(async () => {
      this.#stopping.abort();
      await this.clock.advance(1);
      await running;
    });
    return this;
  }

  /** Stops the loop, as the end of the test does otherwise. */
  stop(): void {
    this.#stopping.abort();
  }

  look(key: string, dueInMs = 0, mode: 'new' | 'unexpected' = 'new'): LookUp<string> {
    const url = `https://x.example/${key}`;
    return new LookUp(key, { key, url, due: this.clock.now() + dueInMs, mode });
  }

  /** The times at which the peer was asked, in ms since the start. */
  get times(): readonly number[] {
    return this.asked.map(({ atMs }) => atMs);
  }

  /** The time at which the look-up ended with an answer that counted, in ms since the start. */
  settledAt(key: string): number | undefined {
    const at = this.judge.settledAt.get(key);
    return at === undefined ? undefined : at - this.began;
  }
}

describe('a look-up', () => {
  it('is not made before it is due, and ends with its first expected answer', async () => {
    const setup = new LookUpSetup().start();
    setup.loop.add(setup.look('a', 500));
    await setup.clock.advance(499);
    expect(setup.times).toEqual([]);
    await setup.clock.advance(60_000);
    expect([setup.times, setup.settledAt('a')]).toEqual([[500], 500]);
    expect(setup.loop.isIdle).toBe(true);
  });

  it('is repeated at intervals that double up to confirm.maxInterval', async () => {
    const setup = new LookUpSetup().start();
    setup.answer = () => 'other';
    setup.loop.add(setup.look('a'));
    await setup.clock.advance(4_500);
    const intervals = setup.times.map((at, i) => at - (setup.times[i - 1] ?? 0));
    expect(intervals).toEqual([0, 200, 400, 800, 1_000, 1_000, 1_000]);
  });

  it.each([
    ['its answer was unexpected', 'new', ['other'], 200 + HOLD_MS],
    ['an earlier answer may have been unexpected', 'unexpected', [], HOLD_MS],
  ] as const)(
    'counts only when the answer is the same another hold later, after %s',
    async (_, mode, before, settledAt) => {
      const setup = new LookUpSetup().start();
      setup.answer = (_, times) => before[times - 1] ?? 'expected';
      setup.loop.add(setup.look('a', 0, mode));
      await setup.clock.advance(settledAt - 1);
      expect(setup.settledAt('a')).toBeUndefined();
      expect(setup.loop.get('a')?.mode).toBe('settling');
      await setup.clock.advance(1);
      expect(setup.settledAt('a')).toBe(settledAt);
      expect(setup.times).toHaveLength(before.length + 2);
    },
  );

  it('settles anew if the answer is unexpected at the end of the hold', async () => {
    const setup = new LookUpSetup().start();
    setup.answer = (_, times) => (times === 2 ? 'other' : 'expected');
    setup.loop.add(setup.look('a', 0, 'unexpected'));
    await setup.clock.advance(HOLD_MS);
    expect(setup.loop.get('a')?.mode).toBe('unexpected');
    await setup.clock.advance(60_000);
    expect(setup.settledAt('a')).toBe(HOLD_MS + 200 + HOLD_MS);
  });

  it('does not count while the document itself shows that it is within the hold', async () => {
    const setup = new LookUpSetup().start();
    setup.judge.provisionalMs = 3_000;
    setup.loop.add(setup.look('a'));
    await setup.clock.advance(2_999);
    expect(setup.settledAt('a')).toBeUndefined();
    setup.judge.provisionalMs = 0;
    await setup.clock.advance(1);
    expect(setup.settledAt('a')).toBe(3_000);
  });

  it.each(['new', 'unexpected'] as const)(
    'that fails is repeated, and changes nothing about the hold in mode %s',
    async (mode) => {
      const setup = new LookUpSetup().start();
      setup.answer = (_, times) => (times === 1 ? unreachable('no') : 'expected');
      setup.loop.add(setup.look('a', 0, mode));
      await setup.clock.advance(60_000);
      expect(setup.settledAt('a')).toBe(mode === 'new' ? 200 : 200 + HOLD_MS);
    },
  );

  it('fails because of the peer, unless the peer answered others since its last failure', async () => {
    const setup = new LookUpSetup().start();
    setup.answer = (url) => (url.endsWith('bad') ? failing() : 'expected');
    setup.loop.add(setup.look('bad'));
    await setup.clock.advance(500);
    expect(setup.judge.failures).toEqual(['peerFailed', 'peerFailed']);
    setup.loop.add(setup.look('good'));
    await setup.clock.advance(1_000);
    expect(setup.judge.failures.slice(2)).toEqual(['documentFailed', 'peerFailed']);
  });

  it('ends if the judge says so', async () => {
    const setup = new LookUpSetup().start();
    setup.answer = () => 'other';
    setup.judge.again = 'never';
    setup.loop.add(setup.look('a'));
    await setup.clock.advance(60_000);
    expect([setup.times.length, setup.loop.isIdle]).toEqual([1, true]);
  });

  it.each(['before its answer', 'while the judge decides about its answer'])(
    'that is replaced %s has no effect any more',
    async (when) => {
      const setup = new LookUpSetup().start();
      const [answered, acted] = [deferred(), deferred()];
      setup.answer = async (_, times) => {
        if (times > 1) return 'expected';
        await answered.promise;
        return 'other';
      };
      setup.judge.onDecision = () => acted.promise;
      setup.loop.add(setup.look('a'));
      await setup.clock.advance(0);
      if (when !== 'before its answer') answered.resolve();
      await setup.clock.advance(0);
      const next = setup.look('a', 30_000);
      setup.loop.add(next);
      answered.resolve();
      acted.resolve();
      await setup.clock.advance(29_999);
      expect(setup.loop.get('a')).toBe(next);
      expect(setup.judge.titles).toHaveLength(when === 'before its answer' ? 0 : 1);
      expect(setup.times).toHaveLength(1);
      await setup.clock.advance(1);
      expect(setup.settledAt('a')).toBe(30_000);
    },
  );
});

describe('the look-up loop', () => {
  it('has no look-up of a document any more when the judge acts, so another one may begin', async () => {
    const setup = new LookUpSetup().start();
    let known: LookUp<string> | undefined = setup.look('a');
    setup.judge.onSettled = (key) => {
      known = setup.loop.get(key);
      if (setup.times.length < 2) setup.loop.add(setup.look(key, 1_000));
    };
    setup.loop.add(setup.look('a'));
    await setup.clock.advance(60_000);
    expect(known).toBeUndefined();
    expect([setup.times, setup.settledAt('a')]).toEqual([[0, 1_000], 1_000]);
  });

  it('gives each document its own answer if it asks for several in one request', async () => {
    const setup = new LookUpSetup({ isEmbedded: true });
    setup.answer = (url) => (url.endsWith('1') ? 'other' : 'expected');
    for (const key of ['a0', 'a1', 'a2']) setup.loop.add(setup.look(key));
    setup.start();
    await setup.clock.advance(100);
    expect(setup.asked.map(({ urls }) => urls.length)).toEqual([3]);
    expect(setup.judge.titles).toEqual(['a0: expected', 'a1: other', 'a2: expected']);
    expect(['a0', 'a1', 'a2'].map((key) => setup.settledAt(key))).toEqual([0, undefined, 0]);
  });

  it('waits for pushes to end, for a limited time', async () => {
    const setup = new LookUpSetup({ maxWaitForPushMs: 10_000 }).start();
    setup.isPushing = true;
    setup.loop.add(setup.look('a'));
    await setup.clock.advance(4_000);
    setup.loop.add(setup.look('b'));
    await setup.clock.advance(5_999);
    expect(setup.times).toEqual([]);
    await setup.clock.advance(1);
    expect(setup.asked).toEqual([{ urls: ['https://x.example/a'], atMs: 10_000 }]);
    setup.isPushing = false;
    setup.loop.notify();
    await setup.clock.advance(0);
    expect(setup.settledAt('b')).toBe(10_000);
  });

  it('drops evictable look-ups beyond its limit, but not one that settles', async () => {
    const setup = new LookUpSetup({ maxInMemory: 2 }).start();
    const evictable = (key: string, dueInMs: number, mode: 'new' | 'unexpected' = 'new') => {
      const due = setup.clock.now() + dueInMs;
      return new LookUp(key, { key, url: key, due, mode, isEvictable: true });
    };
    setup.loop.add(evictable('a', 0, 'unexpected'));
    for (const key of ['b', 'c', 'd']) setup.loop.add(evictable(key, 60_000));
    await setup.clock.advance(0);
    const kept = ['a', 'b', 'c', 'd'].filter((key) => setup.loop.get(key) !== undefined);
    expect(kept).toEqual(['a', 'b', 'c']);
    expect(setup.loop.get('a')?.mode).toBe('settling');
    expect(setup.loop.hasOverflowed).toBe(true);
    await setup.clock.advance(HOLD_MS);
    expect(setup.settledAt('a')).toBe(HOLD_MS);
  });

  it('begins no look-up after the stop', async () => {
    const setup = new LookUpSetup().start();
    setup.answer = () => 'other';
    for (const key of ['a', 'b']) setup.loop.add(setup.look(key, 1_000));
    await setup.clock.advance(1_000);
    expect(setup.times).toHaveLength(2);
    setup.stop();
    await setup.clock.advance(60_000);
    expect(setup.times).toHaveLength(2);
  });
});

describe('a pass of look-ups', () => {
  function passOf(setup: LookUpSetup, signal?: AbortSignal): LookUpPass<string, string> {
    return new LookUpPass(setup.deps, setup.judge, {
      lane: 'audit',
      concurrency: 2,
      holdMs: () => HOLD_MS,
      signal,
    });
  }

  async function* looksOf(setup: LookUpSetup, count: number) {
    for (let i = 0; i < count; i += 1) yield setup.look(`f${i}`, 0, 'unexpected');
  }

  it('takes the next look-ups only when the consumer wants their results', async () => {
    const setup = new LookUpSetup();
    const groups = passOf(setup).run(looksOf(setup, 9));
    await groups.next();
    await setup.clock.advance(60_000);
    expect(setup.asked).toHaveLength(2);
    await groups.next();
    await groups.return(undefined);
    await setup.clock.advance(60_000);
    expect(setup.asked).toHaveLength(4);
  });

  it('begins no look-up after the stop, in the stream or again', async () => {
    const setup = new LookUpSetup();
    const stopping = new AbortController();
    const pass = passOf(setup, stopping.signal);
    const groups = pass.run(looksOf(setup, 9));
    await groups.next();
    expect(pass.waiting).toHaveLength(2);
    stopping.abort();
    expect(await groups.next()).toMatchObject({ done: true });
    await pass.again();
    expect(setup.asked).toHaveLength(2);
  });

  it('repeats the look-ups that wait after the hold, and each once if their answers stay the same', async () => {
    const setup = new LookUpSetup();
    const pass = passOf(setup);
    for await (const _ of pass.run(looksOf(setup, 3)));
    const again = pass.again();
    await setup.clock.advance(HOLD_MS - 1);
    expect(setup.asked).toHaveLength(3);
    await setup.clock.advance(1);
    await again;
    expect(setup.times.slice(3)).toEqual([HOLD_MS, HOLD_MS, HOLD_MS]);
    expect(setup.judge.settledAt.size).toBe(3);
    expect(pass.waiting).toEqual([]);
  });
});
