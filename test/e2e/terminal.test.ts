import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { answers } from '../support/ask.js';
import { type Ended, peersync, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { compiledProgram } from '../support/program.js';
import { peersyncInPath } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';
import { hasTmux, Tmux } from '../support/tmux.js';
import { until } from '../support/wait.js';

const ESC = '\x1b';
/** An environment in which programs use colours. */
const COLOURFUL = { TERM: 'xterm-256color', COLORTERM: 'truecolor', CLICOLOR: '1' };

/**
 * Whether there is a `script` that gives a program a terminal and passes on what it writes there.
 */
const hasScript =
  spawnSync('script', ['-qec', 'test -t 1', '/dev/null'], { stdio: 'ignore' }).status === 0;

/** A folder of some files; a run over them takes `seconds`, if that is given. */
function place(files: number, seconds?: number): { directory: string; config: string } {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'inbox'));
  for (let i = 0; i < files; i += 1)
    writeFileSync(join(directory, 'inbox', `${i}.md`), `words ${i}\n`);
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    ...(seconds === undefined ? {} : { push: { requestsPerSecond: files / seconds, maxItems: 1 } }),
  });
  return { directory, config };
}

function plainly({ stdout, stderr }: Ended, of: string): void {
  expect(stdout, of).not.toContain(ESC);
  expect(stderr, of).not.toContain(ESC);
}

describe('output that is piped has no escape codes', () => {
  it('of help', async () => {
    for (const command of ['', 'once', 'table', 'table get', 'completion']) {
      const args = [...command.split(' ').filter((word) => word !== ''), '--help'];
      const ended = await peersync(args, { env: COLOURFUL });
      expect(ended.code).toBe(0);
      expect(ended.stdout).toContain('--log-level');
      plainly(ended, command);
    }
  }, 120_000);

  it('of any command, with a daemon and without', async () => {
    const { directory, config } = place(3);
    const at = async (...args: string[]) => {
      const ended = await peersync([...args, '-c', config], { cwd: directory, env: COLOURFUL });
      plainly(ended, args.join(' '));
      return ended;
    };
    expect((await at('once')).code).toBe(0);
    expect((await at('verify')).code).toBe(0);
    expect((await at('check')).code).toBe(0);
    expect((await at('list')).stdout).toContain('inbox/0.md');
    expect((await at('why', './nowhere')).code).toBe(1);
    expect((await at('retry', '--all', '--log-level', 'debug')).code).toBe(0);
    const run = new Running(['run', '-c', config, '--log-level', 'debug'], { env: COLOURFUL });
    await answers(join(directory, 'state'));
    expect((await at('table', 'set', 'prices', '--pk', 'oak', 'price=1\x1b[31m')).code).toBe(0);
    expect((await at('table', 'list')).stdout).toContain('prices');
    expect((await at('table', 'get', 'prices', '--format', 'table')).stdout).toContain('oak');
    expect((await at('status')).stdout).toContain('peersync runs');
    expect((await at('rescan')).code).toBe(0);
    expect((await at('mirror')).code).toBe(0);
    expect((await at('verify', '--all')).stdout).toContain('all are there');
    expect((await at('doc', 'https://files.example.org/inbox/0.md')).stdout).toContain(
      'inbox/0.md',
    );
    expect((await at('citation', 'https://files.example.org/inbox/0.md')).code).toBe(0);
    expect(
      (await at('push', 'inbox/0.md', '--collection', 'c', '--url', 'https://x.org/a')).code,
    ).toBe(0);
    expect((await at('no-such-command')).code).toBe(2);
    expect((await at('share', 'get', '--data', 'none')).code).toBe(1);
    plainly(await run.kill('SIGTERM'), 'run');
  }, 400_000);
});

