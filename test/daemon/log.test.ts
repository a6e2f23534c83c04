import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { DaemonLog } from '../../src/daemon/log-repeats.js';
import { FakeClock } from '../support/fake-clock.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe('the log', () => {
  let program = '';
  beforeAll(async () => {
    program = await compiledProgram('test/daemon/talking-program.ts');
  });

  /**
   * Returns the text that a program writes to its standard output, or to its standard error if it
   * has a task.
   */
  async function outputOf(
    envOf: (journal: string) => NodeJS.ProcessEnv,
    ...task: string[]
  ): Promise<string> {
    const file = join(temporaryDirectory(), 'log');
    const fd = openSync(file, 'w');
    const { dev, ino } = fstatSync(fd);
    const { JOURNAL_STREAM: _, ...env } = process.env;
    const child = spawn(process.execPath, [program, ...task], {
      env: { ...env, ...envOf(`${dev}:${ino}`) },
      stdio: ['ignore', task.length === 0 ? fd : 'ignore', task.length === 0 ? 'inherit' : fd],
    });
    closeSync(fd);
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(0);
    return readFileSync(file, 'utf8');
  }

  it('writes one line per event with its priority to a journal, whatever the text contains', async () => {
    const lines = (await outputOf((journal) => ({ JOURNAL_STREAM: journal })))
      .trimEnd()
      .split('\n');
    expect(lines).toEqual([
      '<7>a detail',
      '<6>confirmed inbox/größe.txt (1s after its push)',
      '<4>two | lines,\\x1b[31m red and\\x07 a bell\\u202e\\x9b',
      '<3>broken',
      expect.stringMatching(/^<3>the thread broke down: no \| Error: no \| at /),
    ]);
  });

  it('writes JSON if the journal is another file', async () => {
    const text = await outputOf((journal) => ({ JOURNAL_STREAM: `${journal}0` }));
    const lines = text.trimEnd().split('\n');
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(parsed.map(({ level }) => level)).toEqual([20, 30, 40, 50, 50]);
    const msg = 'confirmed inbox/größe.txt (1s after its push)';
    expect(parsed[1]).toMatchObject({ event: 'confirmed', msg });
    expect(text).not.toMatch(/[\u202e\u009b]/);
    expect(parsed[2]?.msg).toContain('\u202e\u009b');
  });

  it('has the format that PEERSYNC_LOG names', async () => {
    expect(await outputOf(() => ({ PEERSYNC_LOG: 'journal' }))).toMatch(
      /^<7>a detail\n<6>confirmed/,
    );
    const asked = { PEERSYNC_LOG: 'pretty', NO_COLOR: '1' };
    const pretty = await outputOf((journal) => ({ ...asked, JOURNAL_STREAM: journal }));
    expect(pretty).toMatch(/^\[\d\d:\d\d:\d\d\] DEBUG: a detail\n/);
    expect(pretty).toContain('] WARN: two | lines,\\x1b[31m red and\\x07 a bell\\u202e\\x9b\n');
    expect(pretty.trimEnd().split('\n')).toHaveLength(5);
  });

  it('gives each line of a failed command the priority of errors in a journal', async () => {
    const text = await outputOf((journal) => ({ JOURNAL_STREAM: journal }), 'complain');
    expect(text).toBe('<3>peersync: It did not go well.\n<3>  Do it again.\n');
  });
});

/** A log whose lines a test reads, as `level: message`. */
class LogSetup {
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
    const log = { debug, info: say('info'), warn: say('warn'), error: say('error') };
    this.log = new DaemonLog(log, this.clock);
  }

  /** Returns the lines since the last call, after a time. */
  async after(ms: number): Promise<string[]> {
    if (ms > 0) await this.clock.advance(ms);
    return this.lines.splice(0);
  }

  confirm(count: number): void {
    for (let i = 0; i < count; i += 1)
      this.log.info(
        { event: 'confirmed', folder: 'f', path: `${i}.txt` },
        `confirmed f/${i}.txt (1s after)`,
      );
  }

  quarantine(count: number, code = 'UNREADABLE', folder = 'f'): void {
    for (let i = 0; i < count; i += 1)
      this.log.warn(
        { event: 'quarantined', folder, path: `${i}`, code },
        `quarantined ${folder}/${i}: No.`,
      );
  }
}

const MORE = 'more like this in the last';

describe('confirmed files', () => {
  it('have a line each if they are few', async () => {
    const setup = new LogSetup();
    for (let i = 0; i < 5; i += 1) {
      setup.confirm(10);
      expect(await setup.after(5 * SECOND + 1)).toHaveLength(10);
    }
  });

  it('are counted if very many come at once, and have a line each again afterwards', async () => {
    const setup = new LogSetup();
    setup.confirm(4_532);
    expect(await setup.after(0)).toHaveLength(20);
    expect(setup.debugLines).toBe(4_512);
    expect(await setup.after(10 * SECOND)).toEqual([
      'info: confirmed 4,512 more files of folder "f" in the last 10s',
    ]);
    expect(setup.fields.at(-1)).toEqual({
      folder: 'f',
      event: 'repeated',
      of: 'confirmed',
      count: 4_512,
    });
    setup.confirm(100);
    expect(await setup.after(0)).toEqual([]);
    expect(await setup.after(10 * SECOND)).toEqual([
      'info: confirmed 100 more files of folder "f" in the last 10s',
    ]);
    setup.confirm(1);
    expect(await setup.after(10 * SECOND)).toEqual([
      'info: confirmed 1 more file of folder "f" in the last 10s',
    ]);
    setup.confirm(1);
    expect(await setup.after(0)).toEqual(['info: confirmed f/0.txt (1s after)']);
    expect(setup.clock.waiting).toBe(0);
  });
});

