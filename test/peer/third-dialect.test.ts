import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Outcome, OwnUplink, type RemovalOutcome } from '../../src/commands/own-uplink.js';
import { readTarget } from '../../src/commands/push.js';
import { checkConfig } from '../../src/config/load.js';
import { DIALECT_NAMES } from '../../src/config/schema.js';
import { silentLogger } from '../../src/lib/logger.js';
import { isSuccess, succeeded } from '../../src/peer/answer.js';
import type { PeerClient } from '../../src/peer/client.js';
import type { Dialect } from '../../src/peer/dialects/dialect.js';
import { DIALECTS, dialectNamed } from '../../src/peer/dialects/dialects.js';
import { standard } from '../../src/peer/dialects/standard.js';
import type { Body, Text } from '../../src/peer/form.js';
import { readPeerdoc } from '../../src/peer/peerdoc.js';
import { HttpPeer, type HttpRequest } from '../support/http-peer.js';
import { temporaryDirectory } from '../support/temp.js';
import { clientOf } from './support.js';

/** A dialect as somebody would add it: JSON over paths of its own, and removals by DELETE. */
const toy: Dialect = {
  name: 'toy',
  detectionPath: '/toy/about',
  recognises: ({ status, headers }) =>
    isSuccess(status) && headers['x-toy-peer'] !== undefined ? 'certain' : 'no',
  canBeEmbedded: false,

  content: {
    encoding: 'base64',
    takesBinary: false,
    readsTextAsHtml: false,
    convertHere: [],
    showsWords: false,
  },
  sentUrl: (url) => url,
  async pushRequest(items) {
    const documents = items.map(({ url, collection, data }) => ({
      url,
      collection,
      base64: base64Of(data),
    }));
    return { method: 'POST', path: '/toy/documents', body: jsonBody({ documents }) };
  },
  pushResults({ body }) {
    const { taken } = JSON.parse(body.toString()) as { taken: boolean[] };
    return taken.map((ok) => (ok ? { ok } : { ok, message: 'no' }));
  },
  peerdocRequest: async (query) => ({ method: 'GET', path: pathOf(query) }),
  peerdocOf: (answer, query) =>
    answer.status === 404 ? undefined : readPeerdoc(succeeded(answer), query),
  citationRequest: async (query) => ({
    method: 'GET',
    path: `/toy/citations?${new URLSearchParams(query)}`,
  }),
  citationOf: () => undefined,

  remover:
    ({ http }) =>
    async (urls, signal) => {
      for (const url of urls)
        succeeded(
          await http.ask({
            counted: 'other',
            method: 'DELETE',
            path: pathOf({ url }),
            isProtected: true,
            signal,
          }),
        );
      return urls.map(() => ({ ok: true }));
    },
  removesDocuments: true,
  isRemoved: (doc) => doc === undefined,
  maxRemovalsPerRequest: 1,
  restoresRemoved: false,

  holdMs: 0,
  indexingMs: () => 0,
  async commitIndex(http, signal) {
    const request = { method: 'POST', path: '/toy/flush' } as const;
    succeeded(await http.ask({ ...request, counted: 'other', isProtected: true, signal }));
  },

  search: standard.search,
  tables: standard.tables,
  shareRequest: async ({ data }) => ({ method: 'GET', path: `/toy/files/${data}` }),
  listShares: async () => undefined,
};

/** The line that registers it. */
const dialects = { ...DIALECTS, toy };

function pathOf(query: Record<string, string>): string {
  return `/toy/documents?${new URLSearchParams(query)}`;
}

function base64Of(data: Text): string {
  if ('encoded' in data) return Buffer.from(data.encoded).toString('latin1');
  if (data instanceof Uint8Array) return Buffer.from(data).toString('base64');
  throw new Error('the toy takes no long texts');
}

function jsonBody(value: unknown): Body {
  const bytes = Buffer.from(JSON.stringify(value));
  return {
    type: 'application/json',
    length: bytes.length,
    bytes,
    async *chunks() {
      yield bytes;
    },
  };
}

/** The number of look-ups that still show a document after its removal. */
const SHOWN_AFTER_REMOVAL = 2;

/** A peer that speaks the toy dialect, and so has an API of its own. */
class ToyPeer {
  readonly documents = new Map<string, { collection: string; text: Buffer; looks: number }>();
  /** The requests and the statuses of their answers. */
  readonly log: string[] = [];
  server!: HttpPeer;

  static async start(): Promise<ToyPeer> {
    const peer = new ToyPeer();
    peer.server = await HttpPeer.start((request, response) => {
      const [status, body] = peer.#answer(request);
      peer.log.push(`${request.method} ${request.url.split('?')[0]} ${status}`);
      response.writeHead(status, { 'x-toy-peer': '1' }).end(JSON.stringify(body));
    });
    return peer;
  }

