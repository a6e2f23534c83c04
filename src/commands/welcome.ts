import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import type { Logger } from '../lib/logger.js';

const WELCOME = `# Welcome to peersync

This document was put here so that there is something to find.

peersync noticed it, pushed it into the index of your search peer, and looked it up there until the peer showed
this very version. Drop more text files into this folder, or change this one: they are searchable within seconds.

To see what became of a file, type: peersync why PATH
`;

/** Makes the folders of the configuration that are not there, each with a welcome document in it. */
export async function makeMissingFolders(config: Config, log: Logger): Promise<void> {
  for (const folder of config.folders) {
    const missing = await access(folder.path).then(
      () => false,
      () => true,
    );
    if (!missing) continue;
    await mkdir(folder.path, { recursive: true });
    await writeFile(join(folder.path, 'welcome.md'), WELCOME, { flag: 'wx' });
    log.info(
      { event: 'created', folder: folder.name, path: folder.path },
      `created ${folder.path} with a welcome document`,
    );
  }
}
