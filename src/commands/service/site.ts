import { execFile } from 'node:child_process';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readFile, readlink, rm, rmdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { writeFileAtomic } from '../../lib/atomic.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../../lib/errors.js';
import { type Given, isThere, print, UsageError } from '../context.js';

/** By this a file is known to be ours to replace and to remove. */
const MARK =
  '# Written by `peersync service install`, which writes it anew each time; `peersync service uninstall` removes it.\n';

/** Where an installation stands. */
export interface Site {
  readonly scope: 'system' | 'user';
  /** `peersync.service`, or `peersync@NAME.service`. */
  readonly unit: string;
  /** The unit, or the template of the instance. */
  readonly unitFile: string;
  readonly dropInFile: string;
  /** The directory of units. */
  readonly directory: string;
  /** What a system service has besides: the snippets for its user and its directories. */
  readonly snippets: readonly { readonly file: string; readonly source: string }[];
  /** The name of the unit's source among ours. */
  readonly source: string;
}

export interface SiteOptions {
  readonly scope: 'system' | 'user';
  readonly name?: string | undefined;
  /** Of the user: where `.config` stands. */
  readonly configHome: string;
  /** Where `/etc` stands. @default "/" */
  readonly root?: string;
}

export function siteOf({ scope, name, configHome, root = '/' }: SiteOptions): Site {
  const base = name === undefined ? 'peersync.service' : 'peersync@.service';
  const unit = name === undefined ? base : `peersync@${name}.service`;
  const directory = scope === 'user' ? join(configHome, 'systemd/user') : join(root, 'etc/systemd/system');
  const snippet = (kind: string) => ({
    file: join(root, `etc/${kind}.d/peersync.conf`),
    source: `peersync.${kind}.conf`,
  });
  return {
    scope,
    unit,
    directory,
    unitFile: join(directory, base),
    dropInFile: join(directory, `${unit}.d`, '50-installed.conf'),
    snippets: scope === 'user' ? [] : [snippet('sysusers'), snippet('tmpfiles')],
    source: scope === 'user' ? 'peersync.user.service' : base,
  };
}

/** The text of one of our files, marked as ours. */
export function marked(text: string): string {
  return `${MARK}${text}`;
}

/** @throws PeersyncError SERVICE_FOREIGN where somebody else's file stands in the way */
export async function assertOurs(path: string): Promise<void> {
  const text = await textOf(path);
  if (text === undefined || text.startsWith(MARK)) return;
  throw new PeersyncError({
    code: 'SERVICE_FOREIGN',
    message: `${path} is there already, and was not written by \`peersync service install\`.`,
    hint: 'It was left as it is; move it away, or install under another name with --name.',
  });
}

export async function isOurs(path: string): Promise<boolean> {
  return (await textOf(path))?.startsWith(MARK) === true;
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return undefined;
    throw cannot(`${path} could not be read`, error);
  }
}

/** Writes a file of ours; readable by all, as units are. */
export async function write(path: string, content: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFileAtomic(path, content, { mode: 0o644 });
  } catch (error) {
    throw cannot(`${path} could not be written`, error);
  }
}

/** Removes a file, and its directory when nothing else is in it. */
export async function remove(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
    if (path.endsWith('.d/50-installed.conf')) await rmdir(dirname(path)).catch(() => {});
  } catch (error) {
    throw cannot(`${path} could not be removed`, error);
  }
}

/**
 * Makes a directory with all above it that are missing; those are owned by `owner`. One that is there stays as it is.
 *
 * @returns whether it was missing
 */
export async function makeDirectory(path: string, mode: number, owner: Owner | undefined): Promise<boolean> {
  try {
    if (owner === undefined) return (await mkdir(path, { recursive: true, mode })) !== undefined;
    if (await isThere(path)) return false;
    await makeDirectoryFor(path, mode, owner);
    return true;
  } catch (error) {
    throw cannot(`the directory ${path} could not be made`, error);
  }
}

function cannot(what: string, error: unknown): PeersyncError {
  return new PeersyncError({
    code: 'SERVICE_FAILED',
    message: `${what}: ${messageOf(error)}.`,
    hint: 'See who may write there; what was done so far stays, and installing again goes on from there.',
    cause: error,
  });
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** As the kernel does it. */
const MOST_LINKS = 40;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;
const NO_LINK = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Makes a directory for another user, with all above it that are missing, and gives them to that user.
 *
 * Root does this where others may change things meanwhile, so it goes from directory to open directory, and no link leads it
 * away that anybody but root could have put there: who may write in their home could else be given any directory.
 *
 * @param path absolute
 * @throws Error also for a link of somebody else on the way
 */
export async function makeDirectoryFor(path: string, mode: number, owner: Owner): Promise<void> {
  let links = 0;
  let names = namesOf(path);
  let at = '/';
  let here = await open(at, NO_LINK);
  try {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      const next = await enter(here, name, mode, owner);
      const to = typeof next === 'string' ? resolve(at, next) : undefined;
      links += to === undefined ? 0 : 1;
      if (links > MOST_LINKS) throw new Error('there are too many links on the way');
      if (to !== undefined) names = [...namesOf(to), ...names];
      at = to === undefined ? join(at, name) : '/';
      const before = here;
      here = typeof next === 'string' ? await open(at, NO_LINK) : next;
      await before.close();
    }
  } finally {
    await here.close();
  }
}

/** The directory of a name in an open one, made where it was missing; of a link, where that leads. */
async function enter(
  directory: FileHandle,
  name: string,
  mode: number,
  { uid, gid }: Owner,
): Promise<FileHandle | string> {
  const path = `/proc/self/fd/${directory.fd}/${name}`;
  try {
    return await open(path, NO_LINK);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') return await linkOfRoot(directory, path, error);
  }
  await mkdir(path, { mode });
  const made = await open(path, NO_LINK);
  try {
    await made.chown(uid, gid);
    return made;
  } catch (error) {
    await made.close();
    throw error;
  }
}

