import { resolve as resolvePath } from 'node:path';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../lib/clock.js';
import { type ErrorParts, EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { type Answer, answerQuestion, type DaemonFacts, type Question } from './daemon-link.js';
import { lockDirectory } from './directory-lock.js';
import { EmbeddedError } from './errors.js';
import type { PeerInstance, PeerOptions } from './peer-instance.js';

export interface EmbeddedPeerOptions extends PeerOptions {
  readonly log: Logger;
}

/** A running embedded peer. */
export interface EmbeddedPeer extends PeerInstance {
  /** Resolves when the peer has ended, with an error if it ended by itself. */
  readonly exited: Promise<Error | undefined>;
}

/**
 * The time after which a peer that does not close is terminated, in ms. Its data is on disk in any
 * case.
 */
const CLOSE_MS = 10_000;

/**
 * Starts a peer in a thread of its own, so that indexing does not hold the event loop of the
 * daemon. The thread always ends with this process.
 *
 * @throws EmbeddedError EMBEDDED_PORT_IN_USE, EMBEDDED_PORT_REFUSED, EMBEDDED_DIR_UNWRITABLE,
 *   EMBEDDED_DIR_LOCKED, EMBEDDED_DIR_OPEN_TO_OTHERS, EMBEDDED_DIR_OF_ANOTHER_USER,
 *   EMBEDDED_DIR_LOCKED_ELSEWHERE, EMBEDDED_DIR_DAMAGED, EMBEDDED_DIR_NEWER, EMBEDDED_DIR_OLDER,
 *   EMBEDDED_PASSWORD_UNUSABLE, EMBEDDED_STOPPED
 */
export async function startEmbeddedPeer({
  log,
  ...options
}: EmbeddedPeerOptions): Promise<EmbeddedPeer> {
  const dir = resolvePath(options.dir);
  const lock = await lockDirectory(dir);
  const workerData: PeerOptions = { ...options, dir };
  // The flags of the process (--eval, --import) are not meant for this thread.
  const worker = new Worker(new URL('../embedded/worker.js', import.meta.url), {
    workerData,
    execArgv: [],
  });
  let closing = false;
  let daemon: DaemonFacts | undefined;
  let failure: Error | undefined;
  worker.on('error', (error) => {
    failure = failureOf(error);
  });
  const exited = new Promise<number>((resolve) => worker.once('exit', resolve)).then(
    async (code) => {
      await lock.release().catch(() => undefined);
      if (closing) return undefined;
      return failure ?? stopped(`its thread ended with ${code}`);
    },
  );
  const ready = new Promise<Ready>((resolve) => {
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'ready') resolve(message);
      else if (message.type === 'log') log[message.level](message.fields, message.message);
      else if (daemon !== undefined) void answerQuestion(message, daemon, worker);
    });
  });
  const first = await Promise.race([ready, exited]);
  if (first === undefined || first instanceof Error) throw first ?? stopped('it was closed');
  const send = (message: ToWorker): void => worker.postMessage(message);
  const linkTo = (statusUrl: string | undefined): void => send({ type: 'link', statusUrl });
  const connect = (facts: DaemonFacts): void => {
    daemon = facts;
    send({ type: 'connect' });
  };
  const close = async (): Promise<void> => {
    closing = true;
    send({ type: 'close' });
    const cut = systemClock.after(CLOSE_MS, () => void worker.terminate(), { background: true });
    await exited;
    cut.cancel();
  };
  const { url, socketPath, credentials, database } = first;
  return { url, socketPath, credentials, database, exited, linkTo, connect, close };
}

/** Returns the error that ended the worker. It arrives here as plain data. */
function failureOf(error: Error & Partial<ErrorParts>): PeersyncError {
  const { code, hint } = error;
  if (code === undefined || hint === undefined) return stopped(messageOf(error), error);
  const { message, details = {}, exitCode = EXIT.failure } = error;
  return new PeersyncError({ code, message, hint, details, exitCode });
}

function stopped(why: string, cause?: unknown): EmbeddedError {
  return new EmbeddedError('EMBEDDED_STOPPED', { why }, { cause, details: {} });
}

interface Ready extends Pick<PeerInstance, 'url' | 'socketPath' | 'credentials' | 'database'> {
  readonly type: 'ready';
}

/** A message to the worker thread. */
export type ToWorker =
  | { readonly type: 'close' }
  | { readonly type: 'link'; readonly statusUrl: string | undefined }
  /** Allows questions to the daemon. */
  | { readonly type: 'connect' }
  | Answer;

/** A message from the worker thread. An error ends it. */
export type FromWorker =
  | Ready
  | Question
  | {
      readonly type: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly fields: object;
      readonly message: string;
    };
