import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, rmdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { promisify } from 'node:util';
import { isThere } from '../../cli/global-options.js';
import { print } from '../../cli/output.js';
import type { Config } from '../../config/config.js';
import type { Secret } from '../../config/fields.js';
import { writeFileAtomic } from '../../lib/atomic.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../../lib/errors.js';
import { sentence } from '../../lib/text.js';

/** A file with this mark is ours: it may be replaced and removed. */
const MARK =
  '# Written by `peersync service install`, which writes it anew each time; `peersync service uninstall` removes it.\n';

/** The program of a service: the daemon, or a worker that helps the daemon of another machine. */
export type Role = 'daemon' | 'worker';
/** The name of a worker whose name was not given: its unit reads /etc/peersync/config.json. */
const WORKER_NAME = 'config';

/** The paths and names of an installation. */
export type Site = ReturnType<typeof siteOf>;

/** @param of.configHome where `.config` of the user stands */
export function siteOf(of: {
  readonly scope: 'system' | 'user';
  readonly role: Role;
  readonly name?: string | undefined;
  readonly configHome: string;
}) {
  const { role, scope } = of;
  const name = of.name ?? (role === 'worker' ? WORKER_NAME : undefined);
  const program = role === 'worker' ? 'peersync-worker' : 'peersync';
  const base = name === undefined ? `${program}.service` : `${program}@.service`;
  const unit = name === undefined ? base : `${program}@${name}.service`;
  const isUser = scope === 'user';
  const directory = isUser ? join(of.configHome, 'systemd/user') : '/etc/systemd/system';
  const snippets = ['sysusers', 'tmpfiles'].map((kind) => {
    return { file: `/etc/${kind}.d/peersync.conf`, source: `peersync.${kind}.conf` };
  });
  return {
    role,
    scope,
    /** `peersync.service`, or `peersync@NAME.service`, or `peersync-worker@NAME.service`. */
    unit,
    /** The directory of units. */
    directory,
    /** The unit, or the template of the instance. */
    unitFile: join(directory, base),
    /** The name of the unit's source among ours. */
    source: isUser ? 'peersync.user.service' : base,
    dropInFile: join(directory, `${unit}.d`, '50-installed.conf'),
    /** The snippets of a system service for its user and its directories. */
    snippets: isUser ? [] : snippets,
    /** The command that controls systemd. */
    command: isUser ? ['systemctl', '--user'] : ['systemctl'],
  };
}

/** Returns the directory of this user's configurations. */
export function configHome(): string {
  return process.env.XDG_CONFIG_HOME || join(homedir(), '.config');
}

/** Returns whether a file was written by an installation. */
export async function isOurs(path: string): Promise<boolean> {
  return (await textOf(path))?.startsWith(MARK) === true;
}

/** @throws PeersyncError SERVICE_FOREIGN if a file there is not ours */
export async function assertOurs(path: string): Promise<void> {
  if ((await textOf(path))?.startsWith(MARK) !== false) return;
  throw new PeersyncError({
    code: 'SERVICE_FOREIGN',
    message: `${path} is there already, and was not written by \`peersync service install\`.`,
    hint: 'It was left as it is; move it away, or install under another name with --name.',
  });
}

async function textOf(path: string): Promise<string | undefined> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return undefined;
    throw cannot(`read ${path}`, error);
  });
}

function cannot(what: string, cause: unknown): PeersyncError {
  return new PeersyncError({
    code: 'SERVICE_FAILED',
    message: `Could not ${what}: ${sentence(messageOf(cause))}`,
    hint: 'See who may write there; what was done so far stays, and installing again goes on from there.',
    cause,
  });
}

const DID = { run: 'ran', write: 'wrote', remove: 'removed', make: 'made' } as const;

/** Makes changes to this system and reports each, or only shows them. */
export class Steps {
  readonly did: string[] = [];

  constructor(readonly options: { readonly dryRun: boolean; readonly json: boolean }) {}

  async run(command: readonly string[]): Promise<void> {
    await this.#step('run', command.join(' '), () => runTool(command));
  }

  /** A file of ours; readable by all, as units are. */
  async write(path: string, text: string): Promise<void> {
    const content = `${MARK}${text}`;
    const write = async () => {
      await mkdir(dirname(path), { recursive: true });
      await writeFileAtomic(path, content, { mode: 0o644 });
    };
    await this.#step('write', path, write, `:\n\n${content.replace(/^(?=.)/gm, '    ')}`);
  }