describe.skipIf(!hasScript)('a terminal where colours are unwanted (needs script)', () => {
  /**
   * Returns the output of a command line on a terminal. Presses Ctrl-C once the output contains
   * `until`.
   */
  const inTerminal = async (
    line: string,
    cwd: string,
    env: Readonly<Record<string, string>>,
    until?: string,
  ) => {
    const child = spawn('script', ['-qec', line, '/dev/null'], {
      cwd,
      env: { ...process.env, ...env, ...peersyncInPath() },
    });
    let text = '';
    let isPressed = false;
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      if (until === undefined || isPressed || !text.includes(until)) return;
      isPressed = true;
      child.stdin.write('\x03');
    });
    await new Promise((ended) => child.on('close', ended));
    return text;
  };

  it('has no colours under NO_COLOR, but the bar of once', async () => {
    // It takes long enough for the bar to be drawn before it is full.
    const once = (env: Record<string, string>) =>
      inTerminal('peersync once', place(30, 3).directory, env);
    const text = await once({ ...COLOURFUL, NO_COLOR: '1' });
    expect(text).toContain('30 confirmed');
    expect(text).toContain('█');
    expect(text).not.toMatch(/\[\d+m/);
    expect(await once(COLOURFUL)).toContain('[32m█');
  }, 120_000);

  it('has a bar for a run of mirrors, which is gone with the result', async () => {
    const { directory, config } = place(0);
    const settings = JSON.parse(readFileSync(config, 'utf8'));
    writeFileSync(
      config,
      JSON.stringify({ ...settings, mirror: { tables: [{ table: 'prices' }] } }),
    );
    const text = await inTerminal('peersync mirror', directory, COLOURFUL);
    expect(text).toMatch(/░ +0% 0 mirrors done, \S+, waiting for prices/);
    expect(text).toContain('prices: fails: The peer does not have the table "prices"');
    expect(await inTerminal('peersync mirror --json', directory, COLOURFUL)).not.toContain(ESC);
  }, 120_000);

  it('has colours in status and check, unless they are unwanted', async () => {
    const { directory } = place(0);
    for (const command of ['status', 'check']) {
      expect(await inTerminal(`peersync ${command}`, directory, COLOURFUL), command).toContain(
        `${ESC}[3`,
      );
      for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }])
        expect(
          await inTerminal(`peersync ${command}`, directory, { ...COLOURFUL, ...env }),
        ).not.toContain(ESC);
      expect(
        await inTerminal(`peersync ${command} --no-color`, directory, COLOURFUL),
      ).not.toContain(ESC);
    }
  }, 120_000);

  it('has no bar if it is dumb', async () => {
    const { directory } = place(3);
    const text = await inTerminal('peersync once; peersync verify', directory, { TERM: 'dumb' });
    expect(text).toContain('3 confirmed');
    expect(text).toContain('all are there');
    expect(text).not.toContain(ESC);
  }, 120_000);

  it.each([{ NO_COLOR: '1' }, { TERM: 'dumb' }])(
    'has plain lines in watch under %o',
    async (env) => {
      const { directory } = place(0);
      const text = await inTerminal(
        'peersync watch',
        directory,
        { ...COLOURFUL, ...env },
        'waiting for it',
      );
      expect(text).toMatch(
        /^\d\d:\d\d:\d\d no daemon runs: start it with `peersync run[^`]*`; waiting for it\r\n/,
      );
      expect(text).not.toContain(ESC);
    },
  );
});

it.skipIf(!hasScript)(
  'a terminal is restored again by a second Ctrl-C, which discards output that was not shown yet',
  async () => {
    const program = await compiledProgram('test/support/stopping-program.ts');
    const child = spawn('script', ['-qec', `exec ${process.execPath} ${program}`, '/dev/null'], {
      cwd: resolve(import.meta.dirname, '../..'),
      env: { ...process.env, ...COLOURFUL },
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
    const ended = new Promise((resolve) => child.on('close', resolve));
    await until(() => text.includes('1/2 confirmed'), 'the bar is drawn');
    child.stdin.write('\x03');
    await until(() => text.includes('stopping'), 'the first Ctrl-C is handled');
    const shown = text.length;
    child.stdin.write('\x03');
    await ended;
    expect(text.slice(shown)).toContain(`${ESC}[?25h`);
  },
);

describe.skipIf(!hasTmux)('the bar of once in a terminal (needs tmux)', () => {
  /** Some lines in front, so that nothing is pushed out at the top when lines are broken. */
  const started = async (files: number, seconds: number) => {
    const terminal = new Tmux(120, 30, place(files, seconds).directory);
    terminal.enter('for i in 1 2 3 4 5 6 7 8; do echo "line $i"; done');
    terminal.enter('peersync once; echo "exit code $?"');
    await terminal.shows(/█.*% \d+\/\d+ confirmed/);
    return terminal;
  };
  const bars = (screen: readonly string[]) => screen.filter((line) => /[█░]|\d% /.test(line));

  it('stays one line that fits, through resizes, and leaves nothing behind', async () => {
    const terminal = await started(60, 120);
    expect(terminal.cursorIsShown).toBe(false);
    for (const columns of [70, 50, 30, 90, 120]) {
      terminal.resize(columns, 30);
      await until(() => {
        const [bar, ...more] = bars(terminal.screen);
        return bar !== undefined && more.length === 0 && bar.length < columns;
      }, `one bar fits ${columns} columns`);
    }
    terminal.press('C-c');
    await terminal.shows(/exit code 1/);
    expect(bars(terminal.everything)).toEqual([]);
    expect(terminal.cursorIsShown).toBe(true);
  }, 120_000);

  it('ends with only the result on the screen', async () => {
    const terminal = await started(20, 6);
    await terminal.shows(/20 confirmed, 0 waiting/);
    await terminal.shows(/exit code 0/);
    expect(bars(terminal.everything)).toEqual([]);
    expect(terminal.cursorIsShown).toBe(true);
  }, 120_000);

  it('shows the cursor again when a second Ctrl-C ends it at once', async () => {
    const terminal = await started(60, 120);
    terminal.press('C-c');
    terminal.press('C-c');
    // Which of the two it notices first, and whether the shell goes on with the line then, is a
    // matter of moments.
    await until(
      () => /(\n\$|exit code \d+\n\$)$/.test(terminal.screen.join('\n')),
      'the shell is back',
    );
    expect(terminal.cursorIsShown).toBe(true);
    expect(bars(terminal.everything)).toEqual([]);
  }, 120_000);
});
