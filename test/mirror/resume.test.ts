import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PeerClient } from '../../src/peer/client.js';
import { openPeer } from '../embedded/support.js';
import { clientOf, HttpServer } from '../peer/servers.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';
import { Engine } from './engine.js';

const MIB = 2 ** 20;

describe('an object that the embedded peer shares', () => {
  it('is not sent again while it is the same; one of the same size and second is', async () => {
    const dir = temporaryDirectory();
    const box = await openPeer({ dir });
    const client = new PeerClient({ baseUrl: box.url, credentials: box.credentials });
    afterwards('test', () => client.close());
    const put = (content: string) => {
      mkdirSync(join(dir, 'shares'), { recursive: true });
      writeFileSync(join(dir, 'shares/words.txt'), content);
    };
    put('one');
    const engine = new Engine(client);
    await engine.open({ shares: [{ data: 'words.txt' }] });
    await engine.once('words.txt');
    expect(engine.mirrors.status()[0]?.version).toMatchObject({ etag: expect.stringMatching(/^"/) });
    expect(await engine.once('words.txt')).toMatchObject({ changed: false, bytes: 3 });
    put('two');
    expect(await engine.once('words.txt')).toMatchObject({ changed: true });
    expect(engine.read('shares/words.txt')).toBe('two');
  });
});

/** A peer with one object of 2 MiB, of which the first answer breaks off after 1.5 MiB; `part` answers what is missing. */
async function breaking(
  validators: Readonly<Record<string, string>>,
  part: (from: number, content: Buffer) => { status: number; headers: Record<string, string>; body: Buffer },
) {
  const content = randomBytes(2 * MIB);
  const asked: unknown[] = [];
  let answers = 0;
  const server = await HttpServer.start(({ headers }, response) => {
    answers += 1;
    asked.push(headers['if-range'] ?? headers['if-unmodified-since'] ?? headers.range);
    if (answers === 1) {
      response.writeHead(200, { ...validators, 'content-length': content.length });
      response.write(content.subarray(0, 1.5 * MIB), () => response.socket?.destroy());
      return;
    }
    const [, from] = /^bytes=(\d+)-$/.exec(headers.range ?? '') ?? [];
    if (from === undefined) {
      response.writeHead(200, validators).end(content);
      return;
    }
    const { status, headers: more, body } = part(Number(from), content);
    response.writeHead(status, more).end(body);
  });
  const engine = new Engine(clientOf(server.url, { dialect: 'standard' }));
  await engine.open({ shares: [{ data: 'x' }] });
  await engine.once('x');
  const isWhole = () => readFileSync(join(engine.root, 'shares/x')).equals(content);
  return { engine, asked, content, isWhole };
}

const range = (from: number, size: number) => ({ 'content-range': `bytes ${from}-${size - 1}/${size}` });

describe('an object that broke off', () => {
  it.each([
    ['its tag', { etag: '"v1"', 'last-modified': 'Sat, 21 Nov 2020 03:37:40 GMT' }, '"v1"'],
    ['its date', { 'last-modified': 'Sat, 21 Nov 2020 03:37:40 GMT' }, 'Sat, 21 Nov 2020 03:37:40 GMT'],
    [
      'its date where the tag is weak',
      { etag: 'W/"v1"', 'last-modified': 'Sat, 21 Nov 2020 03:37:40 GMT' },
      'Sat, 21 Nov 2020 03:37:40 GMT',
    ],
  ])('goes on only if %s is the same', async (_, validators, condition) => {
    const { engine, asked, isWhole } = await breaking(validators, (from, content) => ({
      status: 206,
      headers: { ...validators, ...range(from, content.length) },
      body: content.subarray(from),
    }));
    expect(await engine.once('x')).toMatchObject({ changed: true });
    expect(isWhole()).toBe(true);
    expect(asked).toEqual([undefined, condition]);
    expect(engine.files()).toEqual(['shares/x']);
  });

  it.each([
    ['has another tag', { etag: '"v2"' }, 0],
    ['has another size', {}, 1],
  ])('is taken whole where the part %s, whatever was asked', async (_, other, more) => {
    const { engine, isWhole } = await breaking({ etag: '"v1"' }, (from, content) => ({
      status: 206,
      headers: { etag: '"v1"', ...range(from, content.length + more), ...other },
      body: randomBytes(content.length - from),
    }));
    await engine.once('x');
    expect(isWhole()).toBe(true);
  });

  it.each([
    ['fails for ever', 500, Buffer.from('no')],
    ['is refused', 400, Buffer.from('no')],
    ['is empty', 206, Buffer.alloc(0)],
  ])('is taken whole in the end where the part %s', async (_, status, body) => {
    const { engine, isWhole } = await breaking({ etag: '"v1"' }, (from, content) => ({
      status,
      headers: range(from, content.length),
      body,
    }));
    await engine.once('x');
    await engine.once('x');
    expect(isWhole()).toBe(true);
    expect(engine.files()).toEqual(['shares/x']);
  });

  it('comes from its beginning where what is here of it may not be written', async () => {
    const { engine, asked, isWhole } = await breaking({ etag: '"v1"' }, () => {
      throw new Error('only the whole is asked for');
    });
    const [part = ''] = engine.files();
    chmodSync(join(engine.root, part), 0o444);
    await engine.once('x');
    expect(isWhole()).toBe(true);
    expect(asked).toEqual([undefined, undefined]);
    expect(engine.files()).toEqual(['shares/x']);
  });

  it('leaves the file that was there as it is until the whole has come', async () => {
    const { engine, isWhole } = await breaking({ etag: '"v1"' }, (from, content) => ({
      status: 206,
      headers: range(from, content.length),
      body: content.subarray(from),
    }));
    const path = join(engine.root, 'shares/x');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, 'before');
    const { ino } = statSync(path);
    expect(readFileSync(path, 'utf8')).toBe('before');
    await engine.once('x');
    expect(isWhole()).toBe(true);
    expect(statSync(path).ino).not.toBe(ino);
  });
});