  /** Removes a file, and its directory where that was for drop-ins and nothing else is in it. */
  async remove(path: string): Promise<void> {
    await this.#step('remove', path, async () => {
      await rm(path, { force: true });
      if (path.endsWith('.d/50-installed.conf')) await rmdir(dirname(path)).catch(() => {});
    });
  }

  /**
   * Creates a directory and its missing parents, for a user or for ourselves. An existing directory
   * stays as it is.
   */
  async directory(path: string, mode: number, owner: string | undefined): Promise<void> {
    const missing: string[] = [];
    for (let at = path; !(await isThere(at)); at = dirname(at)) missing.unshift(at);
    if (missing.length === 0) return;
    await this.#step('make', `the directory ${path}`, () =>
      owner === undefined ? mkdir(path, { recursive: true, mode }) : makeFor(owner, missing, mode),
    );
  }

  /** @param shown the text beside it if it is only shown */
  async #step(
    verb: keyof typeof DID,
    what: string,
    work: () => Promise<unknown>,
    shown = '',
  ): Promise<void> {
    const { dryRun, json } = this.options;
    if (!dryRun)
      await work().catch((error: unknown) => {
        throw verb === 'run' ? error : cannot(`${verb} ${what}`, error);
      });
    const line = dryRun ? `would ${verb} ${what}${shown}` : `${DID[verb]} ${what}`;
    this.did.push(line);
    if (!json) print(line);
  }
}

/**
 * Creates directories as root for another user. Someone who may write above them could replace a
 * part of the path by a link, and so be given any directory. systemd-tmpfiles follows no link from
 * one user's directory into another's.
 */
async function makeFor(user: string, directories: readonly string[], mode: number): Promise<void> {
  const group = (await runTool(['id', '-g', user])).trim();
  const lines = directories.map(
    (path) => `d ${unitWord(path)} 0${mode.toString(8)} ${user} ${group} -\n`,
  );
  await runTool(['systemd-tmpfiles', '--create', '-'], lines.join(''));
}

/**
 * The longest run of a program of the system, in ms. A service may need minutes until it is ready.
 */
const LONGEST_MS = 15 * 60_000;

/**
 * Runs a program of the system to its end, and returns its output.
 *
 * @throws PeersyncError SERVICE_TOOL if it is missing or fails
 */
export async function runTool(
  [program = '', ...args]: readonly string[],
  input = '',
): Promise<string> {
  const running = promisify(execFile)(program, args, {
    timeout: LONGEST_MS,
    maxBuffer: 16 * 2 ** 20,
  });
  // A program that reads nothing may be gone by then.
  running.child.stdin?.on('error', () => {}).end(input);
  try {
    return (await running).stdout;
  } catch (cause) {
    const { stderr = '', stdout = '' } = cause as {
      readonly stderr?: string;
      readonly stdout?: string;
    };
    const output = (stderr.trim() || stdout.trim() || messageOf(cause)).replace(/\s*\n\s*/g, ' ');
    const [message, hint] =
      systemCode(cause) === 'ENOENT'
        ? [
            `The program ${program} is not there.`,
            'Without systemd start `peersync run` by other means.',
          ]
        : [
            `"${[program, ...args].join(' ')}" failed: ${sentence(output)}`,
            'See why in `journalctl -e` (of a user service: `journalctl --user -e`), and try again.',
          ];
    throw new PeersyncError({ code: 'SERVICE_TOOL', message, hint, cause });
  }
}

/** The command of the unit and its directories. */
export interface Runs {
  readonly scope: 'system' | 'user';
  readonly role: Role;
  /** Absolute. */
  readonly node: string;
  /** Absolute: the program of the command line. */
  readonly program: string;
  /** The directory with the program and its packages. */
  readonly programRoot: string;
  /** Absolute: the configuration. */
  readonly configPath: string;
  readonly config: Config;
  /** The user of a system service; that of the unit unless given. */
  readonly runAs?: string | undefined;
  /** Returns the absolute path of a credential for `LoadCredential=`. */
  readonly credentialFile: (name: string) => string;
  /** The version of systemd. */
  readonly systemd: number;
}

/**
 * Directories that a sandboxed system service does not see, or sees empty, unless they are bound.
 */
const HIDDEN = ['/home', '/root', '/run/user', '/tmp', '/var/tmp'];
/** Since when systemd can wait longer with each new start. */
const KNOWS_STEPS = 254;

/** The directories that peersync writes to. A worker keeps nothing. */
export function writtenDirectories({ state, peer, mirror }: Config, role: Role): readonly string[] {
  if (role === 'worker') return [];
  const isMirroring = [mirror.shares, mirror.tables, mirror.citations].some(
    (mirrors) => mirrors.length > 0,
  );
  const embedded = peer.url === 'embedded' ? [peer.embedded.dir] : [];
  return [state.dir, ...embedded, ...(isMirroring ? [mirror.root] : [])];
}

