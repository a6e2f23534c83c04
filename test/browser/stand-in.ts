import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { systemClock } from '../../src/lib/clock.js';
import type { ItemLine } from '../../src/page/api.js';
import { readAssets } from '../../src/page/app.js';
import type { Sample } from '../../src/report/statistics.js';
import type { RecentEvent, StatusReport } from '../../src/report/status.js';
import type { WhyReport } from '../../src/report/why.js';
import { afterwards } from '../support/afterwards.js';

/** What a stand-in says. */
export interface Script {
  readonly status: StatusReport;
  readonly samples?: readonly Sample[];
  readonly recents?: readonly RecentEvent[];
  /** The items of a status; they are made when they are asked for. */
  item?(index: number, status: string): ItemLine;
  readonly why?: WhyReport;
}

const BUILT = resolve(import.meta.dirname, '../../dist/page/browser');
const POLICY =
  "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** A server in the place of the daemon's, for what is hard to bring about with a real one. It keeps what was posted. */
export class StandIn {
  /** The names that files were asked for by. */
  readonly items: (string | null)[] = [];
  /** How long a list of files takes, in ms, and how many were asked for at the same time at most. */
  listMs = 0;
  mostLists = 0;
  #lists = 0;
  /** Whether lists of files are answered with an error. */
  isBroken = false;
  readonly posted: { readonly path: string; readonly body: unknown }[] = [];
  readonly #followers = new Set<ServerResponse>();
  readonly #script: Script;
  readonly url: string;

  private constructor(script: Script, url: string) {
    this.#script = script;
    this.url = url;
  }

  static async start(script: Script): Promise<StandIn> {
    const assets = await readAssets(BUILT);
    const server = createServer((request, response) => {
      response.setHeader('content-security-policy', POLICY);
      const { pathname } = new URL(request.url ?? '/', 'http://stand-in');
      const name = pathname === '/' ? 'index.html' : pathname.replace('/assets/', '');
      const asset = assets.get(name);
      if (asset === undefined) return void standIn.#answer(request, response);
      response.setHeader('content-type', asset.type);
      response.end(asset.body);
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const standIn = new StandIn(script, `http://127.0.0.1:${port}/`);
    afterwards('test', async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    });
    return standIn;
  }

  /** Sends an event to all who follow. */
  send(kind: 'status' | 'samples' | 'recents', data: unknown): void {
    for (const response of this.#followers) sendEvent(response, kind, data);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://stand-in');
    if (request.method === 'POST') {
      let body = '';
      for await (const chunk of request) body += chunk;
      this.posted.push({ path: pathname, body: JSON.parse(body) });
      return sendJson(response, { retried: 1, lookedAt: 0, mirrors: [], scans: [] });
    }
    if (pathname === '/sign-in') return void response.writeHead(303, { location: '/' }).end();
    if (pathname === '/api/live') return this.#follow(response);
    if (pathname === '/api/status') return sendJson(response, this.#script.status);
    if (pathname === '/api/items' && !this.isBroken) {
      this.#lists += 1;
      this.mostLists = Math.max(this.mostLists, this.#lists);
      await systemClock.sleep(this.listMs);
      this.#lists -= 1;
      return sendJson(response, this.#items(searchParams));
    }
    if (pathname === '/api/why' && this.#script.why) return sendJson(response, this.#script.why);
    response.statusCode = 404;
    sendJson(response, { error: { code: 'X', message: 'There is no such thing.', hint: 'Go back.' } });
  }

  #follow(response: ServerResponse): void {
    response.setHeader('content-type', 'text/event-stream');
    this.#followers.add(response);
    response.on('close', () => this.#followers.delete(response));
    const { status, samples, recents } = this.#script;
    sendEvent(response, 'status', status);
    if (samples) sendEvent(response, 'samples', samples);
    if (recents) sendEvent(response, 'recents', recents);
  }

  #items(asked: URLSearchParams): unknown {
    const { status, item } = this.#script;
    this.items.push(asked.get('name'));
    const of = asked.get('status') ?? '';
    const total = Object.entries(status.items).find(([status]) => status === of)?.[1] ?? 0;
    const first = Number(asked.get('after') ?? 0);
    const end = Math.min(total, first + Number(asked.get('limit')));
    const items = item ? Array.from({ length: end - first }, (_, i) => item(first + i, of)) : [];
    return end < total ? { items, next: String(end) } : { items };
  }
}

function sendEvent(response: ServerResponse, kind: string, data: unknown): void {
  response.write(`event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`);
}

function sendJson(response: ServerResponse, data: unknown): void {
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.end(JSON.stringify(data));
}