  #answer({ method, url: target, body }: HttpRequest): readonly [number, unknown] {
    const { pathname, searchParams } = new URL(target, 'http://toy');
    const url = searchParams.get('url') ?? '';
    if (pathname === '/toy/about' || pathname === '/toy/flush') return [200, { toy: true }];
    if (pathname !== '/toy/documents') return [404, {}];
    if (method === 'POST') return [200, { taken: this.#take(body) }];
    const found = this.documents.get(url);
    if (found === undefined) return [404, {}];
    if (method === 'DELETE') {
      found.looks = SHOWN_AFTER_REMOVAL;
      return [200, { removed: true }];
    }
    found.looks -= 1;
    if (found.looks === 0) this.documents.delete(url);
    const { collection, text } = found;
    const digest = hash('sha256', text, 'hex');
    return [200, { url, collections: [collection], size: text.length, digest }];
  }

  #take(body: string): boolean[] {
    const { documents } = JSON.parse(body) as {
      documents: { url: string; collection: string; base64: string }[];
    };
    return documents.map(({ url, collection, base64 }) => {
      const text = Buffer.from(base64, 'base64');
      this.documents.set(url, { collection, text, looks: Number.POSITIVE_INFINITY });
      return true;
    });
  }
}

/** Starts a peer that speaks the toy dialect, and a client that has to find that out. */
async function start(): Promise<{ peer: ToyPeer; client: PeerClient }> {
  const peer = await ToyPeer.start();
  return { peer, client: clientOf(peer.server.url, { dialect: 'auto', dialects }) };
}

describe('a dialect that is one object and one line', () => {
  it('is detected by its own sign, and the others are not taken for it', async () => {
    const { client, peer } = await start();
    expect(await client.detect()).toBe('toy');
    expect(peer.log).toEqual([
      'GET /api/yacydoc.xml 404',
      'GET /api/peerdoc.html 404',
      'GET /toy/about 200',
    ]);
    expect(client.isEmbedded).toBe(false);
    const other = await HttpPeer.start(({ url }, response) => {
      const isPage = url === '/api/peerdoc.html';
      response.writeHead(isPage ? 200 : 404).end('{"url":"","urlhash":""}');
    });
    const stranger = clientOf(other.url, { dialect: 'auto', dialects });
    expect(await stranger.detect()).toBe('standard');
  });

  it('carries a file into the index, confirms it and removes it with the uplink', async () => {
    const { client, peer } = await start();
    const file = join(temporaryDirectory(), 'a.txt');
    writeFileSync(file, 'Gulls sleep on one leg.');
    const url = 'https://toy.example/a.txt';
    const target = await readTarget({ file, url }, toy.content);
    const config = await checkConfig(
      { folders: [{ path: '/srv/a', collection: 'c' }] },
      '/srv/config.json',
    );
    const { signal } = new AbortController();
    const options = { config, timeoutMs: 20_000, log: silentLogger, signal };
    const uplink = await OwnUplink.open(client, toy, options);
    let pushed: Outcome | undefined;
    await uplink.push([target], { collection: 'birds' }, (_, outcome) => {
      pushed = outcome;
    });
    expect(pushed).toMatchObject({ status: 'confirmed', evidence: { kind: 'digest' } });
    expect(peer.documents.get(url)).toMatchObject({
      collection: 'birds',
      text: Buffer.from('Gulls sleep on one leg.'),
    });
    peer.log.length = 0;
    let removed: RemovalOutcome | undefined;
    await uplink.remove([url], (_, outcome) => {
      removed = outcome;
    });
    await uplink.close();
    expect(removed).toEqual({ status: 'removed' });
    expect(peer.log.slice(0, 4)).toEqual([
      'DELETE /toy/documents 200',
      'GET /toy/documents 200',
      'GET /toy/documents 200',
      'GET /toy/documents 404',
    ]);
  });

  it('decides how the index is committed', async () => {
    const { client, peer } = await start();
    await client.commitIndex();
    expect(peer.log.at(-1)).toBe('POST /toy/flush 200');
  });

  it('can be named in the options of a client, and no other name can', async () => {
    expect(clientOf('http://toy', { dialect: 'toy', dialects }).dialect).toBe('toy');
    expect(() => clientOf('http://toy', { dialect: 'toy' })).toThrow(/no dialect has the name toy/);
    expect(() => dialectNamed('constructor')).toThrow(TypeError);
  });
});

it('the configuration takes every registered dialect by its name, and no other', () => {
  const registered = Object.entries(DIALECTS).map(([key, { name }]) => [key, name]);
  expect(registered).toEqual(Object.keys(DIALECTS).map((key) => [key, key]));
  expect([...DIALECT_NAMES].toSorted()).toEqual(['auto', ...Object.keys(DIALECTS)].toSorted());
});
