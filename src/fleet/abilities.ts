import { execFile } from 'node:child_process';
import { createHash, hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { hostname } from 'node:os';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Command, Programs } from '../content/helpers/programs.js';
import { type Clock, within } from '../lib/clock.js';
import { LOOK_MS } from './protocol.js';

const run = promisify(execFile);
/** Time limit of a program that tells its version, in ms. */
const VERSION_MS = 20_000;
/** Time until programs of which one took too long are asked again, in ms. */
const ASK_AGAIN_MS = 60_000;
/** The characters of a digest by which people tell two programs. */
const SHOWN_DIGEST = 12;
/**
 * The characters of a digest of arguments. They may contain a secret, and Redis, the log and the
 * status show the digest. It is so short that many guesses fit: none can be confirmed. Two lists of
 * arguments have the same one by chance once in 65,536 times.
 */
const ARGUMENTS_DIGEST = 4;

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

/**
 * Returns what programs read, and how: a line for OCR, for each kind of file, and for each program
 * with its version. Two machines with the same lines read a document alike, as far as anybody can
 * tell without reading it.
 *
 * Arguments of the configuration are lines by their digest, because they may contain secrets.
 * Limits of time do not count: a text of which they cut something off is not kept.
 *
 * @param versions the lines of the programs with their versions
 */
export function abilitiesOf(
  { commands, noOcr, ocr }: Programs,
  versions: Iterable<string> = [],
): string[] {
  const lines = new Set(versions);
  for (const [extension, command] of Object.entries(commands))
    lines.add(readingOf(extension, command));
  const withPdf = ocr?.pdftoppm === undefined ? 'without pdftoppm' : 'with pdftoppm';
  const turning = ocr?.findsRotation ? ' with osd' : '';
  lines.add(
    ocr === undefined
      ? `no OCR (${noOcr ?? 'off'})`
      : `OCR in ${ocr.languages}${turning}, ${ocr.dpi} dpi, ${ocr.maxPages} pages, ${withPdf}`,
  );
  return [...lines].sort();
}

function readingOf(extension: string, command: Command) {
  const { isConfigured, name, program } = command;
  const missing = program === undefined ? ' (not installed)' : '';
  if (!isConfigured) return `${extension} by ${name}${missing}`;
  return `${extension} by ${name} with the arguments ${argumentsDigest(command)}${missing}`;
}

function argumentsDigest({ args, output }: Pick<Command, 'args' | 'output'>): string {
  return hash('sha256', JSON.stringify([args, output]), 'hex').slice(0, ARGUMENTS_DIGEST);
}

/**
 * Returns a digest of programs with their arguments, settings and versions. Arguments count by
 * their own digest, as they do in abilities.
 */
export function programsDigest(programs: Programs): string {
  const commands = Object.entries(programs.commands).map(([extension, command]) => {
    const { args, ...others } = command;
    return [extension, others, argumentsDigest(command)];
  });
  return hash('sha256', JSON.stringify({ ...programs, commands }), 'hex');
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

/** A program that is installed. */
type Installed = Pick<Command, 'isConfigured' | 'name'> & { readonly program: string };

/** Programs that were asked for their versions. */
interface Asked {
  /** The version of each one, `UNKNOWN` until it is known. */
  readonly versions: Map<Installed, string>;
  /** Resolves when all have answered, or after `LOOK_MS`. */
  readonly answered: Promise<void>;
  /** The time to ask again, if one took too long. */
  againAt?: number;
}

/** Knows the abilities of programs, with their versions, which it asks for once. */
export class Abilities {
  /** A change of the programs, or an update of one of them, makes another object of them. */
  readonly #asked = new WeakMap<Programs, Asked>();

  constructor(private readonly clock: Clock) {}

  /**
   * See `abilitiesOf`. Takes 3 s at most: a program that has not answered by then is one whose
   * version cannot be told, until it answers. Never rejects.
   */
  async of(programs: Programs): Promise<readonly string[]> {
    const known = this.#asked.get(programs);
    const isDue = known?.againAt !== undefined && this.clock.now() >= known.againAt;
    const asked = known === undefined || isDue ? this.#ask(programs) : known;
    await asked.answered;
    const lines = [...asked.versions].map(([{ name }, version]) => `${name} ${version}`);
    return abilitiesOf(programs, lines);
  }

  /** Returns their digest. Takes 3 s at most. Never rejects. */
  async digestOf(programs: Programs): Promise<string> {
    return abilitiesDigest(await this.of(programs));
  }

  #ask(programs: Programs): Asked {
    const { clock } = this;
    const installed = installedOf(programs);
    const versions = new Map(installed.map((each) => [each, UNKNOWN]));
    const answers = installed.map(async (each) => {
      const version = await versionOf(each, clock);
      if (version === 'late') asked.againAt = clock.now() + ASK_AGAIN_MS;
      else versions.set(each, version);
    });
    const all = Promise.all(answers).then(() => {});
    const asked: Asked = { versions, answered: within(clock, LOOK_MS, all, undefined) };
    this.#asked.set(programs, asked);
    return asked;
  }
}

/**
 * Returns the programs that are installed, each one once. The configuration may name one that is
 * used in another way, too: those are two.
 */
function installedOf({ commands, ocr }: Programs): readonly Installed[] {
  const { pdftoppm, tesseract } = ocr ?? {};
  const ofOcr = { tesseract, pdftoppm };
  const all: readonly Omit<Command, 'args' | 'output'>[] = [
    ...Object.entries(ofOcr).map(([name, program]) => ({ name, ...(program && { program }) })),
    ...Object.values(commands),
  ];
  const installed = new Map<string, Installed>();
  for (const { isConfigured, name, program } of all) {
    if (program === undefined) continue;
    const role = isConfigured ? 'configured' : 'usual';
    installed.set(`${role} ${name}`, { name, program, ...(isConfigured && { isConfigured }) });
  }
  return [...installed.values()];
}

/** Returns the version of a program; `late` if it takes too long to tell it. Never rejects. */
async function versionOf(
  { isConfigured, name, program }: Installed,
  clock: Clock,
): Promise<string> {
  const told = isConfigured ? undefined : await toldVersion(name, program, clock);
  return told ?? (await digestOfFile(program));
}

/**
 * Returns the version that a program tells; undefined if it tells none, and `late` if it takes too
 * long.
 */
async function toldVersion(
  name: string,
  program: string,
  clock: Clock,
): Promise<string | undefined> {
  const [asked, argument] = VERSION_COMMANDS.get(name) ?? [];
  if (asked === undefined || argument === undefined) return undefined;
  const limit = new AbortController();
  const asking = run(asked === '{program}' ? program : asked, [argument], {
    cwd: '/',
    env: { PATH: process.env.PATH },
    signal: limit.signal,
  });
  const timer = clock.after(VERSION_MS, () => {
    asking.child.kill('SIGKILL');
    limit.abort();
  });
  try {
    const { stderr, stdout } = await asking;
    return /\d+(?:\.\d+)+[\w.+~-]{0,50}/.exec(`${stdout}\n${stderr}`.slice(0, 1_000))?.[0];
  } catch {
    return limit.signal.aborted ? 'late' : undefined;
  } finally {
    timer.cancel();
  }
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
