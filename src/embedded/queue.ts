import { bytes, type Database, int, text } from './database.js';
import type { Tally } from './tally.js';
import type { NormalUrl } from './urls.js';

/** A document as it was pushed. */
export interface Pushed {
  readonly url: NormalUrl;
  readonly collections: readonly string[];
  /** Milliseconds since the epoch. */
  readonly loadDate: number;
  /** UTF-8, as it came. */
  readonly data: Buffer;
}

/** A pushed document with its place in the order of acceptance. */
export interface Queued extends Pushed {
  readonly seq: number;
}

interface Waiting {
  readonly pushed: readonly Pushed[];
  readonly resolve: (seqs: number[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Pushed documents that are not in the index yet.
 *
 * A document enters in a transaction that is on disk before the push is answered (pushes that come together share one), and
 * leaves in the transaction that puts it into the index: a crash finds it in exactly one of the two.
 */
export class Queue {
  readonly #database: Database;
  readonly #tally: Tally;
  #together: Waiting[] = [];

  constructor(database: Database, tally: Tally) {
    this.#database = database;
    this.#tally = tally;
  }

  /** Resolves with the sequence numbers when all of them are on disk; rejects when none is. */
  accept(pushed: readonly Pushed[]): Promise<number[]> {
    return new Promise((resolve, reject) => {
      this.#together.push({ pushed, resolve, reject });
      if (this.#together.length === 1) setImmediate(() => this.#commit());
    });
  }

  #commit(): void {
    const together = this.#together;
    this.#together = [];
    try {
      const seqs = this.#database.transaction(() => together.map((waiting) => this.#insert(waiting.pushed)));
      for (const [i, waiting] of together.entries()) waiting.resolve(seqs[i] ?? []);
    } catch (error) {
      for (const waiting of together) waiting.reject(error);
    }
  }

  #insert(pushed: readonly Pushed[]): number[] {
    this.#tally.add('waiting', pushed.length);
    const sql = 'INSERT INTO queue (url, collections, load_date, data) VALUES (?, ?, ?, ?)';
    return pushed.map((p) =>
      this.#database.run(sql, p.url, JSON.stringify(p.collections), p.loadDate, p.data),
    );
  }

  /** The first document after `seq` in the order of acceptance. */
  nextAfter(seq: number): Queued | undefined {
    const row = this.#database.row('SELECT * FROM queue WHERE seq > ? ORDER BY seq LIMIT 1', seq);
    return row && toQueued(row);
  }

  get(seq: number): Queued | undefined {
    const row = this.#database.row('SELECT * FROM queue WHERE seq = ?', seq);
    return row && toQueued(row);
  }

  /** Within the caller's transaction. */
  remove(seq: number): void {
    this.#database.run('DELETE FROM queue WHERE seq = ?', seq);
    this.#tally.add('waiting', -1);
  }
}

function toQueued(row: Parameters<typeof text>[0]): Queued {
  return {
    seq: int(row, 'seq'),
    url: text(row, 'url') as NormalUrl,
    collections: JSON.parse(text(row, 'collections')) as string[],
    loadDate: int(row, 'load_date'),
    data: bytes(row, 'data'),
  };
}
