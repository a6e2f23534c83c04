import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';
import { type LocaleVariables, localeLanguages } from './languages.js';
import { type Command, HELPERS, NO_PROGRAMS, type OcrProgram, type Programs } from './programs.js';

/** The part of the configuration that decides which programs are used. */
export interface ProgramSettings {
  readonly ocr: 'auto' | 'off';
  /** Languages as tesseract names them. The default is those of the locale. */
  readonly languages?: readonly string[] | undefined;
  readonly dpi: number;
  readonly maxPages: number;
  /** Maximum time for a page of OCR, and for a document that a program reads, in ms. */
  readonly pageTimeout: number;
  /** A program and its arguments, by extension. */
  readonly commands: Readonly<Record<string, readonly [string, ...string[]]>>;
}

/** A program that reads documents, for `peersync check`. */
export interface FoundProgram {
  readonly program: string;
  /** Absolute path; undefined if it is not installed. */
  readonly path?: string | undefined;
  /** The files that it reads, as people call them. */
  readonly reads: string;
  /** The package of Debian that has it; undefined if the configuration names the program. */
  readonly package?: string | undefined;
  /** The languages of OCR that are installed. */
  readonly languages?: readonly string[];
}

const run = promisify(execFile);
/** Maximum time in which tesseract tells its languages, in ms. */
const LIST_MS = 20_000;
/** The data by which tesseract finds out how a page is rotated. It is no language. */
const ROTATION = 'osd';
const USUAL_LANGUAGE = 'eng';

type Environment = LocaleVariables & { readonly PATH?: string };

/**
 * Finds the programs that read scans and old formats, on the PATH of the daemon.
 *
 * They may be installed and removed while the daemon runs: `refresh` looks again.
 */
export class ProgramFinder {
  #programs = NO_PROGRAMS;
  #found: readonly FoundProgram[] = [];

  constructor(
    private readonly settings: () => ProgramSettings,
    private readonly environment: Environment = process.env,
  ) {}

  get current(): Programs {
    return this.#programs;
  }

  /** Returns all programs, with those that are not installed. */
  found(): readonly FoundProgram[] {
    return this.#found;
  }

  /**
   * Looks for the programs again.
   * @returns whether something changed
   */
  async refresh(): Promise<boolean> {
    const settings = this.settings();
    const found: FoundProgram[] = [];
    const ocr = await this.#findOcr(settings, found);
    const commands = await this.#findCommands(settings, found);
    const prlimit = await this.#pathOf('prlimit');
    const scripts = Object.values(commands).flatMap(({ runs }) => runs ?? []);
    const paths = [...new Set([...found.flatMap(({ path }) => path ?? []), ...scripts])];
    const versions = await Promise.all(paths.map(versionOf));
    const programs: Programs = {
      ...ocr,
      commands,
      commandTimeoutMs: settings.pageTimeout,
      ...(paths.length > 0 && { versions: Object.fromEntries(versions) }),
      ...(prlimit !== undefined && { prlimit }),
    };
    this.#found = found;
    if (isDeepStrictEqual(programs, this.#programs)) return false;
    this.#programs = programs;
    return true;
  }

  /** Whether none of the programs was updated or removed since the last look. */
  async isCurrent(): Promise<boolean> {
    const { versions = {} } = this.#programs;
    const now = await Promise.all(Object.keys(versions).map(versionOf));
    return now.every(([path, version]) => versions[path] === version);
  }

  async #findOcr(
    settings: ProgramSettings,
    found: FoundProgram[],
  ): Promise<Pick<Programs, 'ocr' | 'noOcr'>> {
    const [tesseract, pdftoppm] = await Promise.all(
      ['tesseract', 'pdftoppm'].map((name) => this.#pathOf(name)),
    );
    const installed = tesseract === undefined ? [] : await languagesOf(tesseract);
    const languages = installed.filter((name) => name !== ROTATION);
    found.push(
      {
        program: 'tesseract',
        path: tesseract,
        reads: 'scans and pictures',
        package: 'tesseract-ocr',
        languages,
      },
      { program: 'pdftoppm', path: pdftoppm, reads: 'scans in PDF', package: 'poppler-utils' },
    );
    if (settings.ocr === 'off') return { noOcr: 'off' };
    if (tesseract === undefined) return { noOcr: 'missing' };
    const wanted = settings.languages ?? [
      ...localeLanguages(this.environment).filter((name) => languages.includes(name)),
    ];
    const used = (wanted.length > 0 ? wanted : [USUAL_LANGUAGE]).filter((name) =>
      languages.includes(name),
    );
    if (used.length === 0) return { noOcr: 'no language' };
    const ocr: OcrProgram = {
      tesseract,
      ...(pdftoppm !== undefined && { pdftoppm }),
      languages: used.join('+'),
      findsRotation: installed.includes(ROTATION),
      dpi: settings.dpi,
      maxPages: settings.maxPages,
      pageTimeoutMs: settings.pageTimeout,
    };
    return { ocr };
  }

  async #findCommands(
    settings: ProgramSettings,
    found: FoundProgram[],
  ): Promise<Readonly<Record<string, Command>>> {
    const commands: Record<string, Command> = {};
    for (const { args, extensions, output, package: name, program, reads, ...more } of HELPERS) {
      const path = await this.#pathOf(program);
      const runs = more.runs && (await this.#pathOf(more.runs));
      found.push({ program, path, reads: `${reads} (${extensions.join(', ')})`, package: name });
      if (path === undefined) continue;
      for (const extension of extensions)
        commands[extension] = { program: path, name: program, ...(runs && { runs }), args, output };
    }
    for (const [extension, [name, ...args]] of Object.entries(settings.commands)) {
      const path = await this.#pathOf(name);
      found.push({ program: name, path, reads: `files that end in ${extension}` });
      commands[extension.toLowerCase()] = {
        ...(path !== undefined && { program: path }),
        name,
        args,
        output: 'text',
        isConfigured: true,
      };
    }
    return commands;
  }

  /** Returns the absolute path of a program; undefined if it is not installed. */
  async #pathOf(name: string): Promise<string | undefined> {
    const directories = (this.environment.PATH ?? '').split(delimiter).filter(isAbsolute);
    const paths = isAbsolute(name) ? [name] : directories.map((directory) => join(directory, name));
    for (const path of paths) if (await isProgram(path)) return path;
    return undefined;
  }
}

/** Returns the path of a program, and what changes when it is updated. */
async function versionOf(path: string): Promise<readonly [path: string, version: string]> {
  const { mtimeMs, size } = (await stat(path).catch(() => undefined)) ?? {};
  return [path, `${size} ${mtimeMs}`];
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** Returns the languages that tesseract has data for, and `osd`; none if it fails. */
async function languagesOf(tesseract: string): Promise<readonly string[]> {
  try {
    const { stdout } = await run(tesseract, ['--list-langs'], {
      cwd: '/',
      env: { PATH: process.env.PATH },
      killSignal: 'SIGKILL',
      timeout: LIST_MS,
    });
    // The first line is a heading.
    return stdout
      .split('\n')
      .slice(1)
      .map((line) => line.trim())
      .filter((line) => line !== '');
  } catch {
    return [];
  }
}
