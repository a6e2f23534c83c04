import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type NormalUrl, pathText } from '../../src/embedded/content.js';
import { Database, int, MIGRATED_FORMAT, text } from '../../src/embedded/database.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import {
  type Driver,
  type DriverName,
  driverNamed,
  fastestDriver,
} from '../../src/embedded/driver.js';
import type { startEmbeddedPeer } from '../../src/embedded/embedded-peer.js';
import {
  openPeerInstance,
  type PeerInstance,
  type PeerOptions,
} from '../../src/embedded/peer-instance.js';
import { indexable, PREFIX_MARK, prefixes } from '../../src/embedded/words.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards, type Life } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';

/** The driver that the project of this run names (`test/vitest.config.ts`), or the fastest one. */
export const driver: Driver =
  process.env.TEST_DRIVER === undefined
    ? await fastestDriver()
    : await driverNamed(process.env.TEST_DRIVER as DriverName);

/** The database of a peer that is not running. */
export function openDatabase(dir: string): Database {
  return new Database(dir, driver);
}

/** Makes a database one of the format before, whose index has no symbol words. */
export function toMigratedFormat(dir: string): void {
  const database = openDatabase(dir);
  const documents = new DocumentStore(database);
  database.transaction(() => {
    for (const row of database.rows('SELECT id, title, url FROM documents')) {
      const id = int(row, 'id');
      let body = '';
      for (let part = 0, next = documents.textPart(id, 0); next !== undefined; ) {
        body += next;
        part += 1;
        next = documents.textPart(id, part);
      }
      const heads = [text(row, 'title'), pathText(text(row, 'url') as NormalUrl)]
        .map((head) => indexable(head))
        .map((head) => Buffer.concat([head, prefixes(head, PREFIX_MARK)]).toString());
      const sql = 'REPLACE INTO words (rowid, title, name, body) VALUES (?, ?, ?, ?)';
      database.run(sql, id, ...heads, indexable(body).toString());
    }
    database.run(`PRAGMA user_version = ${MIGRATED_FORMAT}`);
  });
  database.close();
}

/** A peer in this thread, closed at the end of a life. */
export async function openPeer(
  options: Partial<PeerOptions> = {},
  life: Life = 'test',
): Promise<PeerInstance> {
  const given = { dir: temporaryDirectory(life), port: 0, driver: driver.name, ...options };
  const peer = await openPeerInstance(given, systemClock, silentLogger);
  afterwards(life, () => peer.close());
  return peer;
}

/** A peer that shows these documents: data by URL. */
export async function peerWith(documents: Readonly<Record<string, string>>): Promise<PeerInstance> {
  const peer = await openPeer();
  await push(peer, documents);
  return peer;
}

/** The built module, for what needs a thread or a process of its own. */
export const builtPeer = new URL('../../.build/embedded/embedded-peer.js', import.meta.url).href;

const RUNNER = `
  const { startEmbeddedPeer } = await import(process.argv[1]);
  const silent = () => {};
  const log = { debug: silent, info: silent, warn: silent, error: (f, m) => console.error(m) };
  const peer = await startEmbeddedPeer({ dir: process.argv[2], port: 0, log, driver: process.argv[3] });
  console.log(JSON.stringify({ url: peer.url, credentials: peer.credentials }));
`;

/** A peer in a process of its own. */
export async function spawnPeer(dir: string, { name } = driver) {
  const args = ['--input-type=module', '-e', RUNNER, builtPeer, dir, name];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  afterwards('test', () => void child.kill('SIGKILL'));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    void ended.then(() => reject(new Error('the peer ended before it was ready')));
  });
  const ready = JSON.parse(line) as Peer;
  const kill = (): Promise<void> => {
    child.kill('SIGKILL');
    return ended;
  };
  return { ...ready, kill };
}

