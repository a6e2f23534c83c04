import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { INDEX, PageAtWork } from './page-at-work.js';

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function occupied(): Promise<{ server: Server; listen: string }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterwards('test', () => void server.close());
  return { server, listen: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function messages(page: PageAtWork, level: string): string[] {
  return page.logged.filter((line) => line.level === level).map(({ message }) => message);
}

/** A page that cannot open, when it has said so. */
async function shutOut(options: Parameters<typeof PageAtWork.start>[0]): Promise<PageAtWork> {
  const page = await PageAtWork.start(options, { opens: false });
  await until(() => messages(page, 'warn').length === 1, 'it says that it cannot open');
  return page;
}

const hasV6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);
const EVERYWHERE = ', and at every other address of this machine';

describe('the status page', () => {
  it.each([
    ['127.0.0.1:0', '127.0.0.1', ''],
    ['0.0.0.0:0', '127.0.0.1', EVERYWHERE],
    ...(hasV6
      ? [
          ['[::]:0', '[::1]', EVERYWHERE],
          ['[::1]:0', '[::1]', ''],
        ]
      : []),
  ] as [string, string, string][])(
    'that listens on %s logs an address for a local browser',
    async (listen, host, others) => {
      const page = await PageAtWork.start({ listen, token: 'a token for this test' });
      const url = page.page.url ?? '';
      expect(url).toBe(`http://${host}:${page.port}/`);
      expect((await fetch(`${url}healthz`)).status).toBe(200);
      expect(messages(page, 'info')).toContain(`status page at ${url}${others}`);
    },
  );

  it('does not listen if it is off', async () => {
    const page = await PageAtWork.start({ listen: 'off' }, { opens: false });
    await page.stop();
    expect(page.logged).toEqual([]);
  });

  it('waits for a port in use, logs that once, and listens when the port is free', async () => {
    const { server, listen } = await occupied();
    const clock = new FakeClock();
    const page = await shutOut({ listen, clock });
    const said = `${listen} is in use. Stop what listens there, or set another status.listen.`;
    for (let i = 0; i < 3; i += 1) {
      await clock.advance(30_000);
      await until(() => clock.waiting > 0, 'the next try is planned');
    }
    expect(messages(page, 'warn')).toEqual([expect.stringContaining(said)]);
    server.close();
    await clock.advance(30_000);
    await until(() => page.page.url !== undefined, 'the page is open');
    expect(await page.status('/healthz')).toBe(200);
  });

  it('does not listen until its token can be read', async () => {
    const clock = new FakeClock();
    const page = await PageAtWork.start({ token: 'secret', clock });
    const file = join(page.directory, 'token');
    rmSync(file);
    await page.configure({ listen: '127.0.0.1:0', token: { file } });
    await until(() => messages(page, 'warn').length === 1, 'the token is not there');
    expect(messages(page, 'warn')[0]).toContain(
      'The status page cannot be opened: The secret file',
    );
    expect(page.page.url).toBeUndefined();
    writeFileSync(file, 'another', { mode: 0o600 });
    await clock.advance(30_000);
    await until(() => page.page.url !== undefined, 'the page is open');
    expect(await page.status('/api/status', bearer('another'))).toBe(200);
    const before = page.status('/api/status', bearer('secret'));
    await until(() => clock.waiting > 0, 'who has the token of before waits');
    await clock.advance(500);
    expect(await before).toBe(401);
  });

  it('applies a reload: another address, another token, off and on again', async () => {
    const page = await PageAtWork.start();
    const before = page.port;
    const { server, listen } = await occupied();
    server.close();
    await page.configure({ listen });
    await until(() => page.page.url === `http://${listen}/`, 'it listens where it should');
    await expect(fetch(`http://127.0.0.1:${before}/`)).rejects.toThrow();
    await page.configure({ listen, token: page.secret('new') });
    const status = () => page.status('/api/status').catch(() => undefined);
    await until(async () => (await status()) === 401, 'the token is asked for');
    await page.configure({ listen: 'off' });
    await until(() => page.page.url === undefined, 'it is nowhere');
    await page.configure({ listen });
    await until(() => page.page.url !== undefined, 'it is back');
    expect(await status()).toBe(200);
  });

  it('stays open if a reload changed other settings', async () => {
    const page = await PageAtWork.start();
    for (let i = 0; i < 2; i += 1) await page.configure({ listen: '127.0.0.1:0' });
    await page.page.stop();
    expect(
      messages(page, 'info').filter((message) => message.startsWith('status page at')),
    ).toHaveLength(1);
  });

  it('stops at once, even during a request', async () => {
    const page = await PageAtWork.start();
    const socket = page.connect();
    const closed = once(socket, 'close');
    const head = `POST /api/retry HTTP/1.1\r\nHost: 127.0.0.1:${page.port}\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}Content-Length: 1000\r\n\r\n{`);
    await page.status('/healthz');
    const started = performance.now();
    await page.page.stop();
    expect(performance.now() - started).toBeLessThan(10_000);
    await closed;
  });

  it('stops while it waits for the port, and while it opens', async () => {
    const { listen } = await occupied();
    for (const options of [{ listen }, {}]) {
      const page = await PageAtWork.start(options, { opens: false });
      await page.page.stop();
      expect(page.page.url).toBeUndefined();
    }
  });
});

describe('the files of the page', () => {
  it('have a type and an ETag, and are sent again only if they changed', async () => {
    const page = await PageAtWork.start();
    for (const [path, type] of [
      ['/favicon.ico', 'image/svg+xml; charset=utf-8'],
      ['/assets/main.css', 'text/css; charset=utf-8'],
      ['/assets/main.js', 'text/javascript; charset=utf-8'],
    ] as const) {
      const { headers, status } = await page.fetch(path);
      expect([status, headers.get('content-type')]).toEqual([200, type]);
      expect(await page.status(path, { 'if-none-match': headers.get('etag') ?? '' })).toBe(304);
      expect(await page.status(path, { 'if-none-match': '"x"' })).toBe(200);
    }
    expect(await (await page.fetch('/')).text()).toBe(INDEX);
  });

  it('do not include other files of the directory', async () => {
    const page = await PageAtWork.start();
    const others = [
      'main.js.map',
      'tsconfig.json',
      'index.html',
      'nothing.js',
      '.',
      'browser/index.html',
    ];
    const ways = [
      '..%2fconfig.json',
      '%2e%2e%2ftoken',
      '..%5cconfig.json',
      '__proto__',
      'constructor',
    ];
    for (const name of [...others, ...ways])
      expect([name, await page.status(`/assets/${name}`)]).toEqual([name, 404]);
  });
});
