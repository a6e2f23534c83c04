import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Progress, progressLine, type Step } from '../../src/cli/progress.js';
import { displayWidth } from '../../src/cli/text.js';
import { silentLogger } from '../../src/lib/logger.js';
import { FakeClock } from '../support/fake-clock.js';
import { compiledProgram } from '../support/program.js';
import { FakeTerminal } from '../support/terminal.js';

const step = (done: number, total = 2_000): Step => ({
  done,
  total,
  parts: [`${done}/${total} confirmed`, '700 to push', '60 to confirm', '3 quarantined'],
});

function textAt(columns: number, of = step(1_240)): string {
  return progressLine(of, 85, columns);
}

describe('the line of progress', () => {
  it('has a bar, the share, the counts, the rate and what time is left', () => {
    expect(textAt(140)).toBe(
      `${'█'.repeat(18)}${'░'.repeat(12)}  62% 1240/2000 confirmed, 700 to push, 60 to confirm, 3 quarantined, 85/s, 9s left`,
    );
  });

  it('is shorter than any terminal, and leaves out what matters least first', () => {
    for (let columns = 1; columns <= 200; columns += 1)
      expect(displayWidth(textAt(columns)), `${columns}`).toBeLessThanOrEqual(
        Math.max(1, columns - 1),
      );
    expect(textAt(80)).toMatch(
      /^█+░+ {2}62% 1240\/2000 confirmed, 700 to push, 60 to confirm, 85\/s, 9s left$/,
    );
    expect(textAt(60)).toMatch(/^█+░+ {2}62% 1240\/2000 confirmed, 85\/s, 9s left$/);
    expect(textAt(45)).toMatch(/^█+░+ {2}62% 1240\/2000 confirmed, 9s left$/);
    expect(textAt(28)).toBe(' 62% 1240/2000 confirmed');
    expect(textAt(10)).toBe(' 62% 124…');
  });

  it('says no time while more may come, or nothing moves', () => {
    expect(progressLine({ ...step(10), growing: true }, 85)).not.toContain('left');
    expect(progressLine(step(10), 0)).not.toContain('/s');
    expect(progressLine(step(10), undefined)).not.toContain('/s');
    expect(progressLine(step(2_000), 85)).not.toContain('left');
    expect(progressLine(step(0, 0), undefined)).toContain('  0% 0/0 confirmed');
  });
});

describe('on a terminal', () => {
  const start = (columns: number, env: NodeJS.ProcessEnv = {}) => {
    const terminal = new FakeTerminal(columns);
    terminal.write('$ peersync once\n');
    return { terminal, progress: new Progress(terminal, new FakeClock(), env) };
  };

  it('is one line that is drawn in place, with the cursor hidden, and leaves nothing behind', () => {
    const { terminal, progress } = start(100);
    for (const done of [0, 500, 1_999, 2_000]) progress.show(step(done));
    expect(terminal.screen).toEqual([
      '$ peersync once',
      expect.stringMatching(/^█+ 100% 2000\/2000 confirmed/),
    ]);
    expect(terminal.cursorIsShown).toBe(false);
    progress.end();
    terminal.write('done\n');
    expect(terminal.screen).toEqual(['$ peersync once', 'done']);
    expect(terminal.cursorIsShown).toBe(true);
    expect(terminal.listenerCount('resize')).toBe(0);
  });

  it('stays one line when the terminal gets narrower, and uses the room when it gets wider', () => {
    const { terminal, progress } = start(120);
    progress.show(step(1_000));
    for (const columns of [60, 30, 12, 5, 90, 119, 20, 140]) {
      terminal.resize(columns);
      const last = terminal.screen.at(-1) ?? '';
      expect(terminal.screen.join('').split('%'), `${columns}`).toHaveLength(columns === 5 ? 1 : 2);
      expect(last.length).toBeLessThan(columns);
      if (columns > 80) expect(last).toContain('60 to confirm');
    }
    progress.end();
    expect(terminal.screen).toEqual(['$ peersync once']);
  });

  it('goes as a whole, also when it was broken in two and could not be drawn anew', () => {
    const { terminal, progress } = start(120);
    progress.show(step(1_000));
    terminal.removeAllListeners('resize');
    terminal.resize(30);
    expect(terminal.screen.length).toBeGreaterThan(3);
    progress.end();
    expect(terminal.screen).toEqual(['$ peersync once']);
  });

  it('is cut, not wrapped, where the terminal is narrower than it said', () => {
    const { terminal } = start(40);
    const said = {
      isTTY: true,
      columns: 120,
      write: (text: string) => terminal.write(text),
      on() {},
      off() {},
    };
    const progress = new Progress(said, new FakeClock(), {});
    progress.show(step(1_000));
    progress.show(step(1_001));
    expect(terminal.screen).toHaveLength(2);
    progress.end();
  });

  it('makes room for the log, and draws again with the next step', () => {
    const { terminal, progress } = start(100);
    progress.show(step(1));
    const log = progress.beside({
      ...silentLogger,
      warn: (_fields, message) => void terminal.write(`WARN ${message}\n`),
    });
    log.warn({}, 'trouble');
    expect(terminal.screen).toEqual(['$ peersync once', 'WARN trouble']);
    progress.show(step(1));
    expect(terminal.screen).toEqual([
      '$ peersync once',
      'WARN trouble',
      expect.stringContaining('1/2000'),
    ]);
  });

  it('has no colour under NO_COLOR', () => {
    const coloured = start(100);
    coloured.progress.show(step(1_000));
    expect(coloured.terminal.written).toContain('\x1b[32m');
    const plain = start(100, { NO_COLOR: '1' });
    plain.progress.show(step(1_000));
    expect(plain.terminal.written).not.toContain('m█');
    expect(plain.terminal.written).toContain('\r█');
    coloured.progress.end();
    plain.progress.end();
  });

  it('tells no rate and no time while the peer is away', async () => {
    const clock = new FakeClock();
    const terminal = new FakeTerminal(140);
    const progress = new Progress(terminal, clock, {});
    for (let done = 0; done <= 100; done += 1) {
      progress.show(step(done));
      await clock.advance(100);
    }
    expect(terminal.screen.at(-1)).toMatch(/quarantined, 10\/s, 3m 10s left$/);
    progress.show({ ...step(100), heldUp: true });
    expect(terminal.screen.at(-1)).toMatch(/quarantined$/);
    progress.end();
  });

  it('that is dumb, or no terminal, is told in plain lines now and then', async () => {
    for (const [isTTY, env] of [
      [true, { TERM: 'dumb' }],
      [false, {}],
    ] as const) {
      const clock = new FakeClock();
      let written = '';
      const stream = { isTTY, write: (text: string) => (written += text), on() {}, off() {} };
      const progress = new Progress(stream, clock, env);
      for (let done = 0; done <= 120; done += 1) {
        progress.show(step(done));
        await clock.advance(100);
      }
      progress.end();
      expect(written).toBe(
        '2% 50/2000 confirmed, 700 to push, 60 to confirm, 3 quarantined\n' +
          '5% 100/2000 confirmed, 700 to push, 60 to confirm, 3 quarantined, 10/s, 3m 10s left\n',
      );
    }
  });
});

it('a terminal that was drawn on has its cursor back after an error that nobody caught', async () => {
  const program = await compiledProgram('test/support/drawing-program.ts');
  const cwd = resolve(join(import.meta.dirname, '../..'));
  const { status, stdout } = spawnSync(process.execPath, [program], { cwd, encoding: 'utf8' });
  expect(stdout).toContain('%');
  expect(stdout.endsWith('\x1b[?25h')).toBe(true);
  expect(status).toBe(1);
});
