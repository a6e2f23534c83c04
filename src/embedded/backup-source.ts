import { open, readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { openOwnSocketPath } from '../lib/socket.js';
import { passwordFileOf, USERNAME } from './access.js';
import { BackupError, peerUnreadable } from './backup-errors.js';
import { LOG_FULL, type Suspension } from './checkpoints.js';
import { Database, FORMAT } from './database.js';
import { lockDirectory } from './directory-lock.js';
import { type Driver, fastestDriver } from './driver.js';
import { EmbeddedError } from './errors.js';
import { DATABASE, DECIDED, exists, isDecided } from './finish-restore.js';

/** A `peer.sqlite` that does not change until `release`. */
export interface BackupSource {
  readonly path: string;
  /** The size of the database, in bytes. */
  readonly size: number;
  /** Called before each piece is read. @throws BackupError BACKUP_INTERRUPTED */
  stay(): Promise<void>;
  /** Returns if the file did not change until now. @throws BackupError BACKUP_INTERRUPTED */
  release(): Promise<void>;
  /** Lets the peer go on after a failure. */
  abandon(): Promise<void>;
}

/**
 * Returns the database of a peer, stopped or running. It stays as it is, with everything that the
 * peer has answered for.
 *
 * @throws BackupError, EmbeddedError
 */
export async function openSource(
  dir: string,
  clock: Clock,
  driver?: Driver | undefined,
): Promise<BackupSource> {
  await requirePeer(dir);
  try {
    return await stoppedPeer(dir, driver ?? (await fastestDriver()));
  } catch (error) {
    if (!(error instanceof EmbeddedError) || error.code !== 'EMBEDDED_DIR_LOCKED') throw error;
    return await runningPeer(dir, clock);
  }
}

/** @throws BackupError BACKUP_PEER_MISSING, BACKUP_PEER_UNREADABLE */
export async function requirePeer(dir: string): Promise<void> {
  // A restore that was killed may have moved the database away.
  for (const name of [DATABASE, DECIDED]) {
    const isThere = await exists(join(dir, name)).catch((error: unknown) => {
      if (systemCode(error) !== 'ENOTDIR') throw peerUnreadable(dir, error);
      return false;
    });
    if (isThere) return;
  }
  throw new BackupError('BACKUP_PEER_MISSING', { dir });
}

/**
 * Checks that a stopped peer can be read as it is: opening its database would migrate one of an
 * earlier format. The caller holds the lock of the directory.
 *
 * @throws BackupError RESTORE_UNFINISHED, BACKUP_PEER_OLDER, BACKUP_PEER_UNREADABLE
 */
export async function requireSettled(dir: string): Promise<void> {
  const path = join(dir, DATABASE);
  try {
    if (await isDecided(dir))
      throw new BackupError('RESTORE_UNFINISHED', { dir, why: 'the peer was not started since' });
    const found = await formatOf(path);
    if (found > 0 && found < FORMAT)
      throw new BackupError('BACKUP_PEER_OLDER', { path, found, known: FORMAT });
  } catch (error) {
    throw peerUnreadable(path, error);
  }
}

/** The place of `user_version` in a database. */
const FORMAT_AT = 60;

/** Returns the format of a database; 0 if the file is shorter. */
async function formatOf(path: string): Promise<number> {
  const file = await open(path, 'r');
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, FORMAT_AT);
    return buffer.readUInt32BE();
  } finally {
    await file.close();
  }
}

/** Holds the lock of the directory, and moves a log that a killed peer left into the file. */
async function stoppedPeer(dir: string, driver: Driver): Promise<BackupSource> {
  const lock = await lockDirectory(dir);
  try {
    await requireSettled(dir);
    const database = new Database(dir, driver);
    const size = database.suspendCheckpoints();
    database.close();
    const release = () => lock.release();
    return { path: database.path, size, stay: async () => {}, release, abandon: release };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** The longest time until the peer answers, in ms. It may be indexing. */
const ANSWER_MS = 30_000;
/** The time after which a suspension is renewed, as a part of its length. */
const RENEWED_AFTER = 0.25;

const LOG_FULL_HINT = 'Stop peersync, or wait until it is idle, and run the command again.';

/** Asks the peer by its socket not to write to the file. */
async function runningPeer(dir: string, clock: Clock): Promise<BackupSource> {
  const { lease, leaseMs, size } = (await ask(dir, { action: 'suspend' }).catch(
    (error: unknown) => {
      if (error instanceof RefusedError)
        throw new BackupError('BACKUP_REFUSED', { why: error.why });
      const why = systemCode(error) ?? messageOf(error);
      throw new BackupError('BACKUP_PEER_UNREACHABLE', { dir, why }, { cause: error });
    },
  )) as Suspension;
  const interrupted = (error: unknown): never => {
    const why = error instanceof RefusedError ? error.why : messageOf(error);
    const isLogFull = error instanceof RefusedError && error.status === LOG_FULL;
    const hint = isLogFull ? LOG_FULL_HINT : undefined;
    throw new BackupError('BACKUP_INTERRUPTED', { why }, { cause: error, hint });
  };
  let renewedAt = clock.now();
  return {
    path: join(dir, 'peer.sqlite'),
    size,
    stay: async () => {
      if (clock.now() - renewedAt < leaseMs * RENEWED_AFTER) return;
      await ask(dir, { action: 'renew', lease }).catch(interrupted);
      renewedAt = clock.now();
    },
    release: async () => void (await ask(dir, { action: 'resume', lease }).catch(interrupted)),
    // The suspension ends by itself as well.
    abandon: async () => void (await ask(dir, { action: 'resume', lease }).catch(() => undefined)),
  };
}

/** The peer answered with an error. */
class RefusedError extends Error {
  constructor(
    readonly why: string,
    readonly status: number,
  ) {
    super(why);
  }
}

async function ask(dir: string, form: Readonly<Record<string, string>>): Promise<unknown> {
  const password = (await readFile(passwordFileOf(dir), 'utf8')).trim();
  const socket = await openOwnSocketPath(join(dir, 'local'), 'socket');
  try {
    const { status, body } = await post(
      socket.path,
      new URLSearchParams(form).toString(),
      password,
    );
    const answer: unknown = JSON.parse(body);
    if (status === 200) return answer;
    const { message } = answer as { readonly message?: unknown };
    const why = typeof message === 'string' ? message : `it answers ${status}`;
    throw new RefusedError(why, status);
  } finally {
    await socket.close();
  }
}

function post(
  socketPath: string,
  body: string,
  password: string,
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const headers = {
      host: 'localhost',
      authorization: `Basic ${Buffer.from(`${USERNAME}:${password}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': Buffer.byteLength(body),
    };
    const path = '/api/backup_p.json';
    const options = { socketPath, path, method: 'POST', headers, agent: false, timeout: ANSWER_MS };
    const sent = request(options, (response) => {
      textOf(response).then(
        (text) => resolve({ status: response.statusCode ?? 0, body: text }),
        reject,
      );
    });
    sent.on('timeout', () => sent.destroy(new Error('it does not answer')));
    sent.on('error', reject);
    sent.end(body);
  });
}
