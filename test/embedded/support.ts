import { existsSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import type { startEmbeddedPeer } from '../../src/embedded/embedded-peer.js';
import { openPeerInstance, type PeerInstance, type PeerOptions } from '../../src/embedded/peer-instance.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';

/** A peer in this thread, closed after the test. */
export async function openPeer(
  options: Partial<PeerOptions> = {},
  log = silentLogger,
): Promise<PeerInstance> {
  const peer = await openPeerInstance(
    {
      dir: temporaryDirectory(),
      port: 0,
      commitEveryMs: 20,
      maxBody: 67_108_864,
      requireAuthEverywhere: false,
      ...options,
    },
    systemClock,
    log,
  );
  afterwards('test', () => peer.close());
  return peer;
}

/** The built module, for what needs a thread or a process of its own. */
export const builtPeer = new URL('../../.build/embedded/embedded-peer.js', import.meta.url).href;

export async function builtStart(): Promise<typeof startEmbeddedPeer> {
  if (!existsSync(new URL(builtPeer))) throw new Error('the build is missing: npm run build');
  return ((await import(/* @vite-ignore */ builtPeer)) as { startEmbeddedPeer: typeof startEmbeddedPeer })
    .startEmbeddedPeer;
}

type Peer = Pick<PeerInstance, 'url' | 'credentials'>;

export function basic({ credentials }: Pick<PeerInstance, 'credentials'>): string {
  return `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
}

export interface Item {
  readonly url?: string;
  readonly data?: string;
  readonly collection?: string;
}

export function pushForm(items: readonly Item[], extra: Record<string, string> = {}): URLSearchParams {
  const form = new URLSearchParams({ count: String(items.length), ...extra });
  for (const [n, item] of items.entries())
    for (const [name, value] of Object.entries(item)) form.set(`${name}-${n}`, value);
  return form;
}

export interface PushJson {
  readonly count: string;
  readonly successall: string;
  readonly countsuccess: number;
  readonly countfail: number;
  readonly [item: `item-${number}`]: { item: string; url: string; success: string; message: string };
}

/** Pushes as the administrator and reads the JSON answer. */
export async function push(
  peer: Peer,
  items: readonly Item[],
  extra: Record<string, string> = {},
): Promise<PushJson> {
  const response = await fetch(`${peer.url}/api/push_p.json`, {
    method: 'POST',
    headers: { authorization: basic(peer) },
    body: pushForm(items, extra),
  });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as PushJson;
}

export interface PeerdocJson {
  readonly url: string;
  readonly urlhash: string;
  readonly title: string;
  readonly collections: string[];
  readonly size: number;
  readonly words: number;
  readonly digest: string;
  readonly lastModified: string;
  readonly loadDate: string;
}

export async function peerdoc(
  peer: Pick<PeerInstance, 'url'>,
  url: string,
): Promise<PeerdocJson | undefined> {
  const response = await fetch(`${peer.url}/api/peerdoc.json`, {
    method: 'POST',
    body: new URLSearchParams({ url }),
  });
  const body: unknown = await response.json();
  if (response.status === 404) return undefined;
  if (response.status !== 200) throw new Error(`${response.status}: ${JSON.stringify(body)}`);
  return body as PeerdocJson;
}

export interface SearchJson {
  readonly query: string;
  readonly total: number;
  readonly totalIsExact: boolean;
  readonly items: readonly {
    url: string;
    title: string;
    snippet: string;
    collections: string[];
    size: number;
    loadDate: string;
  }[];
}

export async function search(
  peer: Pick<PeerInstance, 'url'>,
  parameters: Record<string, string>,
): Promise<SearchJson> {
  const response = await fetch(`${peer.url}/search.json?${new URLSearchParams(parameters)}`);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as SearchJson;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A request with every header as given, which fetch does not allow. */
export function send(
  peer: Pick<PeerInstance, 'url'>,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string | Buffer } = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options;
    const sent = request(
      new URL(peer.url),
      { path, method, headers: { connection: 'close', ...headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        );
        response.on('error', reject);
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Writes `text` to the peer's port and gives what came until the peer closed. */
export function rawRequest(peer: Pick<PeerInstance, 'url'>, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(peer.url);
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let came = '';
    socket.on('data', (chunk) => {
      came += chunk.toString();
    });
    socket.on('close', () => resolve(came));
    socket.on('error', reject);
  });
}