export async function builtStart(): Promise<typeof startEmbeddedPeer> {
  if (!existsSync(new URL(builtPeer))) throw new Error('the build is missing: npm run build');
  return (
    (await import(/* @vite-ignore */ builtPeer)) as { startEmbeddedPeer: typeof startEmbeddedPeer }
  ).startEmbeddedPeer;
}

export type Peer = Pick<PeerInstance, 'url' | 'credentials'>;
type Place = Pick<Peer, 'url'>;
export type Parameters = Readonly<Record<string, string>>;
type Headers = Readonly<Record<string, string>>;

export const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

export function basic({ credentials }: Pick<Peer, 'credentials'>): string {
  return `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly body: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it is said where it is read.
  json(): any;
}

interface SendOptions {
  readonly method?: string;
  readonly headers?: Headers;
  readonly body?: string | Buffer;
}

/** A request with every header as given, which fetch does not allow. */
export function send(peer: Place, path: string, options: SendOptions = {}): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options;
    const all = { connection: 'close', ...headers };
    const sent = request(
      new URL(peer.url),
      { path, method, headers: all, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const [bytes, status] = [Buffer.concat(chunks), response.statusCode ?? 0];
          const text = bytes.toString();
          resolve({
            status,
            headers: response.headers,
            bytes,
            body: text,
            json: () => JSON.parse(text),
          });
        });
      },
    );
    sent.on('error', reject).end(body);
  });
}

/** Posts a form as the administrator. */
export function ask(
  peer: Peer,
  path: string,
  parameters: Parameters | URLSearchParams = {},
  headers: Headers = {},
): Promise<RawAnswer> {
  const body = new URLSearchParams(parameters).toString();
  const all = { ...FORM, authorization: basic(peer), ...headers };
  return send(peer, path, { method: 'POST', headers: all, body });
}

/** Returns the parsed answer to `ask`, or the status of an error. */
export async function answered(
  peer: Peer,
  path: string,
  parameters: Parameters = {},
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it is said where it is read.
): Promise<any> {
  const answer = await ask(peer, path, parameters);
  return answer.status === 200 ? answer.json() : answer.status;
}

/** The fields of items, each data by its URL. */
export function pushForm(
  documents: Readonly<Record<string, string>>,
  collection?: string,
): Parameters {
  const fields = Object.entries(documents).flatMap(([url, data], n) => [
    [`url-${n}`, url],
    [`data-${n}`, data],
    ...(collection === undefined ? [] : [[`collection-${n}`, collection]]),
  ]);
  return Object.fromEntries(fields) as Parameters;
}

export interface PushJson {
  readonly count: string;
  readonly successall: string;
  readonly countsuccess: number;
  readonly countfail: number;
  readonly [item: `item-${number}`]: {
    item: string;
    url: string;
    success: string;
    message: string;
  };
}

/** Pushes data by its URL as the administrator, and reads the JSON answer. */
export async function push(
  peer: Peer,
  documents: Readonly<Record<string, string>>,
  { collection, ...extra }: Parameters = {},
): Promise<PushJson> {
  const answer = await ask(peer, '/api/push_p.json', {
    ...pushForm(documents, collection),
    ...extra,
  });
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.body}`);
  return answer.json() as PushJson;
}

export interface PeerdocJson {
  readonly url: string;
  readonly urlhash: string;
  readonly collections: string[];
  readonly size: number;
  readonly digest: string;
  readonly lastModified: string;
  readonly loadDate: string;
}

/** Returns the peer's record of a document; undefined if it has none. */
export async function peerdoc(peer: Place, url: string): Promise<PeerdocJson | undefined> {
  const answer = await send(peer, `/api/peerdoc.json?${new URLSearchParams({ url })}`);
  if (answer.status !== 200 && answer.status !== 404)
    throw new Error(`${answer.status}: ${answer.body}`);
  return answer.status === 200 ? (answer.json() as PeerdocJson) : undefined;
}

