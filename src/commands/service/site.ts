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

/** By this a file is known to be ours to replace and to remove. */
const MARK =
  '# Written by `peersync service install`, which writes it anew each time; `peersync service uninstall` removes it.\n';

/** Where an installation stands. */
export type Site = ReturnType<typeof siteOf>;

/** @param of.configHome where `.config` of the user stands */
export function siteOf(of: {
  readonly scope: 'system' | 'user';
  readonly name?: string | undefined;
  readonly configHome: string;
}) {
  const { scope, name } = of;
  const base = name === undefined ? 'peersync.service' : 'peersync@.service';
  const unit = name === undefined ? base : `peersync@${name}.service`;
  const isUser = scope === 'user';
  const directory = isUser ? join(of.configHome, 'systemd/user') : '/etc/systemd/system';
  const snippets = ['sysusers', 'tmpfiles'].map((kind) => {
    return { file: `/etc/${kind}.d/peersync.conf`, source: `peersync.${kind}.conf` };
  });
  return {
    scope,
    /** `peersync.service`, or `peersync@NAME.service`. */
    unit,
    /** The directory of units. */
    directory,
    /** The unit, or the template of the instance. */
    unitFile: join(directory, base),
    /** The name of the unit's source among ours. */
    source: isUser ? 'peersync.user.service' : base,
    dropInFile: join(directory, `${unit}.d`, '50-installed.conf'),
    /** What a system service has besides: the snippets for its user and its directories. */
    snippets: isUser ? [] : snippets,
    /** How systemd is told. */
    command: isUser ? ['systemctl', '--user'] : ['systemctl'],
  };
}

/** Where this user's configurations stand. */
export function configHome(): string {
  return process.env.XDG_CONFIG_HOME || join(homedir(), '.config');
}

/** Whether a file was written by an installation. */
export async function isOurs(path: string): Promise<boolean> {
  return (await textOf(path))?.startsWith(MARK) === true;
}

/** @throws PeersyncError SERVICE_FOREIGN where somebody else's file stands in the way */
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

/** Changes to this system, each told as it is done, or only shown. */
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
   * A directory and what is missing above it, for a user, or for ourselves. One that is there stays
   * as it is.
   */
  async directory(path: string, mode: number, owner: string | undefined): Promise<void> {
    const missing: string[] = [];
    for (let at = path; !(await isThere(at)); at = dirname(at)) missing.unshift(at);
    if (missing.length === 0) return;
    await this.#step('make', `the directory ${path}`, () =>
      owner === undefined ? mkdir(path, { recursive: true, mode }) : makeFor(owner, missing, mode),
    );
  }

  /** @param shown what is to be seen beside it where it is only shown */
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
    const told = dryRun ? `would ${verb} ${what}${shown}` : `${DID[verb]} ${what}`;
    this.did.push(told);
    if (!json) print(told);
  }
}

/**
 * Makes directories as root for another user. Who may write above them could put a link in the way
 * meanwhile, and be given any directory; systemd-tmpfiles follows no link that leads from
 * somebody's directory into another's.
 */
async function makeFor(user: string, directories: readonly string[], mode: number): Promise<void> {
  const group = (await runTool(['id', '-g', user])).trim();
  const lines = directories.map(
    (path) => `d ${unitWord(path)} 0${mode.toString(8)} ${user} ${group} -\n`,
  );
  await runTool(['systemd-tmpfiles', '--create', '-'], lines.join(''));
}

/**
 * How long a program of the system may take, in ms: a service may need minutes until it is ready.
 */
const LONGEST_MS = 15 * 60_000;

/**
 * Runs a program of the system to its end, and returns what it printed.
 *
 * @throws PeersyncError SERVICE_TOOL where it is not there or fails
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
    const said = (stderr.trim() || stdout.trim() || messageOf(cause)).replace(/\s*\n\s*/g, ' ');
    const [message, hint] =
      systemCode(cause) === 'ENOENT'
        ? [
            `The program ${program} is not there.`,
            'Without systemd start `peersync run` by other means.',
          ]
        : [
            `"${[program, ...args].join(' ')}" failed: ${sentence(said)}`,
            'See why in `journalctl -e` (of a user service: `journalctl --user -e`), and try again.',
          ];
    throw new PeersyncError({ code: 'SERVICE_TOOL', message, hint, cause });
  }
}

