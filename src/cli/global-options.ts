import { access } from 'node:fs/promises';
import type { LoadedConfig } from '../config/load.js';
import { LOG_LEVELS, type Log, type LogLevel } from '../daemon/log.js';
import { writtenPath } from '../lib/home.js';

/** The options that every command has. */
export interface GlobalOptions {
  readonly config: string;
  readonly json: boolean;
  readonly logLevel: LogLevel | undefined;
}

export const DEFAULT_CONFIG = 'config.json';

/** The options of every command, for yargs. */
export const GLOBAL_OPTIONS = {
  config: {
    alias: 'c',
    type: 'string',
    requiresArg: true,
    describe: 'The configuration file',
    defaultDescription: `$PEERSYNC_CONFIG or ${DEFAULT_CONFIG}`,
  },
  json: { type: 'boolean', default: false, describe: 'Answer in JSON' },
  color: {
    type: 'boolean',
    default: true,
    describe: 'Colours on a terminal; --no-color or NO_COLOR=1: none',
  },
  'log-level': { choices: LOG_LEVELS, requiresArg: true, describe: 'How much to log' },
} as const;

/** The configuration of a command that names none. */
export function usualConfig({ PEERSYNC_CONFIG }: NodeJS.ProcessEnv = process.env): string {
  return PEERSYNC_CONFIG ?? DEFAULT_CONFIG;
}

/**
 * The configuration that commands in hints have to name, as it was given; undefined where they find
 * it without.
 */
export function configToName({ config }: Pick<GlobalOptions, 'config'>): string | undefined {
  return config === usualConfig() ? undefined : config;
}

/**
 * Returns the configuration that commands in a daemon's log and page have to name. Their reader may
 * be in another directory.
 */
export function daemonConfig({ config }: Pick<GlobalOptions, 'config'>): string | undefined {
  return config === DEFAULT_CONFIG ? undefined : writtenPath(config);
}

/**
 * Returns the configuration, its path and the log of a command. On the standard output, the level
 * of the log is that of the configuration.
 */
export async function prepare(
  options: GlobalOptions,
  fd: 1 | 2 = 2,
): Promise<LoadedConfig & { readonly log: Log }> {
  const loaded = await configOf(options);
  const level = fd === 1 ? loaded.config.log.level : 'warn';
  return { ...loaded, log: await openLog(options, fd, level) };
}

/**
 * The configuration alone, for a command that logs nothing. Its code is loaded here: the help is
 * quicker without it.
 */
export async function configOf(options: GlobalOptions): Promise<LoadedConfig> {
  const { loadConfig } = await import('../config/load.js');
  return await loadConfig(options.config);
}

/**
 * A log of its own for a command, with the level that was asked for; its code is loaded here as
 * well.
 */
export async function openLog(
  options: Pick<GlobalOptions, 'config' | 'logLevel'>,
  fd: 1 | 2,
  level: LogLevel,
): Promise<Log> {
  const { createLog } = await import('../daemon/log.js');
  const stream = fd === 1 ? process.stdout : process.stderr;
  return await createLog({
    level: options.logLevel ?? level,
    fd,
    terminal: stream.isTTY === true,
    // The log of a daemon is read elsewhere, in another directory and without its environment.
    config: fd === 1 ? daemonConfig(options) : configToName(options),
  });
}

export async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
