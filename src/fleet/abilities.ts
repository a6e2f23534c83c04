import { execFile } from 'node:child_process';
import { createHash, hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { hostname } from 'node:os';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Command, Programs } from '../content/helpers/programs.js';

const run = promisify(execFile);
/** Time limit of a program that tells its version, in ms. */
const VERSION_MS = 20_000;
/** The characters of a digest by which people tell two programs, or two lists of arguments. */
const SHOWN_DIGEST = 12;

/**
 * The command that tells the version of a program; `{program}` is its path. A program that is not
 * here, or that the configuration names, is known by the sha256 of its file: nobody knows what it
 * does with another argument.
 */
const VERSION_COMMANDS: ReadonlyMap<string, readonly [program: string, argument: string]> = new Map(
  [
    ['tesseract', ['{program}', '--version']],
    ['pdftoppm', ['{program}', '-v']],
    ['catdoc', ['{program}', '-V']],
    ['xls2csv', ['{program}', '-V']],
    ['catppt', ['{program}', '-V']],
    // It is a script, which has Ghostscript do the work.
    ['ps2txt', ['gs', '--version']],
  ],
);

/** The version of a program that cannot be known. It is like that of no other machine. */
const UNKNOWN = `of a version that ${hostname()} cannot tell`;

/** The version of each program, by its name. */
type Versions = ReadonlyMap<string, string>;

/**
 * Returns what programs read, and how: a line for OCR, for each kind of file, and for each program
 * with its version. Two machines with the same lines read a document alike, as far as anybody can
 * tell without reading it.
 *
 * Arguments of the configuration are lines by their digest, because they may contain secrets.
 * Limits of time do not count: a text of which they cut something off is not kept.
 */
export function abilitiesOf(
  { commands, noOcr, ocr }: Programs,
  versions: Versions = new Map(),
): string[] {
  const lines = new Set(
    Object.entries(commands).map(([extension, command]) => readingOf(extension, command)),
  );
  const withPdf = ocr?.pdftoppm === undefined ? 'without pdftoppm' : 'with pdftoppm';
  const turning = ocr?.findsRotation ? ' with osd' : '';
  lines.add(
    ocr === undefined
      ? `no OCR (${noOcr ?? 'off'})`
      : `OCR in ${ocr.languages}${turning}, ${ocr.dpi} dpi, ${ocr.maxPages} pages, ${withPdf}`,
  );
  for (const [name, version] of versions) lines.add(`${name} ${version}`);
  return [...lines].sort();
}

function readingOf(extension: string, { args, isConfigured, name, output, program }: Command) {
  const missing = program === undefined ? ' (not installed)' : '';
  if (!isConfigured) return `${extension} by ${name}${missing}`;
  const digest = hash('sha256', JSON.stringify([args, output]), 'hex').slice(0, SHOWN_DIGEST);
  return `${extension} by ${name} with the arguments ${digest}${missing}`;
}

/** Returns a digest of abilities. */
export function abilitiesDigest(abilities: readonly string[]): string {
  return hash('sha256', JSON.stringify(abilities), 'hex');
}

/** Returns the lines that only one of both has. Those about the same thing are side by side. */
export function differenceOf(worker: readonly string[], owner: readonly string[]): string[] {
  const [there, here] = [new Set(worker), new Set(owner)];
  const lines = [
    ...worker.filter((each) => !here.has(each)).map((line) => ({ who: 'worker', line })),
    ...owner.filter((each) => !there.has(each)).map((line) => ({ who: 'owner', line })),
  ];
  return lines
    .sort((a, b) => (a.line < b.line ? -1 : a.line > b.line ? 1 : 0))
    .map(({ line, who }) => `${who}: ${line}`);
}

/** Knows the abilities of programs, with their versions, which it asks for once. */
export class Abilities {
  /** A change of the programs, or an update of one of them, makes another object of them. */
  readonly #known = new WeakMap<Programs, Promise<readonly string[]>>();

  /** See `abilitiesOf`. Never rejects. */
  of(programs: Programs): Promise<readonly string[]> {
    const known = this.#known.get(programs);
    if (known !== undefined) return known;
    const found = versionsOf(programs).then(({ isWhole, versions }) => {
      if (!isWhole) this.#known.delete(programs);
      return abilitiesOf(programs, versions);
    });
    this.#known.set(programs, found);
    return found;
  }

  /** Returns their digest. Never rejects. */
  async digestOf(programs: Programs): Promise<string> {
    return abilitiesDigest(await this.of(programs));
  }
}

interface FoundVersions {
  readonly versions: Versions;
  /** Whether no program took too long to answer, so that there is no use in asking again. */
  readonly isWhole: boolean;
}

/** Asks the programs that are installed for their versions. Never rejects. */
async function versionsOf({ commands, ocr }: Programs): Promise<FoundVersions> {
  const programs = new Map<string, Pick<Command, 'isConfigured' | 'program'>>();
  if (ocr !== undefined) {
    programs.set('tesseract', { program: ocr.tesseract });
    if (ocr.pdftoppm !== undefined) programs.set('pdftoppm', { program: ocr.pdftoppm });
  }
  for (const command of Object.values(commands)) programs.set(command.name, command);
  let isWhole = true;
  const versions = await Promise.all(
    [...programs].map(async ([name, { isConfigured, program }]) => {
      if (program === undefined) return [];
      const told = isConfigured ? undefined : await toldVersion(name, program);
      if (told === 'late') isWhole = false;
      const version = told === 'late' ? UNKNOWN : (told ?? (await digestOfFile(program)));
      return [[name, version] as const];
    }),
  );
  return { versions: new Map(versions.flat()), isWhole };
}

/**
 * Returns the version that a program tells; undefined if it tells none, and `late` if it takes too
 * long.
 */
async function toldVersion(name: string, program: string): Promise<string | undefined> {
  const [asked, argument] = VERSION_COMMANDS.get(name) ?? [];
  if (asked === undefined || argument === undefined) return undefined;
  try {
    const { stderr, stdout } = await run(asked === '{program}' ? program : asked, [argument], {
      cwd: '/',
      env: { PATH: process.env.PATH },
      killSignal: 'SIGKILL',
      timeout: VERSION_MS,
    });
    return /\d+(?:\.\d+)+[\w.+~-]{0,50}/.exec(`${stdout}\n${stderr}`.slice(0, 1_000))?.[0];
  } catch (error) {
    return isKilled(error) ? 'late' : undefined;
  }
}

function isKilled(error: unknown): boolean {
  return error instanceof Error && 'killed' in error && error.killed === true;
}

/** Returns a name of the content of a program. */
async function digestOfFile(path: string): Promise<string> {
  const digest = createHash('sha256');
  try {
    await pipeline(createReadStream(path), digest);
  } catch {
    return UNKNOWN;
  }
  return `of sha256 ${digest.digest('hex').slice(0, SHOWN_DIGEST)}`;
}
