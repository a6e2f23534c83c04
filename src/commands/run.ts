import { closeSync, openSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { define } from '../cli/command.js';
import { daemonConfig, isThere, prepare } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { onSignals } from '../cli/signals.js';
import type { Config } from '../config/config.js';
import { loadConfig } from '../config/load.js';
import { Notifier } from '../daemon/notifier.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import { withConfig } from '../lib/hint.js';
import type { Logger } from '../lib/logger.js';
import { growHeapSlowly } from '../lib/process.js';
import { shellWord } from '../lib/text.js';

/**
 * The daemon until SIGTERM or SIGINT: the first stops it gently, the second at once. SIGHUP lets it
 * read its configuration anew.
 */
export const runCommand = define({
  options: { create: option.flag('Create folders that are missing, each with a welcome document') },
  examples: [
    ['$0 run', 'Run on ./config.json'],
    ['$0 run -c docs.json', 'Run on another configuration'],
    ['$0 run --log-level debug', 'Tell everything in detail'],
  ],
  run: async (options) => {
    const { config, log, path } = await prepare(options, 1);
    const configFile = daemonConfig(options);
    if (options.create) await makeMissingFolders(config, log, configFile);
    const notifier = new Notifier(process.env, { log });
    let end: (failure?: unknown) => void = () => {};
    const ended = new Promise<unknown>((resolve) => {
      end = resolve;
    });
    // A signal before the start takes effect after it.
    let isReloadAsked = false;
    let reload = () => {
      isReloadAsked = true;
    };
    onHangUp(() => reload());
    onSignals(
      (signal) => {
        log.info(
          { event: 'stopping', signal },
          `${signal}: stopping; what is under way may finish (once more to stop at once)`,
        );
        void notifier.stopping();
        end();
      },
      () =>
        log.info(
          { event: 'stopped' },
          'stopped at once; what was under way is looked up at the next start',
        ),
    );
    growHeapSlowly();
    // Loaded here, for the commands that need no daemon are quicker without it; in two steps, so
    // that the event loop turns.
    await import('../peer/client.js');
    const { Daemon } = await import('../daemon/daemon.js');
    void notifier.status(() => 'starting: reading what is known');
    const daemon = await Daemon.open({
      config,
      log,
      notifier,
      clock: systemClock,
      follow: true,
      waitWhileDiskFull: true,
      onFailure: end,
      file: path,
      configFile,
      load: async () => (await loadConfig(path)).config,
      onReload: (after) => {
        log.level = options.logLevel ?? after.log.level;
        if (options.create) void makeMissingFolders(after, log, configFile).catch(end);
      },
    });
    for (const folder of config.folders)
      log.info(
        { event: 'watching', folder: folder.name, path: folder.path },
        `watching ${folder.path}: text and documents there go into the collection "${folder.collection}"`,
      );
    const kind = config.peer.url === 'embedded' ? 'the embedded peer; search it at' : 'the peer at';
    const { peerUrl: url } = daemon.parts;
    log.info({ event: 'peer', url }, `pushing to ${kind} ${url}/`);
    const failure = await daemon
      .start()
      .then(() => {
        reload = () => {
          void notifier.reloading();
          // The fault is in the log, and the daemon goes on as before.
          void daemon
            .reload()
            .catch(() => {})
            .then(() => notifier.ready());
        };
        if (isReloadAsked) reload();
        return ended;
      })
      .catch((error: unknown) => error);
    await daemon.stop().catch((error: unknown) => {
      if (error instanceof PeersyncError && error.code === 'STOP_GAVE_UP') {
        log.error({ event: 'stopped' }, messageOf(error));
        // A thread that waits for a disk keeps a process from ending in any other way.
        process.kill(process.pid, 'SIGKILL');
      }
      throw failure ?? error;
    });
    if (failure !== undefined) throw failure;
    log.info({ event: 'stopped' }, 'stopped; everything known is on disk');
    return EXIT.done;
  },
});

/**
 * Calls `reload` at SIGHUP, by which a person asks for a reload. If the terminal of the process was
 * closed, SIGHUP means that, and ends the process as usual.
 */
function onHangUp(reload: () => void): void {
  const hadTerminal = [0, 1, 2].some((fd) => isatty(fd));
  const onHangUp = () => {
    if (!hadTerminal || hasTerminal()) {
      reload();
      return;
    }
    process.off('SIGHUP', onHangUp);
    process.kill(process.pid, 'SIGHUP');
  };
  process.on('SIGHUP', onHangUp);
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

const welcome = (file: string, config: string | undefined) => `# Welcome to peersync

This document was put here so that there is something to find.

peersync noticed it, pushed it into the index of your search peer, and looked it up there until the peer showed
this very version. Drop more text files into this folder, or change this one: they are searchable within seconds.

To see what became of this file, type: ${withConfig(`\`peersync why ${shellWord(file)}\``, config)}
`;

/**
 * Makes the folders of the configuration that are not there, each with a welcome document in it.
 *
 * @param file of the configuration, where commands have to name it
 */
async function makeMissingFolders(
  config: Config,
  log: Logger,
  file: string | undefined,
): Promise<void> {
  for (const folder of config.folders) {
    if (await isThere(folder.path)) continue;
    await mkdir(folder.path, { recursive: true });
    const path = join(folder.path, 'welcome.md');
    await writeFile(path, welcome(path, file), { flag: 'wx' });
    log.info(
      { event: 'created', folder: folder.name, path: folder.path },
      `created ${folder.path} with a welcome document`,
    );
  }
}