describe('repeated failures', () => {
  it('are logged a few times, then counted: after 10 s, 10 min, and every hour', async () => {
    const setup = new LogSetup();
    setup.quarantine(10_000);
    expect(await setup.after(0)).toHaveLength(5);
    const first = `warn: 9,995 ${MORE} 10s, the last one: quarantined f/9999: No.`;
    expect(await setup.after(10 * SECOND)).toEqual([first]);
    setup.quarantine(3);
    expect(await setup.after(10 * MINUTE - 1)).toEqual([]);
    expect(await setup.after(1)).toEqual([
      `warn: 3 ${MORE} 10m, the last one: quarantined f/2: No.`,
    ]);
    for (let hour = 0; hour < 3; hour += 1) {
      setup.quarantine(1_234);
      const words = `warn: 1,234 ${MORE} 1h, the last one: quarantined f/1233: No.`;
      expect(await setup.after(HOUR)).toEqual([words]);
    }
    expect(await setup.after(HOUR)).toEqual([]);
    setup.quarantine(1);
    expect(await setup.after(0)).toEqual(['warn: quarantined f/0: No.']);
    expect(setup.debugLines).toBe(9_995 + 3 + 3 * 1_234);
  });

  it('with another code, folder or level are counted separately', () => {
    const setup = new LogSetup();
    setup.quarantine(10);
    setup.quarantine(2, 'NOT_SHOWN');
    setup.quarantine(2, 'UNREADABLE', 'other');
    setup.log.error({ event: 'quarantined', folder: 'f', code: 'UNREADABLE' }, 'an error');
    expect(setup.lines).toHaveLength(5 + 2 + 2 + 1);
  });

  it('that come back now and then, such as every hour, are all logged', async () => {
    const setup = new LogSetup();
    for (let i = 0; i < 20; i += 1) {
      setup.log.warn(
        { kind: 'unreachable', tries: i },
        `The peer still does not answer after ${i}h.`,
      );
      await setup.clock.advance(HOUR);
    }
    expect(setup.lines).toHaveLength(20);
  });

  it('without a code are similar if they have the same words apart from names, paths and numbers', () => {
    const setup = new LogSetup();
    for (let i = 0; i < 50; i += 1) {
      setup.log.error({ err: i }, `Looking at /data/in ${i}/x failed: EIO after ${i}ms`);
      setup.log.warn({ path: `a b/${i} c` }, `the mail "${i} to X" in a b/${i} c is lost`);
      setup.log.warn({}, 'the mail is late');
    }
    expect(setup.lines).toHaveLength(15);
  });

  it('of very many kinds use bounded memory, and every line is still logged or counted', () => {
    const setup = new LogSetup();
    for (let i = 0; i < 3_000; i += 1)
      for (let j = 0; j < 7; j += 1) setup.log.warn({ code: `C${i}` }, `failure ${i}`);
    expect(setup.clock.waiting).toBeLessThanOrEqual(500);
    setup.log.flush();
    expect(setup.lines).toHaveLength(3_000 * 6);
  });

  it('are logged or counted in any order of lines and times', async () => {
    const step = fc.record({
      code: fc.constantFrom('A', 'B'),
      times: fc.nat({ max: 12 }),
      after: fc.constantFrom(0, SECOND, 10 * SECOND, 9 * MINUTE, 2 * HOUR),
      level: fc.constantFrom('info' as const, 'warn' as const),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        const setup = new LogSetup();
        let sum = 0;
        for (const { code, times, after, level } of steps) {
          for (let i = 0; i < times; i += 1) setup.log[level]({ code }, 'a line');
          sum += times;
          await setup.clock.advance(after);
        }
        setup.log.flush();
        const counted = setup.fields.map((fields) =>
          'count' in fields ? Number(fields.count) : 1,
        );
        expect(counted.reduce((a, b) => a + b, 0)).toBe(sum);
      }),
      { numRuns: 30 },
    );
  });
});

it('the last 200 lines from info up are kept as they were logged', () => {
  const setup = new LogSetup();
  setup.log.debug({}, 'a detail');
  for (let i = 1; i <= 300; i += 1)
    setup.log.info({ event: 'confirmed', folder: `${i}` }, `file ${i}`);
  expect(setup.log.recents).toHaveLength(200);
  const at = setup.clock.now();
  const first = { id: 101, at, level: 'info', message: 'file 101', event: 'confirmed' };
  expect(setup.log.recents[0]).toEqual(first);
});
