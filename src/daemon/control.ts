import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { type ErrorParts, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { ForeignSocket, listenInPrivate, openOwnSocketPath } from '../lib/socket.js';
import { durationText } from '../lib/units.js';
import type { Answerer, Question } from '../report/answers.js';

/** Below the directory of the state. */
const DIRECTORY = 'control';
const NAME = 'socket';
const PATIENCE_MS = 60_000;

/**
 * Answers commands: listens on a socket below the state directory that only the daemon's own user
 * can reach. The caller holds the lock, so that a socket left by a crash can be replaced.
 *
 * @returns what ends that
 */
export async function openControl(
  stateDirectory: string,
  answer: Answerer,
  log: Logger,
): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    answerRequest(request, response, answer).catch((error: unknown) => {
      log.debug({ error: messageOf(error) }, 'a command went away before its answer');
      response.destroy();
    });
  });
  const socket = await listenInPrivate(server, join(stateDirectory, DIRECTORY), NAME);
  return async () => {
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
    await socket.close();
  };
}

async function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answerer,
): Promise<void> {
  const headers = { 'content-type': 'application/x-ndjson' };
  try {
    const lines = asText(answer((await json(request)) as Question));
    // What goes wrong before the first line has a status of its own.
    const first = await lines.next();
    response.writeHead(200, headers);
    if (first.done !== true) response.write(first.value);
    await pipeline(lines, response);
  } catch (error) {
    if (response.headersSent) throw error;
    const { code, message, hint, exitCode } =
      error instanceof PeersyncError ? error : cannotAsk(error);
    response.writeHead(400, headers).end(`${JSON.stringify({ code, message, hint, exitCode })}\n`);
  }
}

async function* asText(lines: ReturnType<Answerer>): AsyncGenerator<string> {
  for await (const line of lines) {
    // An answer may give many lines at a time.
    const lot: readonly unknown[] = Array.isArray(line) ? line : [line];
    yield lot.map((each) => `${JSON.stringify(each)}\n`).join('');
  }
}

interface AskOptions {
  readonly patienceMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Asks the daemon that uses `stateDirectory`.
 *
 * @param options.patienceMs how long the daemon may take until it begins to answer; 0 for as long
 *   as it needs. @default 60,000
 * @param options.signal breaks the answer off, with CONTROL_FAILED
 * @returns its answer line by line, or undefined when no daemon listens
 * @throws PeersyncError what the daemon answered in error; CONTROL_FAILED also while the answer is
 *   read
 */
export async function askDaemon(
  stateDirectory: string,
  question: Question,
  options: AskOptions = {},
): Promise<AsyncIterable<unknown> | undefined> {
  const text = await askDaemonText(stateDirectory, question, options);
  return text && parsed(text);
}

/** The same as text: pieces of whole lines, each line with its end. */
export async function askDaemonText(
  stateDirectory: string,
  question: Question,
  { patienceMs = PATIENCE_MS, signal }: AskOptions = {},
): Promise<AsyncIterable<string> | undefined> {
  const directory = join(stateDirectory, DIRECTORY);
  const socket = await openOwnSocketPath(directory, NAME).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw cannotOpen(error, stateDirectory);
  });
  if (socket === undefined) return undefined;
  const response = await send(socket.path, question, patienceMs, signal).finally(() =>
    socket.close(),
  );
  if (response === undefined || response.statusCode === 200) return response && readText(response);
  for await (const error of parsed(readText(response)))
    throw new PeersyncError(error as ErrorParts);
  throw cannotAsk(`status ${response.statusCode}`);
}

function send(
  socketPath: string,
  question: Question,
  patienceMs: number,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage | undefined> {
  return new Promise((resolve, reject) => {
    const options = { socketPath, method: 'POST', path: '/', timeout: patienceMs };
    // A kept connection may be closed by the daemon at the moment when it is used again.
    const call = request({ ...options, agent: false, ...(signal && { signal }) }, (response) => {
      // From here on a pause is the reader's: somebody leafs through a long list.
      call.setTimeout(0);
      resolve(response);
    });
    call.on('timeout', () =>
      call.destroy(new Error(`no answer within ${durationText(patienceMs)}`)),
    );
    call.on('error', (error) => {
      const code = systemCode(error);
      if (code === 'ENOENT' || code === 'ECONNREFUSED') resolve(undefined);
      else reject(cannotAsk(error));
    });
    call.end(JSON.stringify(question));
  });
}

async function* readText(stream: IncomingMessage): AsyncGenerator<string> {
  stream.setEncoding('utf8');
  let rest = '';
  try {
    for await (const chunk of stream) {
      const text = rest + String(chunk);
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      if (end > 0) yield text.slice(0, end);
    }
  } catch (error) {
    throw cannotAsk(error, 'it ended before its answer was complete');
  }
}

async function* parsed(text: AsyncIterable<string>): AsyncGenerator<unknown> {
  for await (const lines of text)
    for (const line of lines.trimEnd().split('\n')) yield JSON.parse(line);
}

/** The daemon and a command could not talk. */
function cannotAsk(cause: unknown, what = messageOf(cause)): PeersyncError {
  return new PeersyncError({
    code: 'CONTROL_FAILED',
    message: `The daemon could not be asked: ${what}.`,
    hint: 'See its log, and whether you are the user it runs as.',
    cause,
  });
}

/**
 * Explains why the directory with the socket was not used. Most often a person is not the user of
 * the service.
 */
export function cannotOpen(cause: unknown, stateDirectory: string): PeersyncError {
  if (cause instanceof ForeignSocket)
    return new PeersyncError({
      code: 'CONTROL_FAILED',
      message: `${cause.directory} belongs to another user (uid ${cause.uid}), so the daemon there was not asked.`,
      hint: `Where that user runs peersync, type \`sudo -u '#${cause.uid}' peersync …\`; else set another state.dir.`,
      cause,
    });
  if (systemCode(cause) !== 'EACCES') return cannotAsk(cause);
  return new PeersyncError({
    code: 'CONTROL_FAILED',
    message: `This user may not look into the state in ${stateDirectory}, where a running daemon would be asked.`,
    hint: 'Give the command as the user that peersync runs as; of a service that is `sudo -u peersync peersync …`.',
    cause,
  });
}
