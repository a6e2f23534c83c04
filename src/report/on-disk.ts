import { lstat, stat } from 'node:fs/promises';
import type { FolderConfig } from '../config/config.js';
import { messageOf, systemCode } from '../lib/errors.js';

/** What stands at a path and is no file. A link is one that is not followed. */
export type NoFile = 'directory' | 'link' | 'other';

/** `held`: absent, as everything is while the root of its folder is missing or doubtful. */
export type OnDisk = 'file' | 'absent' | 'held' | NoFile | { readonly unreadable: string };

export async function lookAt(path: string, followSymlinks: boolean): Promise<OnDisk> {
  try {
    const stats = await (followSymlinks ? stat(path) : lstat(path));
    if (stats.isFile()) return 'file';
    if (stats.isDirectory()) return 'directory';
    return stats.isSymbolicLink() ? 'link' : 'other';
  } catch (error) {
    const code = systemCode(error);
    return code === 'ENOENT' || code === 'ENOTDIR' ? 'absent' : { unreadable: code ?? messageOf(error) };
  }
}

export function isNoFile(onDisk: OnDisk): onDisk is NoFile {
  return onDisk === 'directory' || onDisk === 'link' || onDisk === 'other';
}

/** What holds for what is no file. @param closed the rule that keeps a directory out with all that is in it */
export function wordsOfNoFile(
  kind: NoFile,
  { name }: Pick<FolderConfig, 'name'>,
  closed: string | undefined,
): { readonly rule: string; readonly next: string } {
  if (kind === 'link')
    return {
      rule: `A symbolic link is not followed: followSymlinks of folder ${name} is false.`,
      next: 'Nothing, unless `followSymlinks` is set to true: then it is followed to what stands in the same folder.',
    };
  if (kind === 'other')
    return { rule: 'Only regular files are taken: no socket, pipe or device.', next: 'Nothing.' };
  if (closed !== undefined)
    return {
      rule: `A rule keeps it out with everything in it: ${closed}.`,
      next: 'Nothing, unless the rule is changed.',
    };
  return {
    rule: `No rule keeps it out: each file in it is taken or not by the rules of folder ${name}.`,
    next: 'Nothing for the directory itself: ask about a file in it; `peersync list` names those that are known.',
  };
}
