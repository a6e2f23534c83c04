import { dirname, sep } from 'node:path';
import type { Config } from '../../config/config.js';
import type { Secret } from '../../config/fields.js';
import { EXIT, PeersyncError } from '../../lib/errors.js';

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
  const hasMirrors = mirror.shares.length + mirror.tables.length + mirror.citations.length > 0;
  return [
    state.dir,
    ...(peer.url === 'embedded' ? [peer.embedded.dir] : []),
    ...(hasMirrors ? [mirror.root] : []),
  ];
}

/** Files beside the configuration that are read. */
export function readFiles({ peer, status }: Config): readonly string[] {
  return [
    ...(peer.tls.ca === undefined ? [] : [peer.tls.ca]),
    ...[peer.auth?.password, status.token].flatMap((secret) =>
      secret !== undefined && 'file' in secret ? [secret.file] : [],
    ),
  ];
}

/** The name of the credential that a secret stands in, where it does. */
export function credentialOf(secret: Secret | undefined): string | undefined {
  return secret !== undefined && 'credential' in secret ? secret.credential : undefined;
}

/**
 * What is particular to one installation, beside the unit that is the same for all: what runs, on which configuration, what it may
 * read and write.
 */
export function dropIn(runs: Runs): string {
  const { config, configPath, node, program, runAs, systemd } = runs;
  const command = (word: string): string => unitCommand([node, program, word, '--config', configPath]);
  const lines = ['[Service]', 'ExecStart=', `ExecStart=${command('run')}`];
  lines.push('ExecReload=', `ExecReload=${command('reload')}`);
  if (runAs !== undefined) lines.push(`User=${runAs}`, 'Group=');
  for (const credential of new Set([config.peer.auth?.password, config.status.token].map(credentialOf)))
    if (credential !== undefined)
      lines.push(`LoadCredential=${credential}:${unitRest(runs.credentialFile(credential))}`);
  if (systemd >= KNOWS_STEPS)
    lines.push('# Waits longer with each new start.', 'RestartSteps=6', 'RestartMaxDelaySec=5min');
  // The service of a user sees everything, read-only.
  const isHidden = (path: string) =>
    runs.scope === 'system' && HIDDEN.some((hidden) => path === hidden || path.startsWith(hidden + sep));
  const folders = config.folders.map(({ path }) => path);
  const tools = [dirname(configPath), ...readFiles(config), node, runs.programRoot];
  for (const path of new Set([...tools, ...folders].filter(isHidden)))
    lines.push(`BindReadOnlyPaths=${unitWordIfThere(path)}`);
  for (const path of folders) if (!isHidden(path)) lines.push(`ReadOnlyPaths=${unitWordIfThere(path)}`);
  for (const path of new Set(writtenDirectories(config)))
    lines.push(`${isHidden(path) ? 'BindPaths' : 'ReadWritePaths'}=${unitWord(path)}`);
  return `${lines.join('\n')}\n`;
}

/**
 * A path or word as it stands in a unit file, in quotes, with what systemd would expand or take for its own written out.
 *
 * @throws PeersyncError SERVICE_WORD for one with control characters, which some settings of systemd cannot name
 */
export function unitWord(word: string): string {
  if (/\p{Cc}/u.test(word))
    throw unnameable(word, 'has a control character in it, which a unit of systemd cannot name');
  return `"${word.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%')}"`;
}

/** A path as it stands at the end of a setting that knows no quotes. @throws PeersyncError SERVICE_WORD */
function unitRest(path: string): string {
  if (/\p{Cc}|[\s\\]$/u.test(path))
    throw unnameable(
      path,
      'has a control character in it, or a blank or backslash at its end, which a unit loses',
    );
  return path.replaceAll('%', '%%');
}

function unnameable(word: string, why: string): PeersyncError {
  return new PeersyncError({
    code: 'SERVICE_WORD',
    message: `${JSON.stringify(word)} ${why}.`,
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