/** What the unit runs, and where. */
export interface Runs {
  readonly scope: 'system' | 'user';
  /** Absolute. */
  readonly node: string;
  /** Absolute: the program of the command line. */
  readonly program: string;
  /** What the program needs to be read, with the packages it is made of. */
  readonly programRoot: string;
  /** Absolute: the configuration. */
  readonly configPath: string;
  readonly config: Config;
  /** The user of a system service; that of the unit unless given. */
  readonly runAs?: string | undefined;
  /** Where the credential of a name stands for `LoadCredential=`; absolute. */
  readonly credentialFile: (name: string) => string;
  /** The version of systemd. */
  readonly systemd: number;
}

/** What a sandboxed system service does not see, or sees empty, unless it is brought in. */
const HIDDEN = ['/home', '/root', '/run/user', '/tmp', '/var/tmp'];
/** Since when systemd can wait longer with each new start. */
const KNOWS_STEPS = 254;

/** The directories that peersync writes to. */
export function writtenDirectories({ state, peer, mirror }: Config): readonly string[] {
  const isMirroring = [mirror.shares, mirror.tables, mirror.citations].some(
    (mirrors) => mirrors.length > 0,
  );
  const embedded = peer.url === 'embedded' ? [peer.embedded.dir] : [];
  return [state.dir, ...embedded, ...(isMirroring ? [mirror.root] : [])];
}

/** Where the password of the peer and the token of the page stand, where there are some. */
export function secretsOf({ peer, status }: Config) {
  return [
    { what: "the peer's password", secret: peer.auth?.password },
    { what: 'the token of the status page', secret: status.token },
  ];
}

/** Files beside the configuration that are read. */
export function readFiles(config: Config): readonly string[] {
  const { ca } = config.peer.tls;
  const files = secretsOf(config).flatMap(({ secret = {} }) =>
    'file' in secret ? [secret.file] : [],
  );
  return ca === undefined ? files : [ca, ...files];
}

/** The name of the credential that a secret stands in, where it does. */
export function credentialOf(secret: Secret | undefined): string | undefined {
  return secret !== undefined && 'credential' in secret ? secret.credential : undefined;
}

/**
 * What is particular to one installation, beside the unit that is the same for all: what runs, on
 * which configuration, what it may read and write.
 */
export function dropIn(runs: Runs): string {
  const { config, configPath, node, program, runAs, systemd } = runs;
  const command = (word: string): string =>
    unitCommand([node, program, word, '--config', configPath]);
  const lines = ['[Service]', 'ExecStart=', `ExecStart=${command('run')}`];
  lines.push('ExecReload=', `ExecReload=${command('reload')}`);
  if (runAs !== undefined) lines.push(`User=${runAs}`, 'Group=');
  for (const credential of new Set(secretsOf(config).map(({ secret }) => credentialOf(secret))))
    if (credential !== undefined)
      lines.push(`LoadCredential=${credential}:${unitRest(runs.credentialFile(credential))}`);
  if (systemd >= KNOWS_STEPS)
    lines.push('# Waits longer with each new start.', 'RestartSteps=6', 'RestartMaxDelaySec=5min');
  // The service of a user sees everything, read-only.
  const isHidden = (path: string) =>
    runs.scope === 'system' &&
    HIDDEN.some((hidden) => path === hidden || path.startsWith(hidden + sep));
  const folders = config.folders.map(({ path }) => path);
  const tools = [dirname(configPath), ...readFiles(config), node, runs.programRoot];
  for (const path of new Set([...tools, ...folders].filter(isHidden)))
    lines.push(`BindReadOnlyPaths=${unitWordIfThere(path)}`);
  for (const path of folders)
    if (!isHidden(path)) lines.push(`ReadOnlyPaths=${unitWordIfThere(path)}`);
  for (const path of new Set(writtenDirectories(config)))
    lines.push(`${isHidden(path) ? 'BindPaths' : 'ReadWritePaths'}=${unitWord(path)}`);
  return `${lines.join('\n')}\n`;
}

/**
 * A path or word as it stands in a unit file, in quotes, with what systemd would expand or take for
 * its own written out.
 *
 * @throws PeersyncError SERVICE_WORD for one with control characters, which some settings of
 *   systemd cannot name
 */
export function unitWord(word: string): string {
  return `"${nameable(word, /\p{Cc}/u)
    .replace(/[\\"]/g, '\\$&')
    .replaceAll('%', '%%')}"`;
}

/**
 * A path at the end of a setting that knows no quotes: one loses a blank or backslash at its end.
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
