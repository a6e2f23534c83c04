import { spawn } from 'node:child_process';
import { closeSync, fstatSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { systemClock } from '../../lib/clock.js';
import { messageOf, systemCode } from '../../lib/errors.js';
import type { PageStore } from '../page-store.js';
import type { Lack, Programs } from './programs.js';

/** A program to run. */
export interface Call {
  /** Absolute path. */
  readonly program: string;
  readonly args: readonly string[];
  /** The standard input. It is empty by default. */
  readonly input?: Uint8Array;
  /** Environment variables besides those that all programs have. */
  readonly env?: Readonly<Record<string, string>>;
  /** Maximum size of the standard output, in bytes. */
  readonly maxOutputBytes: number;
  /** Maximum time, in ms; also the maximum processor time, if `prlimit` is installed. */
  readonly timeoutMs: number;
}

/** Thrown if a program fails. The message is a reason without a full stop. */
export class ProgramError extends Error {
  constructor(
    readonly kind: 'failed' | 'timeout' | 'output' | 'not started',
    message: string,
  ) {
    super(message);
  }
}

/**
 * Thrown if the system is short of disk space, memory or processes. That says nothing about the
 * document, which is read again later.
 */
export class ShortageError extends Error {}

/** Signals by which the system, or a stop of the service, ends a program. */
const SIGNALS_FROM_OUTSIDE = new Set<NodeJS.Signals | null>([
  'SIGHUP',
  'SIGINT',
  'SIGKILL',
  'SIGTERM',
]);

/**
 * Maximum memory of a program that it may write to, in bytes. Address space that it only reserves,
 * as Java and Node do, does not count.
 */
const MAX_PROGRAM_BYTES = 2 ** 30;
/** Maximum size of a file that a program writes, in bytes. */
const MAX_FILE_BYTES = 2 ** 30;
/**
 * Time in which the output of a program that ended must end, in ms. After it, another process that
 * the program left behind holds it open.
 */
const OUTPUT_END_MS = 1_000;
/** Number of characters at the end of the error output that are kept. */
const ERROR_CHARACTERS = 2_000;

/**
 * Runs programs that read a document, inside the process that reads it.
 *
 * A program runs without a shell, in a private directory that is removed after the document. Its
 * environment has nothing but PATH, the language, and the directory for temporary files. It belongs
 * to the process group of this process and has its low priority. The group ends with this process:
 * the daemon kills it when this process has ended, and this process kills it when the daemon is
 * gone. So no program outlives the daemon, unless it leaves the group by itself (`setsid`).
 */
export class Tools {
  #directory: string | undefined;
  /**
   * Whether a program was killed, or left another process behind. Then this process must end before
   * it reads another document, so that the whole group ends.
   */
  needsRestart = false;
  /**
   * Whether a program was ended from outside. That says nothing about the document: this process
   * must end without an answer, as if it had been ended itself.
   */
  wasEnded = false;
  /** Why another reading may find more of the document. Its readers add to it. */
  readonly lacks = new Set<Lack>();

  /**
   * @param directory an existing directory for private files
   * @param pages the pages that were read by OCR; undefined if none are kept
   * @param onWaiting called with true when this process begins to wait for a program, and with
   *   false when it goes on
   */
  constructor(
    readonly programs: Programs,
    private readonly directory: string,
    readonly pages?: PageStore,
    private readonly onWaiting: (isWaiting: boolean) => void = () => {},
  ) {}

  /**
   * Writes a private file.
   *
   * @returns its absolute path
   * @throws ShortageError
   */
  file(name: string, bytes: Uint8Array): string {
    const path = this.pathOf(name);
    orShortage(() => writeFileSync(path, bytes, { mode: 0o600 }));
    return path;
  }

  /** Returns the absolute path of the private file with a name. It need not be there. */
  pathOf(name: string): string {
    return join(this.#privateDirectory(), name);
  }

  /** Removes the private files. */
  close(): void {
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true });
    this.#directory = undefined;
  }

  /**
   * Runs a program.
   *
   * @returns its standard output
   * @throws ProgramError
   * @throws ShortageError
   */
  async run(call: Call): Promise<Buffer> {
    return await this.#run(call, 'pipe', MAX_FILE_BYTES);
  }

  /**
   * Runs a program whose standard output is for another program. It goes to a new private file:
   * megabytes that pass through this process would take more processor time than some programs.
   * Without `prlimit`, nothing would limit that file, so that they pass through it all the same.
   *
   * @param name the name of the file
   * @returns its absolute path
   * @throws ProgramError
   * @throws ShortageError
   */
  async runToFile(call: Call, name: string): Promise<string> {
    if (this.programs.prlimit === undefined) return this.file(name, await this.run(call));
    const path = this.pathOf(name);
    const output = orShortage(() => openSync(path, 'wx', 0o600));
    try {
      await this.#run(call, output, call.maxOutputBytes);
    } catch (error) {
      // The program ends by SIGXFSZ, or by an error of its own if it ignores that signal.
      const isFull = fstatSync(output).size >= call.maxOutputBytes;
      if (isFull && error instanceof ProgramError && error.kind === 'failed')
        throw new ProgramError('output', tooMuch(call));
      throw error;
    } finally {
      closeSync(output);
    }
    return path;
  }

  /**
   * @param stdout a pipe, whose content is returned, or an open file
   * @param maxFileBytes maximum size of a file that the program writes
   */
  async #run(call: Call, stdout: 'pipe' | number, maxFileBytes: number): Promise<Buffer> {
    const { args, env, input, maxOutputBytes, program, timeoutMs } = call;
    const name = basename(program);
    const directory = this.#privateDirectory();
    const [command, ...words] = [...this.#limits(timeoutMs, maxFileBytes), program, ...args];
    const output: Buffer[] = [];
    let size = 0;
    let errors = '';
    /** Why the program was killed. */
    let killedFor: ProgramError | undefined;
    const ended = await new Promise<{ code: number | null; signal: NodeJS.Signals | null }>(
      (resolve, reject) => {
        const child = orShortage(() =>
          spawn(command ?? program, words, {
            cwd: directory,
            env: {
              PATH: process.env.PATH,
              LANG: process.env.LANG ?? 'C.UTF-8',
              TMPDIR: directory,
              ...env,
            },
            stdio: ['pipe', stdout, 'pipe'],
          }),
        );
        const kill = (kind: 'timeout' | 'output', message: string) => {
          killedFor ??= new ProgramError(kind, message);
          this.needsRestart = true;
          child.kill('SIGKILL');
        };
        const limit = systemClock.after(timeoutMs, () =>
          kill('timeout', `${name} takes longer than ${Math.round(timeoutMs / 1000)} s`),
        );
        // A program may end without reading all of its input.
        for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.on('error', () => {});
        child.stdout?.on('data', (bytes: Buffer) => {
          size += bytes.length;
          if (size <= maxOutputBytes) output.push(bytes);
          else kill('output', tooMuch(call));
        });
        child.stderr?.on('data', (bytes: Buffer) => {
          errors = `${errors}${bytes}`.slice(-ERROR_CHARACTERS);
        });
        child.stdin?.end(input);
        this.onWaiting(true);
        child.once('error', (error) => {
          limit.cancel();
          reject(
            SHORTAGES.has(systemCode(error) ?? '')
              ? new ShortageError(messageOf(error))
              : new ProgramError('not started', `${name} cannot be started (${messageOf(error)})`),
          );
        });
        child.once('exit', () => {
          limit.cancel();
          const left = systemClock.after(OUTPUT_END_MS, () => {
            this.needsRestart = true;
            child.stdout?.destroy();
            child.stderr?.destroy();
          });
          child.once('close', () => left.cancel());
        });
        child.once('close', (code, signal) => resolve({ code, signal }));
      },
    ).finally(() => this.onWaiting(false));
    if (killedFor !== undefined) throw killedFor;
    const { code, signal } = ended;
    if (code === 0) return Buffer.concat(output);
    if (SIGNALS_FROM_OUTSIDE.has(signal)) this.wasEnded = true;
    // `prlimit` ends like this if it cannot start the program.
    if (code === 126 || code === 127)
      throw new ProgramError('not started', `${name} cannot be started (${lastLine(errors)})`);
    const how = signal === null ? `ended with code ${code}` : `was ended by ${signal}`;
    const why = lastLine(errors);
    throw new ProgramError('failed', `${name} ${how}${why === '' ? '' : ` (${why})`}`);
  }

  #privateDirectory(): string {
    this.#directory ??= orShortage(() => mkdtempSync(join(this.directory, 'document-')));
    return this.#directory;
  }

  /** Returns the command that limits a program. */
  #limits(timeoutMs: number, maxFileBytes: number): readonly string[] {
    const { prlimit } = this.programs;
    if (prlimit === undefined) return [];
    const seconds = Math.ceil(timeoutMs / 1000);
    const sizes = [`--data=${MAX_PROGRAM_BYTES}`, `--fsize=${maxFileBytes}`];
    // At the first limit a program gets SIGXCPU, and at the second one SIGKILL.
    return [prlimit, ...sizes, `--cpu=${seconds}:${seconds + 5}`, '--core=0', '--'];
  }
}

function tooMuch({ maxOutputBytes, program }: Call): string {
  return `${basename(program)} writes more than ${maxOutputBytes} bytes`;
}

/** Codes of errors of a system that is short of something. */
const SHORTAGES = new Set(['EAGAIN', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC']);

/** @throws ShortageError */
function orShortage<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!SHORTAGES.has(systemCode(error) ?? '')) throw error;
    throw new ShortageError(messageOf(error), { cause: error });
  }
}

/** Returns the last line with words, which becomes part of a sentence. */
function lastLine(errors: string): string {
  const lines = errors.split('\n').map((line) => line.trim());
  return (lines.findLast((line) => /\w/.test(line)) ?? '').slice(0, 200).replace(/[.\s]+$/, '');
}
