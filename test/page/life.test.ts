import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { INDEX, PageAtWork } from './page-at-work.js';

async function occupied(): Promise<{ server: Server; listen: string }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterwards('test', () => void server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { server, listen: `127.0.0.1:${port}` };
}

function warnings(page: PageAtWork): string[] {
  return page.logged.filter(({ level }) => level === 'warn').map(({ message }) => message);
}

describe('the status page', () => {
  it('says where it is', async () => {
    const page = await PageAtWork.start();
    expect(page.logged).toContainEqual({
      level: 'info',
      message: `status page at http://127.0.0.1:${page.port}/`,
    });
    expect(await (await page.fetch('/')).text()).toBe(INDEX);
  });

  const families = [
    { listen: '0.0.0.0:0', host: '127.0.0.1' },
    ...(Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'))
      ? [
          { listen: '[::]:0', host: '[::1]' },
          { listen: '[::1]:0', host: '[::1]' },
        ]
      : []),
  ];
  it.each(families)(
    'that listens on $listen says where a browser here reaches it',
    async ({ listen, host }) => {
      const page = await PageAtWork.start({ listen, token: 'a token for this test' });
      const url = page.page.url ?? '';
      expect(new URL(url).hostname).toBe(host);
      expect((await fetch(`${url}healthz`)).status).toBe(200);
      const others = listen === '[::1]:0' ? '' : ', and at every other address of this machine';
      expect(page.logged.map(({ message }) => message)).toContain(`status page at ${url}${others}`);
    },
  );

  it('is nowhere where it is off', async () => {
    const page = await PageAtWork.start({ listen: 'off' }, { opens: false });
    await page.stop();
    expect(page.logged).toEqual([]);
  });

  it('waits for a port that is in use, says so once, and opens when it is free', async () => {
    const { server, listen } = await occupied();
    const clock = new FakeClock();
    const page = await PageAtWork.start({ listen, clock }, { opens: false });
    await until(() => warnings(page).length === 1, 'the port is in use');
    expect(warnings(page)[0]).toContain(
      `${listen} is in use. Stop what listens there, or set another status.listen.`,
    );
    for (let i = 0; i < 3; i += 1) {
      await clock.advance(30_000);
      await until(() => clock.waiting > 0, 'the next try is planned');
    }
    expect(warnings(page)).toHaveLength(1);
    server.close();
    await clock.advance(30_000);
    await until(() => page.page.url !== undefined, 'the page is open');
    expect((await page.fetch('/healthz')).status).toBe(200);
  });

  it('waits for an address that is not there', async () => {
    // One of those that are only for examples in documents.
    const page = await PageAtWork.start(
      { listen: '192.0.2.1:8385', token: 'a token for this test' },
      { opens: false },
    );
    await until(() => warnings(page).length === 1, 'the address is not there');
    expect(warnings(page)[0]).toContain('this machine has no address 192.0.2.1:8385 now');
  });

  it('does not open without its token, and opens when that can be read', async () => {
    const clock = new FakeClock();
    const page = await PageAtWork.start({ token: 'secret', clock });
    rmSync(join(page.directory, 'token'));
    await page.configure({ listen: '127.0.0.1:0', token: { file: join(page.directory, 'token') } });
    await until(() => warnings(page).length === 1, 'the token is not there');
    expect(warnings(page)[0]).toContain('The status page cannot be opened: The secret file');
    expect(page.page.url).toBeUndefined();
    writeFileSync(join(page.directory, 'token'), 'another', { mode: 0o600 });
    await clock.advance(30_000);
    const status = async (token: string) =>
      (await page.fetch('/api/status', { headers: { authorization: `Bearer ${token}` } })).status;
    await until(() => page.page.url !== undefined, 'the page is open');
    expect(await status('another')).toBe(200);
    const before = status('secret');
    await until(() => clock.waiting > 0, 'who has the token of before waits');
    await clock.advance(500);
    expect(await before).toBe(401);
  });

  it('follows a reload: to another place, to another token, to nowhere and back', async () => {
    const page = await PageAtWork.start();
    const before = page.port;
    const { server, listen } = await occupied();
    server.close();
    await page.configure({ listen });
    await until(() => page.page.url === `http://${listen}/`, 'it listens where it should');
    await expect(fetch(`http://127.0.0.1:${before}/`)).rejects.toThrow();
    await page.configure({ listen, token: page.secret('new') });
    await until(
      async () => (await page.fetch('/api/status').catch(() => undefined))?.status === 401,
      'the token is asked for',
    );
    await page.configure({ listen: 'off' });
    await until(() => page.page.url === undefined, 'it is nowhere');
    await page.configure({ listen });
    await until(() => page.page.url !== undefined, 'it is back');
    expect((await page.fetch('/api/status')).status).toBe(200);
  });

  it('stays as it is where a reload changed other things', async () => {
    const page = await PageAtWork.start();
    const before = page.port;
    await page.configure({ listen: '127.0.0.1:0' });
    await page.configure({ listen: '127.0.0.1:0' });
    await page.page.stop();
    expect(page.logged.filter(({ message }) => message.startsWith('status page at'))).toHaveLength(1);
    expect(before).toBeGreaterThan(0);
  });

  it('stops at once, also where somebody is in the middle of a request', async () => {
    const page = await PageAtWork.start();
    const socket = page.connect();
    let closed = false;
    socket.on('error', () => {});
    socket.on('close', () => {
      closed = true;
    });
    socket.write(
      `POST /api/retry HTTP/1.1\r\nHost: 127.0.0.1:${page.port}\r\nContent-Type: application/json\r\n`,
    );
    socket.write('Content-Length: 1000\r\n\r\n{');
    await page.fetch('/healthz');
    const started = performance.now();
    await page.page.stop();
    expect(performance.now() - started).toBeLessThan(10_000);
    await until(() => closed, 'it was let go');
  });

  it('stops while it waits, and while it opens', async () => {
    const { listen } = await occupied();
    const page = await PageAtWork.start({ listen }, { opens: false });
    await page.page.stop();
    expect(page.page.url).toBeUndefined();
    const other = await PageAtWork.start({}, { opens: false });
    await other.page.stop();
    expect(other.page.url).toBeUndefined();
  });
});

