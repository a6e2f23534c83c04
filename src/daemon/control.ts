import { constants } from 'node:fs';
import { chmod, type FileHandle, open, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { durationText } from '../lib/units.js';
import type { Answerer, Question } from '../report/answers.js';

const SOCKET_NAME = 'control.sock';
/** The kernel's limit for a socket's path is 107 bytes. */
const LONGEST_PATH = 100;
const LARGEST_QUESTION = 1024 * 1024;
const PATIENCE_MS = 60_000;

/** The daemon's ear: a socket in the state directory that only the daemon's own user can open. */
export class ControlServer {
  readonly #server: Server;
  readonly #directory: FileHandle;

  private constructor(server: Server, directory: FileHandle) {
    this.#server = server;
    this.#directory = directory;
  }

  /** Listens in `stateDirectory`; the caller holds the lock, so that a socket left by a crash can be replaced. */
  static async open(stateDirectory: string, answer: Answerer, log: Logger): Promise<ControlServer> {
    const directory = await openDirectory(stateDirectory);
    const path = socketPath(stateDirectory, directory);
    await rm(path, { force: true });
    const server = createServer((request, response) => {
      answerRequest(request, response, answer).catch((error: unknown) => {
        log.debug({ error: messageOf(error) }, 'a command went away before its answer');
        response.destroy();
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
    await chmod(path, 0o600);
    return new ControlServer(server, directory);
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
    await this.#directory.close();
  }
}

/**
 * Asks the daemon that uses `stateDirectory`.
 *
 * @param options.patienceMs how long the daemon may take until it begins to answer; 0 for as long as it needs. @default 60,000
 * @param options.signal breaks the answer off, with CONTROL_FAILED
 * @returns its answer line by line, or undefined when no daemon listens
 * @throws PeersyncError what the daemon answered in error; CONTROL_FAILED also while the answer is read
 */
export async function askDaemon(
  stateDirectory: string,
  question: Question,
  { patienceMs = PATIENCE_MS, signal }: { readonly patienceMs?: number; readonly signal?: AbortSignal } = {},
): Promise<AsyncIterable<unknown> | undefined> {
  let directory: FileHandle;
  try {
    directory = await openDirectory(stateDirectory);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw cannotOpen(error, stateDirectory);
  }
  let response: IncomingMessage | undefined;
  try {
    response = await send(socketPath(stateDirectory, directory), question, patienceMs, signal);
  } finally {
    await directory.close();
  }
  if (response === undefined) return undefined;
  if (response.statusCode === 200) return readLines(response);
  for await (const line of readLines(response)) throw errorFrom(line);
  throw cannotAsk(`status ${response.statusCode}`);
}

function send(
  socket: string,
  question: Question,
  patienceMs: number,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage | undefined> {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify(question);
    const giveUp = () => call.destroy(new Error(`no answer within ${durationText(patienceMs)}`));
    const call = request(
      {
        socketPath: socket,
        // A kept connection may be closed by the daemon at the moment when it is used again.
        agent: false,
        method: 'POST',
        path: '/',
        timeout: patienceMs,
        ...(signal === undefined ? {} : { signal }),
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      },
      (response) => {
        // From here on a pause is the reader's: somebody leafs through a long list.
        call.off('timeout', giveUp);
        resolve(response);
      },
    );
    call.on('timeout', giveUp);
    call.on('error', (error) => {
      const code = systemCode(error);
      if (code === 'ENOENT' || code === 'ECONNREFUSED') resolve(undefined);
      else reject(cannotAsk(error));
    });
    call.end(body);
  });
}

async function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answerer,
): Promise<void> {
  try {
    const lines = asText(answer(await readQuestion(request)));
    // What goes wrong before the first line has a status of its own.
    const first = await lines.next();
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    if (first.done !== true) response.write(first.value);
    await pipeline(lines, response);
  } catch (error) {
    if (response.headersSent) throw error;
    const { code, message, hint, exitCode } =
      error instanceof PeersyncError ? error : new ControlError(messageOf(error), error);
    response.writeHead(400, { 'content-type': 'application/x-ndjson' });
    response.end(`${JSON.stringify({ code, message, hint, exitCode })}\n`);
  }
}

async function* asText(lines: ReturnType<Answerer>): AsyncGenerator<string> {
  for await (const line of lines) {
    // An answer may give many lines at a time.
    const lot: readonly unknown[] = Array.isArray(line) ? line : [line];
    yield lot.map((each) => `${JSON.stringify(each)}\n`).join('');
  }
}

async function readQuestion(request: IncomingMessage): Promise<Question> {
  let size = 0;
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    size += chunk.length;
    if (size > LARGEST_QUESTION) throw new ControlError('the question is too large');
    chunks.push(chunk);
  }
  const question: unknown = JSON.parse(Buffer.concat(chunks).toString());
  if (
    typeof question !== 'object' ||
    question === null ||
    !('ask' in question) ||
    !('parameters' in question)
  )
    throw new ControlError('the question could not be read');
  const { ask, parameters } = question;
  if (typeof ask !== 'string' || typeof parameters !== 'object' || parameters === null)
    throw new ControlError('the question could not be read');
  return { ask, parameters: parameters as Record<string, unknown> };
}

async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of unbroken(stream)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield JSON.parse(line);
  }
}

async function* unbroken(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* stream;
  } catch (error) {
    throw new ControlError('it ended before its answer was complete', error);
  }
}

function openDirectory(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY);
}

/** A long path goes by way of the open directory, which Linux shows under a short name. */
function socketPath(directory: string, handle: FileHandle): string {
  const path = join(directory, SOCKET_NAME);
  if (Buffer.byteLength(path) <= LONGEST_PATH || process.platform !== 'linux') return path;
  return `/proc/self/fd/${handle.fd}/${SOCKET_NAME}`;
}

/** The daemon and a command could not talk. */
export class ControlError extends PeersyncError {
  constructor(what: string, cause?: unknown) {
    super({
      code: 'CONTROL_FAILED',
      message: `The daemon could not be asked: ${what}.`,
      hint: 'See its log, and whether you are the user it runs as.',
      cause,
    });
  }
}

/** The directory with the socket could not be opened: most often by a person who is not the user of the service. */
export function cannotOpen(error: unknown, stateDirectory: string): PeersyncError {
  if (systemCode(error) !== 'EACCES') return cannotAsk(error);
  return new PeersyncError({
    code: 'CONTROL_FAILED',
    message: `This user may not look into the state in ${stateDirectory}, where a running daemon would be asked.`,
    hint: 'Give the command as the user that peersync runs as; of a service that is `sudo -u peersync peersync …`.',
    cause: error,
  });
}

function cannotAsk(error: unknown): ControlError {
  return new ControlError(messageOf(error), error);
}

function errorFrom(line: unknown): PeersyncError {
  if (typeof line !== 'object' || line === null) return cannotAsk('its answer could not be read');
  const { code, message, hint, exitCode } = line as Record<string, unknown>;
  return new PeersyncError({
    code: String(code),
    message: String(message),
    hint: String(hint),
    exitCode: exitCode === EXIT.usage ? EXIT.usage : EXIT.failure,
  });
}
