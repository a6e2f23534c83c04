import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { ForeignSocket, openOwnSocketPath } from '../lib/socket.js';
import { durationText } from '../lib/units.js';
import { CONTROL_DIRECTORY, CONTROL_SOCKET, errorAnswer, NDJSON } from './protocol.js';
import { hasShape, haveShape, type Need, type OneLineRequest, type Request } from './request.js';

const PATIENCE_MS = 60_000;

export interface AskOptions {
  /** The longest time until the daemon begins to answer, in ms; 0: unlimited. @default 60,000 */
  readonly patienceMs?: number;
  /** Breaks the answer off, with CONTROL_FAILED. */
  readonly signal?: AbortSignal;
}

/**
 * Asks the daemon that uses `stateDirectory` a request whose answer has one line.
 *
 * @returns the answer; undefined if no daemon listens
 * @throws PeersyncError the error of the daemon; CONTROL_FAILED if there is no complete answer, or
 *   it does not have the shape of the request
 */
export async function askDaemonOnce<Input, Line>(
  stateDirectory: string,
  request: OneLineRequest<Need, Input, Line>,
  question: NoInfer<Input>,
  options: AskOptions = {},
): Promise<Line | undefined> {
  const lines = await askDaemon(stateDirectory, request, question, options);
  return lines && (await firstLine(lines));
}

/** Returns the first line of an answer, which has to have one. */
export async function firstLine<Line>(lines: AsyncIterable<Line>): Promise<Line> {
  for await (const line of lines) return line;
  throw cannotAsk(undefined, 'its answer is empty');
}

/** The same for any request. @returns the answer line by line; undefined if no daemon listens */
export async function askDaemon<Input, Line>(
  stateDirectory: string,
  request: Request<Need, Input, Line>,
  question: NoInfer<Input>,
  options: AskOptions = {},
): Promise<AsyncIterable<Line> | undefined> {
  const lots = await askLots(stateDirectory, request, question, options);
  return lots && linesOf(lots);
}

/** Lines that arrived together, and their text. Each line in it has its end. */
export interface CheckedLot<Line> {
  readonly text: string;
  readonly lines: readonly Line[];
}

/** The same in lots. A million lines are passed on faster so. */
export async function askLots<Input, Line>(
  stateDirectory: string,
  request: Request<Need, Input, Line>,
  question: NoInfer<Input>,
  options: AskOptions = {},
): Promise<AsyncIterable<CheckedLot<Line>> | undefined> {
  const pieces = await askText(stateDirectory, request, question, options);
  return pieces && checkedLots(request, pieces);
}

/** The same as text, which is not checked: pieces of whole lines, each line with its end. */
export async function askText<Input>(
  stateDirectory: string,
  { path }: Request<Need, Input, unknown>,
  question: NoInfer<Input>,
  { patienceMs = PATIENCE_MS, signal }: AskOptions = {},
): Promise<AsyncIterable<string> | undefined> {
  const directory = join(stateDirectory, CONTROL_DIRECTORY);
  const socket = await openOwnSocketPath(directory, CONTROL_SOCKET).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw cannotOpen(error, stateDirectory);
  });
  if (socket === undefined) return undefined;
  const response = await send(socket.path, path, question, patienceMs, signal).finally(() =>
    socket.close(),
  );
  if (response === undefined) return undefined;
  if (response.statusCode === 200) return readText(response);
  throw await errorOf(response);
}

/** Returns the error that a daemon answered. */
async function errorOf(response: IncomingMessage): Promise<PeersyncError> {
  const answer = parsed(await text(response));
  if (hasShape(errorAnswer, answer)) return new PeersyncError(answer.error);
  return cannotAsk(undefined, `status ${response.statusCode}`);
}

/** @returns undefined if nothing listens */
function send(
  socketPath: string,
  path: string,
  question: unknown,
  patienceMs: number,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage | undefined> {
  return new Promise((resolve, reject) => {
    const options = {
      socketPath,
      method: 'POST',
      path: `/api/${path}`,
      headers: { 'content-type': 'application/json', accept: NDJSON },
      timeout: patienceMs,
      // The daemon may close an idle connection at the moment when it is used again.
      agent: false,
      ...(signal && { signal }),
    };
    const call = httpRequest(options, (response) => {
      // From here on only the reader causes pauses, for example a person who pages a long list.
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

/** @throws PeersyncError CONTROL_FAILED if a line does not have the shape of the request */
async function* checkedLots<Line>(
  { line: shape, name }: Request<Need, unknown, Line>,
  pieces: AsyncIterable<string>,
): AsyncGenerator<CheckedLot<Line>, void> {
  for await (const text of pieces) {
    const lines = text.trimEnd().split('\n').map(parsed);
    if (!haveShape(shape, lines))
      throw unreadable(name, lines.map((line) => shape.safeParse(line).error).find(Boolean));
    yield { text, lines };
  }
}

async function* linesOf<Line>(lots: AsyncIterable<CheckedLot<Line>>): AsyncGenerator<Line, void> {
  for await (const { lines } of lots) yield* lines;
}

/** Returns the value of a JSON text; undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The answer of the daemon does not have the shape of the request. */
function unreadable(request: string, cause?: unknown): PeersyncError {
  return new PeersyncError({
    code: 'CONTROL_FAILED',
    message: `The daemon answered the request ${request} in a way that this version does not read.`,
    hint: 'Use the command of the same version as the daemon: after an update, restart the daemon.',
    cause,
  });
}

/** The daemon and a command could not communicate. */
export function cannotAsk(cause: unknown, what = messageOf(cause)): PeersyncError {
  return new PeersyncError({
    code: 'CONTROL_FAILED',
    message: `The daemon could not be asked: ${what}.`,
    hint: 'See its log, and whether you are the user it runs as.',
    cause,
  });
}

/**
 * Explains why the directory of the socket was not used. Usually a person is not the user of the
 * service.
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
