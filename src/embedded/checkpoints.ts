import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Clock, Timer } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { formatBytes } from '../lib/units.js';
import type { Database } from './database.js';
import { Refusal } from './form.js';
import type { Context } from './server.js';

/** A suspension ends after this time unless it is renewed, in ms. */
const LEASE_MS = 60_000;
/**
 * The longest write-ahead log during a suspension, in bytes. After the end it is moved into the
 * file at once, which takes some seconds.
 */
const MAX_LOG_BYTES = 2 ** 30;
/** The time between the end of a suspension and the checkpoint, in which the answer is sent. */
const CHECKPOINT_AFTER_MS = 50;
/** The status of the answer if the log is too long. */
export const LOG_FULL = 507;

/** The answer to the beginning of a suspension. */
export interface Suspension {
  readonly lease: string;
  readonly leaseMs: number;
  /** The size of `peer.sqlite`, in bytes. */
  readonly size: number;
}

/**
 * Keeps `peer.sqlite` as it is while another process copies it. SQLite writes to the file only at a
 * checkpoint: until then, all changes are in the write-ahead log beside it.
 *
 * - *Running*: SQLite makes checkpoints. `suspend` makes one that moves all changes into the file.
 * - *Suspended*: there are none. `resume` ends this, and so does a minute without `renew`, because
 *   the process that copies may have died. The log is moved into the file after the answer.
 *
 * The process that copies knows that the file did not change if `resume` still accepts its lease.
 */
export class Checkpoints {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  #lease: string | undefined;
  /** Ends a suspension, or makes the checkpoint after it. */
  #timer: Timer | undefined;

  constructor(database: Database, clock: Clock, log: Logger) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /** @throws Refusal 409 if another backup is under way */
  suspend(): Suspension {
    if (this.#lease !== undefined)
      throw new Refusal(409, 'Another backup is under way. If it was killed, wait for a minute.');
    const size = this.#database.suspendCheckpoints();
    const lease = randomBytes(16).toString('hex');
    this.#lease = lease;
    this.#expireLater();
    return { lease, leaseMs: LEASE_MS, size };
  }

  /** @throws Refusal 409 if the suspension has ended, 507 if the log is too long */
  renew(lease: string): void {
    this.#require(lease);
    const { size } = statSync(`${this.#database.path}-wal`);
    if (size > MAX_LOG_BYTES) {
      this.#endSoon();
      const limit = formatBytes(MAX_LOG_BYTES);
      throw new Refusal(LOG_FULL, `The peer took in more than ${limit} during the backup.`);
    }
    this.#expireLater();
  }

  /** @throws Refusal 409 if the suspension has ended */
  resume(lease: string): void {
    this.#require(lease);
    this.#endSoon();
  }

  /** Called before the database is closed. */
  close(): void {
    this.#lease = undefined;
    this.#timer?.cancel();
  }

  #require(lease: string): void {
    if (this.#lease === undefined || lease !== this.#lease)
      throw new Refusal(409, 'This backup has ended: it was not renewed in time.');
  }

  #expireLater(): void {
    this.#timer?.cancel();
    const expire = () => {
      this.#log.warn(
        { event: 'backup' },
        'A backup ended without a word; the peer writes to its database again',
      );
      this.#end();
    };
    this.#timer = this.#clock.after(LEASE_MS, expire, { background: true });
  }

  /** Ends the suspension. The request that asked for it is answered before the checkpoint. */
  #endSoon(): void {
    this.close();
    this.#timer = this.#clock.after(CHECKPOINT_AFTER_MS, () => this.#end(), { background: true });
  }

  #end(): void {
    this.close();
    try {
      this.#database.resumeCheckpoints();
    } catch (error) {
      // Later commits try again.
      this.#log.warn({ event: 'backup', err: error }, 'The log of the database stays for now');
    }
  }
}

const ACTIONS = ['suspend', 'renew', 'resume'];

/** Answers the program that makes a backup: `action`, and `lease` after the first one. */
export async function backupControl(context: Context, checkpoints: Checkpoints): Promise<string> {
  if (context.request.method !== 'POST')
    throw new Refusal(405, 'Backups are made by POST.', { allow: 'POST' });
  context.requireChange();
  const form = await context.form();
  const [action, lease = ''] = [form.text('action') ?? '', form.text('lease')];
  if (!ACTIONS.includes(action))
    throw new Refusal(400, `The parameter action is one of ${ACTIONS.join(', ')}.`);
  if (action === 'suspend') return context.record('Backup', checkpoints.suspend());
  if (action === 'renew') checkpoints.renew(lease);
  else checkpoints.resume(lease);
  return context.record('Backup', { lease });
}