async function linkOfRoot(directory: FileHandle, path: string, error: unknown): Promise<string> {
  const link = await lstat(path);
  if (!link.isSymbolicLink()) throw error;
  if (link.uid !== 0 || !isKept(await directory.stat()))
    throw new Error('a link on the way to it is not that of root; make the directory yourself');
  return await readlink(path);
}

/** Whether only root may exchange what root has put into a directory. */
function isKept({ uid, mode }: Stats): boolean {
  return uid === 0 && ((mode & OTHERS_WRITE) === 0 || (mode & STICKY) !== 0);
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '');
}

/** Changes to this system, each told as it is done, or only shown. */
export class Steps {
  readonly did: string[] = [];
  readonly #dryRun: boolean;
  readonly #isSilent: boolean;

  constructor({ dryRun, json }: { readonly dryRun: boolean; readonly json: boolean }) {
    this.#dryRun = dryRun;
    this.#isSilent = json;
  }

  tell(what: string): void {
    this.did.push(what);
    if (!this.#isSilent) print(what);
  }

  async run(command: readonly string[]): Promise<void> {
    if (!this.#dryRun) await runTool(command);
    this.tell(`${this.#dryRun ? 'would run' : 'ran'} ${command.join(' ')}`);
  }

  async write(path: string, content: string): Promise<void> {
    if (!this.#dryRun) await write(path, content);
    this.tell(
      this.#dryRun ? `would write ${path}:\n\n${content.replace(/^(?=.)/gm, '    ')}` : `wrote ${path}`,
    );
  }

  async remove(path: string): Promise<void> {
    if (!this.#dryRun) await remove(path);
    this.tell(`${this.#dryRun ? 'would remove' : 'removed'} ${path}`);
  }

  async directory(path: string, mode: number, owner: Owner | undefined): Promise<void> {
    if (this.#dryRun) {
      if (!(await isThere(path))) this.tell(`would make the directory ${path}`);
    } else if (await makeDirectory(path, mode, owner)) this.tell(`made the directory ${path}`);
  }
}

/** How long a program of the system may take, in ms: a service may need minutes until it is ready. */
const LONGEST_MS = 15 * 60_000;

/**
 * Runs a program of the system to its end, and returns what it printed.
 *
 * @throws PeersyncError SERVICE_TOOL where it is not there or fails
 */
export function runTool([program = '', ...args]: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: LONGEST_MS, maxBuffer: 16 * 2 ** 20 };
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) {
        resolve(stdout);
        return;
      }
      const isMissing = systemCode(error) === 'ENOENT';
      const said = (stderr.trim() || stdout.trim() || error.message).replace(/\s*\n\s*/g, ' ');
      reject(
        new PeersyncError({
          code: 'SERVICE_TOOL',
          message: isMissing
            ? `The program ${program} is not there.`
            : `"${[program, ...args].join(' ')}" failed: ${said}${/[.!?]$/.test(said) ? '' : '.'}`,
          hint: isMissing
            ? 'peersync installs itself as a service of systemd only; on this system start `peersync run` by other means.'
            : 'See why in `journalctl -e` (of a user service: `journalctl --user -e`), and try again.',
          cause: error,
        }),
      );
    });
  });
}

/** Which service a command is about. */
export const PLACE = {
  user: {
    type: 'boolean',
    default: false,
    describe: 'A service of your own, which needs no root and sees what you see',
  },
  name: {
    type: 'string',
    describe: 'One of several services on this machine: letters, digits and any of - _ .',
  },
} as const;

/** @throws UsageError for a name that systemd would read as something else */
export function siteOfOptions({ user, name }: Given<typeof PLACE>): Site {
  if (name !== undefined && !/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/.test(name))
    throw new UsageError(
      `--name: received ${JSON.stringify(name)}; expected a name of letters, digits and any of - _ .`,
      'Name it like peersync service install --name docs.',
    );
  return siteOf({ scope: user ? 'user' : 'system', name, configHome: configHome() });
}

/** Where this user's configurations stand. */
export function configHome(): string {
  return process.env.XDG_CONFIG_HOME || join(homedir(), '.config');
}

/** @throws PeersyncError SERVICE_NOT_ROOT where a service of the system is to be changed by somebody who may not */
export function assertMayChange({ scope }: Site): void {
  if (scope === 'user' || process.getuid?.() === 0) return;
  throw new PeersyncError({
    code: 'SERVICE_NOT_ROOT',
    message: 'Only root may change the services of the system.',
    hint: 'Say it again with sudo, or with --user for a service of your own.',
    exitCode: EXIT.usage,
  });
}

export function systemctl({ scope }: Site, ...words: readonly string[]): readonly string[] {
  return ['systemctl', ...(scope === 'user' ? ['--user'] : []), ...words];
}

/** What a person types to look at it. */
export function lookWords({ scope, unit }: Site): readonly string[] {
  const user = scope === 'user' ? '--user ' : '';
  return [
    `systemctl ${user}status ${unit}    how it stands`,
    `journalctl ${user}-u ${unit} -f    what it says, as it says it`,
    `systemctl ${user}reload ${unit}    takes a changed configuration up`,
  ];
}

/** @throws PeersyncError SERVICE_NO_SYSTEMD where another program started the system */
export async function assertSystemd(): Promise<void> {
  if (await isThere('/run/systemd/system')) return;
  throw new PeersyncError({
    code: 'SERVICE_NO_SYSTEMD',
    message: 'This system was not started by systemd.',
    hint: 'Start `peersync run` by what starts services here; `--dry-run` shows the units.',
  });
}
