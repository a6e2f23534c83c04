import { syncDirectory } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { Administrator, administratorPassword } from './administrator.js';
import { CitationSearch } from './citation-search.js';
import { Database, Tally } from './database.js';
import { EmbeddedError, failures } from './errors.js';
import { Indexer } from './indexer.js';
import { Library, Queue } from './library.js';
import { routes } from './routes.js';
import { Search } from './search.js';
import { PeerServer, type ServerTimeouts } from './server.js';
import { ShareStore } from './share-store.js';
import { TableRefuse, TableStore } from './table-store.js';

/** The options of a peer, all of them decided. */
export interface BoxOptions {
  readonly dir: string;
  readonly host: string;
  readonly port: number;
  readonly commitEveryMs: number;
  readonly maxBody: number;
  readonly requireAuthEverywhere: boolean;
  readonly timeouts?: Partial<ServerTimeouts>;
}

export interface Box {
  readonly url: string;
  readonly credentials: { readonly username: string; readonly password: string };
  /** Closing it twice is harmless. */
  close(): Promise<void>;
}

/**
 * Puts the parts of a peer together and opens it, in the thread that calls; whoever calls holds the lock of `dir`.
 *
 * @throws EmbeddedError
 */
export async function openBox(options: BoxOptions, clock: Clock, log: Logger): Promise<Box> {
  const password = await administratorPassword(options.dir, log);
  const shares = await openShares(options.dir);
  const database = new Database(options.dir);
  await syncDirectory(options.dir);
  const tally = new Tally(database);
  const library = new Library(database, tally);
  const queue = new Queue(database, tally);
  const indexer = new Indexer({
    database,
    queue,
    library,
    clock,
    log,
    commitEveryMs: options.commitEveryMs,
    isReceiving: () => server.isReceiving,
  });
  const tables = new TableStore({ database, clock, maxRow: options.maxBody });
  const refuse = new TableRefuse({ database, clock, log });
  const search = new Search(database, library, tally);
  const citations = new CitationSearch(database, library, clock);
  const administrator = new Administrator(password, clock);
  const server = new PeerServer({
    ...options,
    routes: routes({
      refuse,
      tables,
      log,
      database,
      queue,
      indexer,
      clock,
      library,
      search,
      citations,
      shares,
      tally,
      maxBody: options.maxBody,
    }),
    administrator,
    bodyBudget: options.maxBody,
    clock,
    log,
  });
  try {
    const { url } = await server.listen();
    const waiting = tally.of('waiting');
    if (waiting > 0) {
      log.info({ waiting }, `${waiting} documents were accepted before the start and are indexed now`);
      indexer.notify();
    }
    refuse.notify();
    const end = async (): Promise<void> => {
      await server.close();
      await indexer.stop();
      await refuse.stop();
      database.close();
    };
    let ended: Promise<void> | undefined;
    const close = (): Promise<void> => {
      ended ??= end();
      return ended;
    };
    return { url, credentials: { username: administrator.username, password }, close };
  } catch (error) {
    database.close();
    const { host, port } = options;
    if (systemCode(error) === 'EADDRINUSE') throw new EmbeddedError(failures.portInUse(host, port));
    if (['EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND'].includes(systemCode(error) ?? ''))
      throw new EmbeddedError(failures.portRefused(host, port, error));
    throw error;
  }
}

async function openShares(dir: string): Promise<ShareStore> {
  try {
    return await ShareStore.open(dir);
  } catch (error) {
    throw new EmbeddedError(failures.directoryUnwritable(dir, error));
  }
}
