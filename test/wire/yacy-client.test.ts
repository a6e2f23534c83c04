import { describe, expect, it } from 'vitest';
import { PeerClient } from '../../src/peer/client.js';
import type { PeerClientOptions } from '../../src/peer/client-options.js';
import { afterwards } from '../support/afterwards.js';
import { until } from '../support/wait.js';
import { pdfOf } from './yacy/pdf-files.js';
import { timing } from './yacy/timing.js';
import { YacyModel, type YacyOptions } from './yacy/yacy-model.js';

/**
 * What the client does that no recording shows: bytes that arrive, nonces, connections, moments.
 */

interface Options extends YacyOptions {
  readonly client?: Partial<PeerClientOptions>;
}

/** The client as a library, at a YaCy peer whose time stands still until the test moves it. */
async function atYacy(options: Options = {}) {
  let time = 0;
  const peer = await YacyModel.start({ now: () => time, ...options });
  const client = new PeerClient({ baseUrl: peer.url, ...options.client });
  afterwards('test', () => client.close());
  const move = (ms: number) => {
    time += ms;
  };
  return { peer, client, move };
}

const PASSWORD = { username: 'admin', password: 'sécret' };
const TYPE = 'text/plain; charset=UTF-8';
const at = (name: string) => `http://notes.example.org/${name}`;
const item = (name: string, text: string) => ({
  url: at(name),
  collection: 'notes',
  contentType: TYPE,
  data: Buffer.from(text),
});

describe('a push', () => {
  it('arrives byte for byte: plain text, text that looks like base64, PDF, nothing, several at once', async () => {
    const { client, peer } = await atYacy();
    const texts = { a: 'Plain ASCII text.', b: 'QUJD', c: 'Größe', d: pdfOf('Willow'), e: '' };
    const items = Object.entries(texts).map(([name, text]) => item(name, text));
    expect((await client.push(items)).results).toEqual(items.map(() => ({ ok: true })));
    for (const [name, text] of Object.entries(texts))
      expect(peer.kept(at(name))?.size).toBe(Buffer.byteLength(text));
    expect(peer.kept(at('a'))?.text).toBe('Plain ASCII text.');
    expect(peer.kept(at('b'))?.text).toBe('QUJD');
  });

  it('of one document that is streamed in pieces of any size arrives byte for byte, and its date to the second', async () => {
    const { client, peer, move } = await atYacy();
    const pieces = ['a', 'bc', 'defg', 'hijkl', 'mnopqrstu', 'v'].map((text) => text.repeat(1_000));
    const text = pieces.join('');
    const data = {
      size: text.length,
      async *chunks() {
        yield* pieces.map((piece) => Buffer.from(piece));
      },
    };
    const lastModified = Date.UTC(2023, 10, 14, 22, 13, 20, 789);
    await client.push([{ ...item('a', ''), data, lastModified }]);
    expect(peer.kept(at('a'))?.text).toBe(text);
    move(60);
    const shown = { lastModified: lastModified - 789, size: text.length, collections: ['notes'] };
    expect(await client.peerdoc({ url: at('a') })).toMatchObject(shown);
  });

  it('of more than 200,000 bytes, and of more than 1,000 parameters, is taken', async () => {
    const { client, peer } = await atYacy();
    await client.push([item('large', 'word '.repeat(100_000))]);
    expect(peer.kept(at('large'))?.words).toBe(100_000);
    const many = Array.from({ length: 300 }, (_, n) => item(`many/${n}`, `number ${n}`));
    await client.push(many);
    expect(many.filter(({ url }) => peer.kept(url)?.words === 2)).toHaveLength(300);
  });
});

it('a look-up of citations commits nothing, which would show a document early', async () => {
  const { client, peer, move } = await atYacy();
  await client.push([item('a', 'a')]);
  move(2_000);
  expect(await client.citation({ url: at('a') })).toBeUndefined();
  expect(peer.shown(at('a'))).toBeUndefined();
  await client.commitIndex();
  expect(peer.shown(at('a'))).toBeDefined();
  move(20_000);
  expect(await client.citation({ url: at('a') })).toMatchObject({ citing: [] });
});

it('shared files are listed through their directories, and read under any name', async () => {
  const { client, peer } = await atYacy();
  const names = ['dump/yacy_dump_a_ts.xml.gz', 'a b&c<d>.txt', 'größe/50 % #1.txt'];
  for (const name of names) peer.share.put(name, name, Date.UTC(2024, 0, 1));
  expect((await client.shares())?.toSorted()).toEqual(names.toSorted());
  for (const data of names) {
    const read = async ({ chunks }: { readonly chunks: AsyncIterable<Uint8Array> }) => {
      let text = '';
      for await (const chunk of chunks) text += Buffer.from(chunk).toString();
      return text;
    };
    expect(await client.share({ data }, read)).toBe(data);
  }
});

it('Digest uses each count of a nonce once, also in many requests at once, and not the 1,024th', async () => {
  const { client, peer } = await atYacy({
    password: PASSWORD.password,
    client: { credentials: PASSWORD },
  });
  for (let round = 0; round < 70; round += 1) {
    await Promise.all(
      Array.from({ length: 16 }, (_, n) => client.push([item(`${round}/${n}`, 'a')])),
    );
  }
  const bodies = peer.served.filter(({ size }) => size > 0);
  expect(bodies.filter(({ status }) => status !== 200)).toEqual([]);
  expect(bodies).toHaveLength(1_120);
});

it('a connection that the peer closed because it was idle costs nothing', async () => {
  const { client, peer } = await atYacy({ timing: timing(1, { idle: 300 }) });
  for (let n = 0; n < 3; n += 1) {
    await client.push([item(`${n}`, `note ${n}`)]);
    await until(async () => (await peer.connections()) === 0, 'the peer closed the connection');
  }
  expect(peer.served.filter(({ target }) => target.startsWith('/api/push_p'))).toHaveLength(3);
});