describe('the files of the page', () => {
  it.each(['index.html', 'sign-in.html'])('include all that %s asks for', (name) => {
    const source = new URL('../../src/page/browser/', import.meta.url);
    const html = readFileSync(new URL(name, source), 'utf8');
    const wanted = [...html.matchAll(/"\/assets\/([^"]+)"/g)].map(([, file = '']) => file);
    expect(wanted.length).toBeGreaterThan(1);
    const sources = (file: string) => [file, file.replace(/js$/, 'ts'), file.replace(/js$/, 'tsx')];
    const has = (file: string) => sources(file).some((name) => existsSync(new URL(name, source)));
    expect(wanted.filter((file) => !has(file))).toEqual([]);
  });

  it('include the icon that browsers ask for by themselves', async () => {
    const page = await PageAtWork.start();
    const icon = await page.fetch('/favicon.ico');
    expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/svg+xml; charset=utf-8']);
  });

  it('come with their kind and a mark of their content, and only again when that changed', async () => {
    const page = await PageAtWork.start();
    const script = await page.fetch('/assets/main.js');
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    const etag = script.headers.get('etag') ?? '';
    expect((await page.fetch('/assets/main.js', { headers: { 'if-none-match': etag } })).status).toBe(304);
    expect((await page.fetch('/assets/main.js', { headers: { 'if-none-match': '"x"' } })).status).toBe(200);
    expect((await page.fetch('/assets/main.css')).headers.get('content-type')).toBe(
      'text/css; charset=utf-8',
    );
  });

  it.each([
    ...['main.js.map', 'tsconfig.json', 'index.html', 'nothing.js', '..%2fconfig.json', '%2e%2e%2ftoken'],
    ...['..%5cconfig.json', '.', 'browser/index.html', '__proto__', 'constructor'],
  ])('do not include %s', async (name) => {
    const page = await PageAtWork.start();
    expect((await page.fetch(`/assets/${name}`)).status).toBe(404);
  });
});
