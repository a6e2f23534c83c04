import { constants } from 'node:fs';
import { access, opendir, readFile, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { counted } from '../cli/text.js';
import type { Config, FolderConfig } from '../config/config.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { shellWord } from '../lib/text.js';
import type { StateView } from '../state/state.js';
import { checkPorts } from './check-ports.js';
import type { Finding } from './finding.js';
import { find, Wrong } from './finding.js';
import { openToOthers } from './other-accounts.js';
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