/**
 * Returns the secrets of the configuration that a service reads. A worker has no page, and asks the
 * peer only if it pushes.
 */
export function secretsOf({ fleet, peer, status }: Config, role: Role) {
  const redis = { what: 'the password of Redis', secret: fleet?.password };
  const password = { what: "the peer's password", secret: peer.auth?.password };
  if (role === 'worker') return fleet?.share.includes('push') ? [redis, password] : [redis];
  return [password, { what: 'the token of the status page', secret: status.token }, redis];
}

/** Files beside the configuration that are read. */
export function readFiles(config: Config, role: Role): readonly string[] {
  const files = secretsOf(config, role).flatMap(({ secret = {} }) =>
    'file' in secret ? [secret.file] : [],
  );
  const authorities = [config.peer.tls.ca, config.fleet?.ca].filter((ca) => ca !== undefined);
  return [...authorities, ...files];
}

/** The name of the credential that a secret stands in, where it does. */
export function credentialOf(secret: Secret | undefined): string | undefined {
  return secret !== undefined && 'credential' in secret ? secret.credential : undefined;
}

/**
 * Returns the drop-in of one installation, beside the unit that is the same for all: its command,
 * its configuration, and the paths that it may read and write.
 */
export function dropIn(runs: Runs): string {
  const { config, configPath, node, program, role, runAs, systemd } = runs;
  const command = (word: string): string =>
    unitCommand([node, program, word, '--config', configPath]);
  const lines = ['[Service]', 'ExecStart='];
  if (role === 'worker') lines.push(`ExecStart=${command('worker')}`);
  else {
    lines.push(`ExecStart=${command('run')}`);
    lines.push('ExecReload=', `ExecReload=${command('reload')}`);
  }
  if (runAs !== undefined) lines.push(`User=${runAs}`, 'Group=');
  const credentials = secretsOf(config, role).map(({ secret }) => credentialOf(secret));
  for (const credential of new Set(credentials))
    if (credential !== undefined)
      lines.push(`LoadCredential=${credential}:${unitRest(runs.credentialFile(credential))}`);
  if (systemd >= KNOWS_STEPS)
    lines.push('# Waits longer with each new start.', 'RestartSteps=6', 'RestartMaxDelaySec=5min');
  // The service of a user sees everything, read-only.
  const isHidden = (path: string) =>
    runs.scope === 'system' &&
    HIDDEN.some((hidden) => path === hidden || path.startsWith(hidden + sep));
  const folders = config.folders.map(({ path }) => path);
  const tools = [dirname(configPath), ...readFiles(config, role), node, runs.programRoot];
  for (const path of new Set([...tools, ...folders].filter(isHidden)))
    lines.push(`BindReadOnlyPaths=${unitWordIfThere(path)}`);
  for (const path of folders)
    if (!isHidden(path)) lines.push(`ReadOnlyPaths=${unitWordIfThere(path)}`);
  for (const path of new Set(writtenDirectories(config, role)))
    lines.push(`${isHidden(path) ? 'BindPaths' : 'ReadWritePaths'}=${unitWord(path)}`);
  return `${lines.join('\n')}\n`;
}

/**
 * Returns a path or word in quotes for a unit file, with characters escaped that systemd would
 * expand.
 *
 * @throws PeersyncError SERVICE_WORD if it has control characters, which some settings of systemd
 *   cannot name
 */
export function unitWord(word: string): string {
  return `"${nameable(word, /\p{Cc}/u)
    .replace(/[\\"]/g, '\\$&')
    .replaceAll('%', '%%')}"`;
}

/**
 * Returns a path for the end of a setting that has no quotes. Such a setting drops a blank or
 * backslash at its end.
 *
 * @throws as `unitWord`
 */
function unitRest(path: string): string {
  return nameable(path, /\p{Cc}|[\s\\]$/u).replaceAll('%', '%%');
}

function nameable(word: string, wrong: RegExp): string {
  if (!wrong.test(word)) return word;
  throw new PeersyncError({
    code: 'SERVICE_WORD',
    message: `A unit of systemd cannot name ${JSON.stringify(word)}, for its control characters or its end.`,
    hint: 'Use another path.',
    exitCode: EXIT.usage,
  });
}

/** A path that need not be there. */
function unitWordIfThere(path: string): string {
  return unitWord(`-${path}`);
}

/** A command for `ExecStart=`; nothing in it stands for a variable. */
export function unitCommand([program = '', ...words]: readonly string[]): string {
  return [unitWord(`:${program}`), ...words.map(unitWord)].join(' ');
}
