import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/**
 * Programs of a few lines of shell, in a directory of their own. What they start can be found among
 * all processes, and what counts its calls has a line for each.
 */
export class MarkedPrograms {
  /** The directory of the programs, for PATH. */
  readonly directory: string;
  readonly #mark: string;

  /** @param directory an existing directory */
  constructor(private readonly root: string) {
    this.directory = join(root, 'programs');
    this.#mark = `PEERSYNC_TEST_MARK=${this.directory}`;
    mkdirSync(this.directory);
  }

  /** Writes a program. @param lines what the shell runs @returns its path */
  add(name: string, lines: string): string {
    const path = join(this.directory, name);
    writeFileSync(path, `#!/bin/sh\nexport ${quoted(this.#mark)}\n${lines}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  /** Writes a program that becomes another one, and counts its calls. */
  addCounted(name: string, program: string): string {
    const log = quoted(this.#log(name));
    return this.add(name, `printf '%s\\n' "$*" >> ${log}\nexec ${quoted(program)} "$@"`);
  }

  /** The arguments of each call of a counted program. */
  calls(name: string): readonly string[] {
    const log = this.#log(name);
    return existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : [];
  }

  /** The command lines of all processes that these programs are, or that they started. */
  running(): readonly string[] {
    return readdirSync('/proc').flatMap((pid) => {
      if (!/^\d+$/.test(pid)) return [];
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        // A process that ended and is not waited for has no command.
        if (command === '') return [];
        const isOurs = command.includes(this.directory) || this.#isMarked(pid);
        return isOurs ? [`${pid} ${command.trim()}`] : [];
      } catch {
        // It ended meanwhile, or belongs to another user.
        return [];
      }
    });
  }

  #isMarked(pid: string): boolean {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(this.#mark);
  }

  #log(name: string): string {
    return join(this.root, `${name}.calls`);
  }
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