export interface SearchJson {
  readonly total: number;
  readonly corrected?: string;
  readonly without?: readonly string[];
  readonly prefix?: string;
  readonly misread?: readonly string[];
  readonly keywords?: readonly string[];
  readonly otherForms?: number;
  readonly signsIgnored?: true;
  readonly items: readonly { url: string; title: string; snippet: string; collections: string[] }[];
}

export async function search(peer: Place, parameters: Parameters): Promise<SearchJson> {
  const answer = await send(peer, `/search.json?${new URLSearchParams(parameters)}`);
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.body}`);
  return answer.json() as SearchJson;
}

/** A connection that sent `text`, and goes on being open on this side whatever the peer does. */
export class Connection {
  answer = '';
  /**
   * Whether nothing can be sent any more: a peer that only ends its own side still holds the
   * connection.
   */
  isCut = false;
  readonly socket: Socket;
  readonly closed: Promise<string>;

  constructor(peer: Place, text: string) {
    this.socket = connect({
      port: Number(new URL(peer.url).port),
      host: '127.0.0.1',
      allowHalfOpen: true,
    });
    this.socket.setEncoding('utf8').on('data', (chunk: string) => {
      this.answer += chunk;
    });
    this.socket.on('error', () => {
      this.isCut = true;
    });
    this.closed = new Promise((resolve) => {
      for (const event of ['end', 'close']) this.socket.on(event, () => resolve(this.answer));
    });
    this.socket.write(text);
    afterwards('test', () => void this.socket.destroy());
  }
}

/** Writes `text` to the peer's port and gives what came until the peer closed. */
export function rawRequest(peer: Place, text: string): Promise<string> {
  return new Connection(peer, text).closed;
}

export const TABLES = '/api/table_p.json';

export interface TableJson {
  readonly table: string;
  readonly columns: string[];
  readonly deleted?: string[];
  readonly rows: { readonly pk: string; readonly cells: Record<string, string> }[];
}

/** Questions about one table of a peer. */
export class AskedTable {
  constructor(
    readonly peer: Peer,
    readonly name = 't',
  ) {}

  /** The table as it is answered; the status where it is an error. */
  ask(parameters: Parameters = {}): Promise<TableJson> {
    return answered(this.peer, TABLES, { table: this.name, ...parameters });
  }

  commit(pk: string, cells: Parameters): Promise<TableJson> {
    const columns = Object.entries(cells).map(([column, value]) => [`col_${column}`, value]);
    return this.ask({ pk, commitrow: '1', ...Object.fromEntries(columns) });
  }

  /** Makes a row without a key. @returns the key that it was given */
  async add(cells: Parameters = {}): Promise<string | undefined> {
    return (await this.ask({ commitrow: '1', ...cells })).rows[0]?.pk;
  }

  delete(...keys: string[]): Promise<TableJson> {
    return this.ask({
      deleterows: '1',
      ...Object.fromEntries(keys.map((key, n) => [`item_${n}`, `pk_${key}`])),
    });
  }

  async keys(parameters: Parameters = {}): Promise<string[]> {
    return (await this.ask(parameters)).rows.map(({ pk }) => pk);
  }

  async refusal(parameters: Parameters): Promise<[status: number, message: string]> {
    const answer = await ask(this.peer, TABLES, { table: this.name, ...parameters });
    return [answer.status, answer.json().message];
  }

  async names(): Promise<string[]> {
    return (await answered(this.peer, '/Tables_p.json')).tables;
  }
}

/** Returns the last parts of the URLs of the results, in alphabetical order. */
export async function names(peer: Peer, parameters: Parameters): Promise<string> {
  const { items } = await search(peer, parameters);
  return items
    .map(({ url }) => url.replace(/.*\//, ''))
    .sort()
    .join(' ');
}

/** Returns different words of five letters and more, which resemble no word of a test. */
export function distinctWords(count: number): readonly string[] {
  const letters = [...'bcdfghjkpw'];
  return Array.from({ length: count }, (_, n) =>
    [...String(10_000 + n)].map((digit) => letters[Number(digit)]).join(''),
  );
}
