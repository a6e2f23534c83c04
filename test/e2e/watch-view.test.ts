import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { hasTmux, Tmux } from '../support/tmux.js';
import { until } from '../support/wait.js';

/** A place with a configuration, and how to start a daemon there. */
function place() {
  const directory = temporaryDirectory();
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
  });
  const run = async () => {
    const daemon = new Running(['run', '-c', config]);
    await daemon.says('pushing to the embedded peer');
    return daemon;
  };
  const drop = (name: string) =>
    writeFileSync(join(directory, 'inbox', name), `the words of ${name}\n`);
  return { directory, config, run, drop };
}

describe.skipIf(!hasTmux)('watch in a terminal (needs tmux)', () => {
  it('shows the daemon through resizes and restarts, pauses it with p, and restores the terminal', async () => {
    const { directory, drop, run } = place();
    const daemon = await run();
    const terminal = new Tmux(110, 30, directory);
    terminal.enter('echo BE""FORE');
    terminal.enter('peersync watch');
    await terminal.shows(/peersync {2}runs for/);
    await terminal.shows(/peer +answers/);
    expect(terminal).toMatchObject({ isAlternate: true, cursorIsShown: false });
    drop('first.md');
    await terminal.shows(/1 confirmed/);
    await terminal.shows(/confirmed inbox\/first\.md/);
    for (const [columns, rows] of [
      [60, 14],
      [20, 5],
      [132, 40],
      [80, 24],
    ] as const) {
      terminal.resize(columns, rows);
      // The keys stand on the last line, whatever the size.
      await until(() => {
        const { screen } = terminal;
        const heads = screen.filter((line) => line.startsWith('peersync'));
        return (
          screen.length === rows &&
          heads.length === 1 &&
          screen[0]?.startsWith('peersync  runs') === true &&
          screen.at(-1)?.startsWith('q quit') === true
        );
      }, `it fits ${columns}x${rows}`);
    }
    expect((await daemon.kill('SIGTERM')).code).toBe(0);
    await terminal.shows(/the daemon went away; waiting for it/);
    await terminal.shows(/what it said last/);
    const again = await run();
    await terminal.shows(/peersync {2}runs for/);
    await terminal.shows(/peer +answers/);
    terminal.press('p');
    await terminal.shows(/paused: files are watched, the peer is left alone/);
    await terminal.shows(/peer +is left alone: paused for/);
    drop('second.md');
    await terminal.shows(/1 pending/);
    terminal.press('p');
    await terminal.shows(/2 confirmed/);
    await terminal.shows(/peer +answers/);
    terminal.press('q');
    await until(() => !terminal.isAlternate, 'it left the other screen');
    terminal.enter('echo exit code $?');
    await terminal.shows(/exit code 0/);
    expect(terminal.cursorIsShown).toBe(true);
    expect(terminal.screen.join('\n')).toMatch(
      /BEFORE\n[\s\S]*\$ peersync watch\n[\s\S]*exit code 0/,
    );
    expect(terminal.everything.join('\n')).not.toContain('answers');
    await again.kill('SIGTERM');
  }, 180_000);

  /** A watch whose process is known, in a terminal. */
  async function watching() {
    const { directory } = place();
    const terminal = new Tmux(80, 20, directory);
    terminal.enter(`sh -c 'echo $$ > pid; exec peersync watch'; echo "exit code $?"`);
    await terminal.shows(/no daemon runs: start it with `peersync run/);
    return { terminal, pid: Number(readFileSync(join(directory, 'pid'), 'utf8')) };
  }

  it.each(['C-c', 'C-d', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'restores the terminal at %s',
    async (how) => {
      const { pid, terminal } = await watching();
      if (how === 'C-c' || how === 'C-d') terminal.press(how);
      else process.kill(pid, how);
      await terminal.shows(how === 'SIGHUP' ? /exit code 129/ : /exit code 0/);
      expect(terminal).toMatchObject({ isAlternate: false, cursorIsShown: true });
    },
  );
});

describe('watch without a terminal', () => {
  it('prints plain lines, waits for a daemon, and ends with 0', async () => {
    const { config, drop, run } = place();
    const watch = new Running(['watch', '-c', config]);
    await watch.says(/no daemon runs: start it with `peersync run -c [^`]+`; waiting for it/);
    // Longer than from one line to the next while a daemon runs.
    await new Promise((resolve) => setTimeout(resolve, 7_000));
    expect(watch.stdout.match(/no daemon runs/g)).toHaveLength(1);
    const daemon = await run();
    drop('a.md');
    await watch.says(/\d\d:\d\d:\d\d 1 confirmed, 0 pending, .* the peer answers\n/);
    const { code, stdout, stderr } = await watch.kill('SIGINT');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).not.toContain('\x1b');
    await daemon.kill('SIGTERM');
  });

  it('prints the events of the daemon as JSON', async () => {
    const { config, drop, run } = place();
    const daemon = await run();
    const watch = new Running(['watch', '-c', config, '--json']);
    drop('a.md');
    await watch.says(/"confirmed":1/);
    await watch.says('"kind":"recents"');
    const { code, stdout } = await watch.kill('SIGTERM');
    expect(code).toBe(0);
    const kinds = stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { kind: string }).kind);
    expect(kinds).toEqual(expect.arrayContaining(['status', 'recents']));
    await daemon.kill('SIGTERM');
  });
});
