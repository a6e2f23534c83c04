import { once } from 'node:events';
import { constants } from 'node:fs';
import { access, opendir, readFile, stat, statfs } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { counted, fewOf } from '../cli/text.js';
import type { Config, FolderConfig } from '../config/config.js';
import { type Listen, parseListen } from '../config/url.js';
import { messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { shellWord } from '../lib/text.js';
import type { StateView } from '../state/state.js';
import { runningStatus } from './ask.js';
import { type Finding, find, Wrong } from './finding.js';
import { readState } from './without-daemon.js';

/** Checks folders, the limit of watches, writable directories and ports. */
export async function* checkMachine(config: Config): AsyncGenerator<Finding> {
  let directories = 0;
  // Another finding reports a state that cannot be read.
  const state = await readState(config).catch(() => undefined);
  for (const folder of config.folders) {
    const found = await checkFolder(folder, state);
    directories += found.directories;
    yield found.finding;
  }
  yield await find('watch limit', () => checkWatchLimit(directories));
  yield await checkWritable('state', config.state.dir, 'state.dir');
  const { citations, root, shares, tables } = config.mirror;
  if (shares.length + tables.length + citations.length > 0)
    yield await checkWritable('mirror root', root, 'mirror.root');
  yield* checkPorts(config);
  const others = await openToOthers(config);
  if (others !== undefined)
    yield {
      check: 'other accounts',
      ok: true,
      message: `others can log in to this machine (${others.accounts})`,
      hint: `They ${others.open.join('. They ')}.`,
    };
}

/**
 * Checks whether everything that the rules of a folder take can be read, and counts the
 * directories.
 *
 * @param state undefined if it cannot be read. It may know the folder
 */
export async function checkFolder(folder: FolderConfig, state: StateView | undefined) {
  const [{ FolderRules }, { failures }, { rootAt }, { mountsAway }] = await Promise.all([
    import('../watch/rules/folder-rules.js'),
    import('../watch/rules/failures.js'),
    import('../watch/root.js'),
    import('../watch/mounts.js'),
  ]);
  const rules = new FolderRules(folder);
  const unreadable: string[] = [];
  let directories = 0;
  const hint = 'Let the user that peersync runs as read and enter it';
  const finding = await find(`folder ${folder.name}`, async () => {
    const open = [''];
    for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
      const path = join(folder.path, directory);
      try {
        await access(path, constants.R_OK | constants.X_OK);
        await rules.ignoreFiles.read(directory);
        for await (const entry of await opendir(path)) {
          const below = join(directory, entry.name);
          if (entry.isDirectory() && rules.closedEntered(below) === undefined) open.push(below);
        }
      } catch (error) {
        unreadable.push(`${path} (${messageOf(error)})`);
        if (directory === '' && systemCode(error) === 'ENOENT')
          return await missingFolder(folder, state);
        if (directory === '' && (await isNoDirectory(path)))
          throw new Wrong(
            `${path} is no directory`,
            'Name the directory that holds it in `folders`.',
          );
        if (directory === '')
          throw new Wrong(`${path} cannot be read: ${messageOf(error)}`, `${hint}.`);
      }
      directories += 1;
    }
    const { replaced } = state === undefined ? {} : await rootAt(folder, state);
    if (replaced !== undefined) throw new Wrong(replaced.message, replaced.hint);
    const [unmounted] = state === undefined ? [] : await mountsAway(folder, state);
    if (unmounted !== undefined) {
      const { message, hint } = failures.mountAway(join(folder.path, unmounted), folder.name);
      throw new Wrong(message, hint);
    }
    if (unreadable.length === 0)
      return `${folder.path} is readable, ${counted(directories, 'directory', 'directories')}`;
    const message = `not all of ${folder.path} can be read, first ${unreadable[0]}`;
    throw new Wrong(message, `${hint}, or add it to \`ignore\`.`);
  });
  return { finding, directories };
}

/** For a file, `access` fails only because it cannot be entered. */
async function isNoDirectory(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && !found.isDirectory();
}

/**
 * Says that a folder is not there: it is to be made, or it is away. A directory made in the place
 * of one that was there would stand below the mount point, and the files that it held would seem
 * removed.
 */
async function missingFolder(folder: FolderConfig, state: StateView | undefined): Promise<never> {
  const { wasSeen } = await import('../watch/root.js');
  if (state === undefined || wasSeen(folder, state))
    throw new Wrong(
      `${folder.path} does not exist`,
      'Mount it or bring it back, or mend the path in `folders`.',
    );
  await writableAbove(folder.path, 'folders');
  throw new Wrong(
    `${folder.path} does not exist`,
    `Make it with \`mkdir -p ${shellWord(folder.path)}\`, start with \`peersync run --create\`, or mend the path in \`folders\`.`,
  );
}

async function checkWatchLimit(directories: number): Promise<string> {
  const text = await readFile('/proc/sys/fs/inotify/max_user_watches', 'utf8').catch(
    () => undefined,
  );
  if (text === undefined) return 'this system has none';
  const limit = Number(text);
  const message = `${counted(directories, 'directory', 'directories')} to watch, ${limit} watches allowed for this user`;
  if (directories < limit) return message;
  const enough = Math.max(524_288, directories * 2);
  throw new Wrong(
    message,
    `Raise it: sysctl fs.inotify.max_user_watches=${enough}; until then changes are found by rescans only.`,
  );
}

