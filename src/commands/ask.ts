import { readFile } from 'node:fs/promises';
import * as client from '../api/client.js';
import type { AnyOneLineRequest, AnyRequest } from '../api/request.js';
import { status } from '../api/status.js';
import { configOf, type GlobalOptions, isThere } from '../cli/global-options.js';
import { complain } from '../cli/output.js';
import { type Config, ConfigError } from '../config/config.js';
import { systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import type { Logger } from '../lib/logger.js';
import { fromVisible, shellWord } from '../lib/text.js';
import { locate } from '../report/items.js';
import type { StatusReport } from '../report/status-report.js';
import { stateHolder } from '../state/directory.js';
import { answerWithoutDaemon } from './without-daemon.js';

/**
 * Returns the configuration of a command that asks the daemon. If the file is invalid, a daemon may
 * still run with an earlier version of it. The command then says so, and asks the daemon that uses
 * the state directory of the file.
 *
 * @throws ConfigError if the file is invalid and no such daemon answers
 */
export async function configToAsk(options: GlobalOptions): Promise<Config> {
  try {
    return (await configOf(options)).config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const path = writtenPath(options.config);
    const config = await configOfStateIn(path);
    const running = await runningStatus(config.state.dir).catch(() => undefined);
    if (running === undefined) throw error;
    complain(`peersync: ${error.message}\n  ${daemonNote(running, path)}\n`);
    const [folder] = config.folders;
    const folders =
      folder === undefined
        ? []
        : running.folders.map(({ name, path }) => ({ ...folder, name, path }));
    return { ...config, folders, mirror: { ...config.mirror, root: running.mirrorRoot } };
  }
}

/** Returns a valid configuration with the state directory that an invalid file names. */
async function configOfStateIn(path: string): Promise<Config> {
  const [{ checkConfig }, { memberOf }] = await Promise.all([
    import('../config/load.js'),
    import('../lib/json.js'),
  ]);
  const text = await readFile(path, 'utf8').catch(() => '');
  const dir = memberOf(text, ['state', 'dir']);
  const folders = [{ path: '/unknown', collection: 'unknown' }];
  const state = typeof dir === 'string' && dir !== '' ? { dir } : {};
  return await checkConfig({ folders, state }, path);
}

/** Names the daemon that is asked although the configuration at `path` is invalid. */
function daemonNote({ configuration, pid }: StatusReport, path: string): string {
  const { file = path } = configuration ?? {};
  if (file === path) return 'The daemon goes on as before, and is asked.';
  return `A daemon (pid ${pid}) runs here on ${file}, and is asked; give \`-c ${shellWord(file)}\`.`;
}

export interface AskOptions {
  /** The longest time until the daemon begins to answer, in ms; 0: unlimited. */
  readonly patienceMs?: number;
  /** The log where no daemon runs. @default one that warns on the standard error */
  readonly log?: Logger;
}

/** The longest time to wait for a daemon that has locked the state and does not answer yet. */
const STARTING_MS = 10_000;
const TRY_AGAIN_MS = 500;

/**
 * Asks the running daemon. If none runs, the request is answered without one; see
 * `answerWithoutDaemon`.
 *
 * @throws PeersyncError STATE_LOCKED if another peersync uses the state and does not answer
 */
export async function* askLines<Input, Line>(
  options: GlobalOptions,
  { state }: Config,
  request: AnyRequest<Input, Line>,
  question: NoInfer<Input>,
  asking: AskOptions = {},
): AsyncGenerator<Line, void> {
  const end = systemClock.now() + Math.min(asking.patienceMs || STARTING_MS, STARTING_MS);
  for (;;) {
    try {
      const lines = await client.askDaemon(state.dir, request, question, asking);
      if (lines !== undefined) yield* lines;
      else
        for await (const lot of answerWithoutDaemon(options, request, question, asking.log))
          yield* lot;
      return;
    } catch (error) {
      if (!(error instanceof PeersyncError) || error.code !== 'STATE_LOCKED') throw error;
      if (systemClock.now() >= end)
        throw new PeersyncError({
          code: error.code,
          message: `${error.message} It does not answer yet: it is starting, or does something else.`,
          hint: 'Ask again in a moment; `peersync status` says when it runs.',
          cause: error,
        });
    }
    await systemClock.sleep(TRY_AGAIN_MS);
  }
}

/** The same for a request whose answer has one line. */
export async function ask<Input, Line>(
  options: GlobalOptions,
  config: Config,
  request: AnyOneLineRequest<Input, Line>,
  question: NoInfer<Input>,
): Promise<Line> {
  return await client.firstLine(askLines(options, config, request, question));
}

/** Asks the running daemon, line by line. @throws PeersyncError NOT_RUNNING if there is none */
export async function askRunning<Input, Line>(
  { state }: Config,
  request: AnyRequest<Input, Line>,
  question: NoInfer<Input>,
): Promise<AsyncIterable<Line>> {
  const lines = await client.askDaemon(state.dir, request, question, { patienceMs: 0 });
  if (lines === undefined) throw await notRunning(state.dir);
  return lines;
}

/** Returns the status of the running daemon; undefined if none runs. */
export async function runningStatus(stateDir: string): Promise<StatusReport | undefined> {
  return await client.askDaemonOnce(stateDir, status, {});
}

/** Explains why no daemon answers, as far as the state directory shows it. */
async function notRunning(stateDir: string): Promise<PeersyncError> {
  const holder = await stateHolder(stateDir);
  if (holder !== undefined)
    return new PeersyncError({
      code: 'NOT_RELOADABLE',
      message: `The daemon of this configuration (pid ${holder.pid} on ${holder.host}) does not take commands now.`,
      hint: 'If it is starting or stopping, try again in a moment; if it runs on another machine, ask it there.',
    });
  const missing = await missingState(stateDir);
  if (missing === undefined)
    return new PeersyncError({
      code: 'NOT_RUNNING',
      message: `No daemon runs with this configuration: none uses the state in ${stateDir}.`,
      hint: 'Start it with `peersync run`. If state.dir was changed, a daemon that runs on the old directory takes it up only by a restart.',
    });
  return new PeersyncError({
    code: 'NOT_RUNNING',
    message: `No daemon runs with this configuration: there is no state in ${stateDir}.`,
    hint: `\`peersync run\` starts one. ${missing.moved}`,
  });
}

export interface MissingState {
  readonly message: string;
  /** The remedy if a daemon runs on another directory. */
  readonly moved: string;
}

/** Explains why there is no state directory; undefined if there is one. */
export async function missingState(stateDir: string): Promise<MissingState | undefined> {
  if (await isThere(stateDir)) return undefined;
  return {
    message: `Nothing has run with this configuration yet: there is no state in ${stateDir}.`,
    moved:
      'If a daemon runs already, its state.dir was another when it started: stop it, move that directory here, and start it again.',
  };
}

/**
 * Returns what a person typed as the daemon understands it: the absolute path of a file that
 * exists, or else `FOLDER/path` or the bare name of a known file.
 */
export async function typedPath(config: Config, text: string): Promise<string> {
  const path = writtenPath(text);
  if (await isThere(path)) return path;
  const meant = writtenPath(fromVisible(text));
  if (meant !== path && (await isThere(meant))) return meant;
  if (config.folders.some(({ name }) => text.startsWith(`${name}/`))) return text;
  const isName = !text.includes('/') && (await locate(config, path)) === undefined;
  return isName ? text : path;
}
