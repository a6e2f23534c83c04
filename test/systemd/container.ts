import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { until } from '../support/wait.js';

const repository = resolve(import.meta.dirname, '../..');
/** The directory of this build in the container. */
export const PACKAGE = '/opt/peersync';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A line of the journal. */
export interface JournalLine {
  readonly MESSAGE: string;
  readonly PRIORITY: string;
  readonly SYSLOG_IDENTIFIER?: string;
}

/**
 * A real systemd in a container of its own, with this repository's build in it.
 *
 * Its files are in memory and vanish with it. It has its own network with only a loopback.
 */
export class Container {
  readonly #nspawn: ChildProcess;
  readonly #exited: Promise<unknown>;
  #output = '';
  #init = 0;

  private constructor(root: string) {
    const shown = ['dist', 'node_modules', 'package.json', 'systemd', 'test/systemd'];
    const binds = shown.map((name) => `--bind-ro=${resolve(repository, name)}:${PACKAGE}/${name}`);
    const words = [
      '-D',
      root,
      '--volatile=overlay',
      '--register=no',
      '--keep-unit',
      '--private-network',
      `--machine=peersync-${process.pid}`,
      '--console=pipe',
      '--quiet',
      '--kill-signal=SIGRTMIN+3',
      ...binds,
      `--bind-ro=${process.execPath}:/usr/bin/node`,
      '-b',
    ];
    // Should we be killed, it goes, too.
    const mortal = ['--pdeathsig', 'TERM', 'systemd-nspawn', ...words];
    this.#nspawn = spawn('setpriv', mortal, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#nspawn.stdout, this.#nspawn.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = `${this.#output}${text}`.slice(-20_000);
      });
    this.#exited = new Promise((done) => this.#nspawn.on('close', done));
  }

  static async boot(root: string): Promise<Container> {
    const container = new Container(root);
    try {
      await until(() => container.#findInit(), 'the container has an init');
      await until(async () => {
        const { stdout } = await container.run('systemctl', 'is-system-running');
        return /running|degraded/.test(stdout);
      }, 'the container is up');
    } catch (error) {
      await container.stop();
      throw new Error(`the container did not boot: ${error}\n${container.#output}`);
    }
    return container;
  }

  /** Runs a program in it. */
  run(...words: readonly string[]): Promise<CommandResult> {
    const into = ['-t', String(this.#init), '-m', '-u', '-i', '-n', '-p', '-C', '--'];
    const env = ['env', '-i', `PATH=${PATH}`, 'HOME=/root', 'LANG=C.UTF-8'];
    const child = spawn('nsenter', [...into, ...env, ...words], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    return new Promise((done) => child.on('close', (code) => done({ code, stdout, stderr })));
  }

  /**
   * Runs a line of shell that has to succeed; `$1` and so on are `words`. @returns what it printed
   */
  async sh(line: string, ...words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run('bash', '-ec', line, 'sh', ...words);
    if (code !== 0) throw new Error(`${line}\nended with ${code}:\n${stdout}\n${stderr}`);
    return stdout;
  }

  peersync(...words: readonly string[]): Promise<CommandResult> {
    return this.run('node', `${PACKAGE}/dist/cli.js`, ...words);
  }

  async write(path: string, content: string): Promise<void> {
    await this.sh('mkdir -p "$(dirname "$1")"; printf %s "$2" > "$1"', path, content);
  }

  /** A property of a unit, as `systemctl show` tells it. */
  async show(unit: string, property: string): Promise<string> {
    return (await this.sh('systemctl show -P "$2" "$1"', unit, property)).trim();
  }

  async journal(unit: string): Promise<JournalLine[]> {
    const text = await this.sh('journalctl -u "$1" -o json --no-pager', unit);
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }

  /** Waits until a line of a unit's journal matches, and returns the last one that does. */
  async hears(unit: string, words: RegExp, limitMs = 40_000): Promise<JournalLine> {
    let heard: JournalLine | undefined;
    try {
      await until(
        async () => {
          heard = (await this.journal(unit)).findLast(({ MESSAGE }) => words.test(MESSAGE));
          return heard !== undefined;
        },
        `the journal says ${words}`,
        limitMs,
      );
    } catch (error) {
      const all = (await this.journal(unit)).map(({ MESSAGE }) => MESSAGE).join('\n');
      throw new Error(`${error}\n${all}`);
    }
    if (heard === undefined) throw new Error('not heard');
    return heard;
  }

  async stop(): Promise<void> {
    if (this.#init !== 0) await this.run('systemctl', 'poweroff', '--no-block');
    else this.#nspawn.kill('SIGTERM');
    const gaveUp = setTimeout(() => this.#nspawn.kill('SIGKILL'), 30_000);
    await this.#exited;
    clearTimeout(gaveUp);
  }

  #findInit(): boolean {
    const { pid } = this.#nspawn;
    if (pid === undefined || this.#nspawn.exitCode !== null)
      throw new Error('systemd-nspawn ended');
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    if (!child || !/^(systemd|init)$/.test(readFileSync(`/proc/${child}/comm`, 'utf8').trim()))
      return false;
    this.#init = Number(child);
    return true;
  }
}
