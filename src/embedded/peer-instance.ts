import { syncDirectory } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { administratorPassword, passwordFileOf, USERNAME } from './access.js';
import { backupControl, Checkpoints } from './checkpoints.js';
import { Citations } from './citations.js';
import { type DaemonFacts, PeerDaemon } from './daemon-link.js';
import { Database } from './database.js';
import { peerdoc, push, remove } from './document-endpoints.js';
import { DocumentPages } from './document-page.js';
import { DocumentStore } from './documents.js';
import { type DriverName, driverNamed, fastestDriver } from './driver.js';
import { directoryUnwritable, EmbeddedError } from './errors.js';
import { finishRestore } from './finish-restore.js';
import { FormReader } from './form.js';
import { Indexer } from './indexer.js';
import { Site } from './markup.js';
import { Migration } from './migration.js';
import { Originals } from './originals.js';
import { searchJson, searchPage } from './search.js';
import { type Handler, openServer, type ServerOptions } from './server.js';
import { ShareStore } from './share-store.js';
import { share } from './shares.js';
import { TableStore } from './table-store.js';
import { clearDropped, tablePages } from './tables.js';

export interface PeerOptions extends ServerOptions {
  /** The directory with all data; created if it is missing. */
  readonly dir: string;
  /** Largest request body, in bytes. @default 67108864 (64 MiB) */
  readonly maxBody?: number;
  /** The build of SQLite. @default the fastest one of this process */
  readonly driver?: DriverName | undefined;
}

export interface PeerInstance {
  /** The base URL on this machine, without a slash at the end. */
  readonly url: string;
  /**
   * A socket for this process, which other users cannot reach; undefined if none could be created.
   */
  readonly socketPath: string | undefined;
  readonly credentials: { readonly username: string; readonly password: string };
  /** Its database when it was opened. */
  readonly database: {
    /** The number that tells it from others, and from itself before a restore. */
    readonly identity: number;
    readonly documents: number;
  };
  /** Makes the pages link to the daemon's status page; to none if undefined. */
  linkTo(statusUrl: string | undefined): void;
  /** Makes the pages show what the daemon knows. */
  connect(facts: DaemonFacts): void;
  /** Finishes the answers under way and closes the database. A second call does nothing. */
  close(): Promise<void>;
}

/**
 * Composes a peer and opens it in the calling thread. The caller holds the lock of `dir`.
 *
 * @throws EmbeddedError
 */
export async function openPeerInstance(
  options: PeerOptions,
  clock: Clock,
  log: Logger,
): Promise<PeerInstance> {
  const { dir, port, maxBody = 67_108_864 } = options;
  await finishRestore(dir).catch((error: unknown) => {
    throw directoryUnwritable(dir, error);
  });
  const password = await administratorPassword(dir, log);
  const shares = await ShareStore.open(dir).catch((error: unknown) => {
    throw directoryUnwritable(dir, error);
  });
  const driver =
    options.driver === undefined ? await fastestDriver() : await driverNamed(options.driver);
  const database = new Database(dir, driver);
  log.debug({ driver: driver.name }, `The database is opened with ${driver.name}`);
  await syncDirectory(dir);
  const site = await Site.open();
  const forms = new FormReader();
  const documents = new DocumentStore(database, clock);
  const indexer = new Indexer({ database, documents, clock, log });
  const citations = new Citations(database, documents, clock);
  const pages = new DocumentPages(documents, database, clock);
  const checkpoints = new Checkpoints(database, clock, log);
  const tables = new TableStore(database, clock, maxBody);
  const daemon = new PeerDaemon(clock, log);
  const originals = new Originals(daemon, clock);
  const administrator = { password, passwordFile: passwordFileOf(dir) };
  const deps = {
    database,
    documents,
    indexer,
    tables,
    daemon,
    site,
    administrator,
    forms,
    clock,
    log,
    maxBody,
  };
  const handlers: Record<string, Handler> = {
    '/': searchPage,
    '/search.json': searchJson,
    '/document': (context) => pages.answer(context),
    '/document.json': (context) => pages.answer(context),
    '/original': (context) => originals.answer(context),
  };
  const endpoints: Readonly<Record<string, Handler>> = {
    '/api/push_p': push,
    '/api/remove_p': remove,
    '/api/peerdoc': peerdoc,
    '/api/citation': (context) => citations.answer(context),
    '/api/share': (context) => share(context, shares),
    '/api/table_p': (context) => tablePages(context, 'api'),
    '/Tables_p': (context) => tablePages(context, 'editor'),
    '/api/backup_p': (context) => backupControl(context, checkpoints),
  };
  for (const [path, handle] of Object.entries(endpoints))
    for (const form of ['html', 'json']) handlers[`${path}.${form}`] = handle;
  try {
    const server = await openServer(handlers, options, deps);
    clearDropped(tables, log);
    void new Migration({ database, documents, clock, log }).run();
    const close = async (): Promise<void> => {
      await server.close();
      indexer.stop();
      checkpoints.close();
      database.close();
    };
    const linkTo = (statusUrl: string | undefined): void => {
      site.statusUrl = statusUrl;
    };
    const connect = (facts: DaemonFacts): void => {
      daemon.facts = facts;
    };
    const { url, socketPath } = server;
    const credentials = { username: USERNAME, password };
    const opened = { identity: database.identity, documents: documents.count('documents') };
    return { url, socketPath, credentials, database: opened, linkTo, connect, close };
  } catch (error) {
    database.close();
    if (systemCode(error) === 'EADDRINUSE')
      throw new EmbeddedError('EMBEDDED_PORT_IN_USE', { port }, { cause: error });
    if (['EACCES', 'EADDRNOTAVAIL'].includes(systemCode(error) ?? ''))
      throw new EmbeddedError(
        'EMBEDDED_PORT_REFUSED',
        { port, why: messageOf(error) },
        { cause: error, details: { port } },
      );
    throw error;
  }
}
