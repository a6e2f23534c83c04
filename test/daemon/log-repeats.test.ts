import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DaemonLog } from '../../src/daemon/log-repeats.js';
import { FakeClock } from '../support/fake-clock.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

class Said {
  readonly clock = new FakeClock();
  readonly lines: string[] = [];
  readonly fields: object[] = [];
  debugLines = 0;
  readonly log: DaemonLog;

  constructor() {
    const say = (level: string) => (fields: object, message: string) => {
      this.lines.push(`${level}: ${message}`);
      this.fields.push(fields);
    };
    const debug = () => {
      this.debugLines += 1;
    };
    this.log = new DaemonLog(
      { debug, info: say('info'), warn: say('warn'), error: say('error') },
      this.clock,
    );
  }

  /** What was said since this was last asked. */
  news(): string[] {
    return this.lines.splice(0);
  }

  confirm(count: number): void {
    for (let i = 0; i < count; i += 1)
      this.log.info({ event: 'confirmed', folder: 'f', path: `${i}.txt` }, `confirmed f/${i}.txt (1s after)`);
  }

  quarantine(count: number, code = 'UNREADABLE', folder = 'f'): void {
    for (let i = 0; i < count; i += 1)
      this.log.warn({ event: 'quarantined', folder, path: `${i}`, code }, `quarantined ${folder}/${i}: No.`);
  }
}

describe('files that are confirmed', () => {
  it('have a line each, as long as they are few', async () => {
    const said = new Said();
    for (let i = 0; i < 50; i += 1) {
      said.confirm(10);
      await said.clock.advance(5 * SECOND + 1);
    }
    expect(said.lines).toHaveLength(500);
    expect(said.debugLines).toBe(0);
  });

  it('are counted when very many come at once, and have a line each again afterwards', async () => {
    const said = new Said();
    said.confirm(4_532);
    expect(said.news()).toHaveLength(20);
    expect(said.debugLines).toBe(4_512);
    await said.clock.advance(10 * SECOND);
    expect(said.news()).toEqual(['info: confirmed 4,512 more files of f in the last 10s']);
    expect(said.fields.at(-1)).toEqual({ folder: 'f', event: 'repeated', of: 'confirmed', count: 4_512 });
    said.confirm(100);
    expect(said.news()).toEqual([]);
    await said.clock.advance(10 * SECOND);
    expect(said.news()).toEqual(['info: confirmed 100 more files of f in the last 10s']);
    said.confirm(1);
    await said.clock.advance(10 * SECOND);
    expect(said.news()).toEqual(['info: confirmed 1 more file of f in the last 10s']);
    said.confirm(1);
    expect(said.news()).toEqual(['info: confirmed f/0.txt (1s after)']);
    expect(said.clock.waiting).toBe(0);
  });
});

describe('trouble', () => {
  it('is said a few times, then counted: after 10 s, 10 min, and every hour', async () => {
    const said = new Said();
    said.quarantine(10_000);
    expect(said.news()).toHaveLength(5);
    await said.clock.advance(10 * SECOND);
    expect(said.news()).toEqual([
      'warn: 9,995 more like this in the last 10s, the last one: quarantined f/9999: No.',
    ]);
    said.quarantine(3);
    await said.clock.advance(10 * MINUTE - 1);
    expect(said.news()).toEqual([]);
    await said.clock.advance(1);
    expect(said.news()).toEqual([
      'warn: 3 more like this in the last 10m, the last one: quarantined f/2: No.',
    ]);
    for (let hour = 0; hour < 3; hour += 1) {
      said.quarantine(1_234);
      await said.clock.advance(HOUR);
      expect(said.news()).toEqual([
        'warn: 1,234 more like this in the last 1h, the last one: quarantined f/1233: No.',
      ]);
    }
    await said.clock.advance(HOUR);
    expect(said.news()).toEqual([]);
    said.quarantine(1);
    expect(said.news()).toEqual(['warn: quarantined f/0: No.']);
    expect(said.debugLines).toBe(9_995 + 3 + 3 * 1_234);
  });

  it('of another code, folder or level is said by itself', () => {
    const said = new Said();
    said.quarantine(10);
    said.quarantine(2, 'NOT_SHOWN');
    said.quarantine(2, 'UNREADABLE', 'other');
    said.log.error({ event: 'quarantined', folder: 'f', code: 'UNREADABLE' }, 'an error');
    expect(said.news()).toHaveLength(5 + 2 + 2 + 1);
  });

  it('that comes back now and then, as every hour, is said each time', async () => {
    const said = new Said();
    for (let i = 0; i < 20; i += 1) {
      said.log.warn({ kind: 'unreachable', tries: i }, `The peer still does not answer after ${i}h.`);
      await said.clock.advance(HOUR);
    }
    expect(said.lines).toHaveLength(20);
  });

  it('without a code is alike when it has the same words, whatever the names, paths and numbers', () => {
    const said = new Said();
    for (let i = 0; i < 50; i += 1) {
      said.log.error({ err: i }, `Looking at /data/in ${i}/x failed: EIO after ${i}ms`);
      said.log.warn({ path: `a b/${i} c` }, `the mail "${i} to X" in a b/${i} c is lost`);
      said.log.warn({}, 'the mail is late');
    }
    expect(said.news()).toHaveLength(15);
  });

  it('is counted to the end when the daemon stops', async () => {
    const said = new Said();
    said.quarantine(30);
    said.confirm(30);
    said.news();
    said.log.flush();
    expect(said.news()).toEqual([
      'warn: 25 more like this in the last 10s, the last one: quarantined f/29: No.',
      'info: confirmed 10 more files of f in the last 10s',
    ]);
    expect(said.clock.waiting).toBe(0);
  });

  it('of very many kinds takes bounded room, and each line is still said or counted', async () => {
    const said = new Said();
    for (let i = 0; i < 3_000; i += 1)
      for (let j = 0; j < 7; j += 1) said.log.warn({ code: `C${i}` }, `trouble ${i}`);
    expect(said.clock.waiting).toBeLessThanOrEqual(500);
    said.log.flush();
    expect(said.lines).toHaveLength(3_000 * 6);
  });

  it('is said or counted, whatever comes when', async () => {
    const step = fc.record({
      code: fc.constantFrom('A', 'B'),
      times: fc.nat({ max: 12 }),
      after: fc.constantFrom(0, SECOND, 10 * SECOND, 9 * MINUTE, 2 * HOUR),
      level: fc.constantFrom('info' as const, 'warn' as const),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        const said = new Said();
        let sum = 0;
        for (const { code, times, after, level } of steps) {
          for (let i = 0; i < times; i += 1) said.log[level]({ code }, 'a line');
          sum += times;
          await said.clock.advance(after);
        }
        said.log.flush();
        const counted = said.fields.map((fields) => ('count' in fields ? Number(fields.count) : 1));
        expect(counted.reduce((a, b) => a + b, 0)).toBe(sum);
      }),
      { numRuns: 30 },
    );
  });
});

it('the last 200 lines from info up are remembered, as they were said', () => {
  const said = new Said();
  said.log.debug({}, 'a detail');
  for (let i = 1; i <= 300; i += 1) said.log.info({ event: 'confirmed', folder: `${i}` }, `file ${i}`);
  expect(said.lines).toHaveLength(300);
  expect(said.log.recents).toHaveLength(200);
  expect(said.log.recents[0]).toEqual({
    ...{ id: 101, at: said.clock.now(), level: 'info', message: 'file 101', event: 'confirmed' },
  });
});
