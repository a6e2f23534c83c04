import { sentence } from '../lib/sentence.js';
import type { Trouble } from '../state/entry.js';
import type { SilentDisk } from './live.js';

/** What waits for a disk that does not answer, and since when in ms since the epoch. */
export type DiskTrouble = Trouble & { readonly since: number };

export function diskTrouble({ path, since, what }: SilentDisk): DiskTrouble {
  return {
    code: 'DISK_SILENT',
    message: sentence(`The disk of ${path} does not answer: ${what}`),
    hint: 'Nothing is lost, and the work goes on by itself when it answers. See whether it is well: a server that is away, a device with errors (`dmesg`), a file system that was frozen.',
    since,
  };
}