/**
 * Checks whether a directory can be written and has room. If it does not exist yet, its nearest
 * existing parent is checked.
 *
 * @param key the key of the configuration that names the directory
 * @param freeBytes returns the free space on the disk of a path, for this user
 */
export async function checkWritable(
  check: string,
  directory: string,
  key: string,
  freeBytes: (path: string) => Promise<number> = freeOf,
): Promise<Finding> {
  return await find(check, async () => {
    const path = await writableAbove(directory, key);
    if ((await freeBytes(path)) === 0)
      throw new Wrong(
        `no space is left on the disk of ${directory}`,
        'Free some space there; nothing is lost.',
      );
    if (path !== directory) return `${directory} will be made when it is needed`;
    const message = `${path} can be written`;
    const isClosed = key !== 'state.dir' || ((await stat(path)).mode & 0o077) === 0;
    if (isClosed) return message;
    return {
      message: `${message}, and others can look into it`,
      hint: `Close it to them: chmod 700 ${path}`,
    };
  });
}

/**
 * The directory, or the nearest one above that is there. @throws Wrong where it cannot be written
 */
async function writableAbove(directory: string, key: string): Promise<string> {
  try {
    await access(directory, constants.W_OK | constants.X_OK);
    return directory;
  } catch (error) {
    if (systemCode(error) === 'ENOENT' && directory !== dirname(directory))
      return await writableAbove(dirname(directory), key);
    throw new Wrong(
      `${directory} cannot be written: ${messageOf(error)}`,
      `Let the user that peersync runs as write there, or mend \`${key}\`.`,
    );
  }
}

async function freeOf(path: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(path);
  // Some file systems do not report their size.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/**
 * Checks whether the daemon can listen on its addresses, or already does. Yields nothing for an
 * address that is off.
 */
export async function* checkPorts({ peer, state, status }: Config): AsyncGenerator<Finding> {
  // If the daemon does not answer this user, only its port shows it.
  const ours = await runningStatus(state.dir).catch((error: unknown) => {
    if (!(error instanceof PeersyncError)) throw error;
  });
  const embedded =
    peer.url === 'embedded' ? { host: '127.0.0.1', port: peer.embedded.port } : undefined;
  const ports = [
    { check: 'embedded peer', key: 'peer.embedded.port', listen: embedded, served: ours?.peer.url },
    {
      check: 'status page',
      key: 'status.listen',
      listen: parseListen(status.listen),
      served: ours?.page,
    },
  ];
  // Each is held until all were tried, so that two of the same do not pass one after the other.
  const held: Server[] = [];
  try {
    for (const { check, key, listen, served } of ports) {
      if (listen === undefined) continue;
      yield await find(check, async () => {
        const server = createServer((socket) => socket.destroy());
        try {
          server.listen({ ...listen, exclusive: true });
          await once(server, 'listening');
          held.push(server);
          return `it can listen at ${addressOf(listen)}`;
        } catch (error) {
          // Our own daemon would make room for itself.
          const isOurs = served !== undefined && Number(new URL(served).port || 80) === listen.port;
          if (isOurs) return `the running daemon serves it at ${served}`;
          throw notListening(error, listen, key);
        }
      });
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((closed) => server.close(closed))));
  }
}

/** Returns the reason why a program cannot listen there. */
function notListening(error: unknown, listen: Listen, key: string): Wrong {
  const at = addressOf(listen);
  if (systemCode(error) !== 'EADDRINUSE')
    return new Wrong(`nobody can listen at ${at}: ${messageOf(error)}`, `Set another \`${key}\`.`);
  const hint = `Stop what listens there, unless it is the daemon of this configuration, or set another \`${key}\`.`;
  return new Wrong(`${at} is in use`, hint);
}

function addressOf({ host, port }: Listen): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === 0 ? `any free port of ${name}` : `${name}:${port}`;
}

/** People's accounts have ids from here; those below are of the system. */
const FIRST_PERSON = 1_000;
const NOBODY = 65_534;
const NO_LOGIN = /\/(nologin|false|true|sync)$/;

/**
 * Describes what other accounts of this machine reach on loopback, and how to close it. Returns
 * undefined if nothing is open, or no other account can log in. Accounts of a directory service are
 * not seen.
 *
 * @param passwd the accounts, as in /etc/passwd
 */
export async function openToOthers(
  { peer, status }: Config,
  passwd = '/etc/passwd',
): Promise<{ readonly accounts: string; readonly open: readonly string[] } | undefined> {
  const open: string[] = [];
  if (peer.url === 'embedded' && !peer.embedded.requireAuth)
    open.push(
      peer.embedded.originals
        ? 'can search the embedded peer and open the files that it finds: set `peer.embedded.requireAuth` to true'
        : 'can search the embedded peer: set `peer.embedded.requireAuth` to true',
    );
  if (status.listen !== 'off' && status.token === undefined)
    open.push('can use the status page, and pause or retry there: set `status.token`');
  if (open.length === 0) return undefined;
  const others = loginsIn(await readFile(passwd, 'utf8').catch(() => ''), process.getuid?.());
  return others.length === 0 ? undefined : { accounts: fewOf(others), open };
}

function loginsIn(passwd: string, own: number | undefined): string[] {
  return passwd.split('\n').flatMap((line) => {
    const [name = '', , id = '', , , , shell = ''] = line.split(':');
    const uid = Number(id);
    const isPerson = id !== '' && uid >= FIRST_PERSON && uid < NOBODY && uid !== own;
    return isPerson && shell !== '' && !NO_LOGIN.test(shell) ? [name] : [];
  });
}
