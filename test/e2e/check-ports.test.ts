import { mkdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkPorts, type Finding } from '../../src/commands/check.js';
import { loadConfig } from '../../src/config/load.js';
import { afterwards } from '../support/afterwards.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';

/** Somebody else who listens at a port that was free. */
async function somebody(host = '127.0.0.1'): Promise<number> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((listening) => server.listen(0, host, listening));
  afterwards('test', () => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A port that nobody listens at, below those that are given to whoever asks for any. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((done) => {
      server.once('error', () => done(false));
      server.listen(port, '127.0.0.1', () => done(true));
    });
    if (!isFree) continue;
    await new Promise((closed) => server.close(closed));
    return port;
  }
}

/** Not as root, who may do everything. */
async function unprivileged<T>(work: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return await work();
  process.seteuid?.(65_534);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}

/** The first port that anybody may listen at. */
function firstOfAll(): number {
  try {
    return Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'));
  } catch {
    return 1024;
  }
}

function place(listen: string, port?: number, directory = temporaryDirectory()): string {
  const token = { env: 'PATH' };
  const peer = port === undefined ? { url: 'http://127.0.0.1:1' } : { embedded: { dir: './peer', port } };
  return writeConfig(directory, { peer, status: { listen, token } });
}

async function all(findings: AsyncIterable<Finding>): Promise<Finding[]> {
  const found: Finding[] = [];
  for await (const finding of findings) found.push(finding);
  return found;
}

async function findings(path: string): Promise<Finding[]> {
  return await all(checkPorts((await loadConfig(path)).config));
}

describe('check tries where the daemon is to listen', () => {
  it('and finds nothing to say where that is nowhere', async () => {
    expect(await findings(place('off'))).toEqual([]);
  });

  it('and is content with what is free', async () => {
    const port = await freePort();
    const message = 'it can listen at any free port of 127.0.0.1';
    expect(await findings(place(`127.0.0.1:${port}`, 0))).toEqual([
      { check: 'embedded peer', ok: true, message },
      { check: 'status page', ok: true, message: `it can listen at 127.0.0.1:${port}` },
    ]);
  });

  it('and says which port is in use, and of what', async () => {
    const [one, other] = [await somebody(), await somebody('127.0.0.2')];
    expect(await findings(place(`127.0.0.2:${other}`, one))).toEqual([
      {
        check: 'embedded peer',
        ok: false,
        message: `127.0.0.1:${one} is in use`,
        hint: 'Stop what listens there, or set another `peer.embedded.port`.',
      },
      {
        check: 'status page',
        ok: false,
        message: `127.0.0.2:${other} is in use`,
        hint: 'Stop what listens there, or set another `status.listen`.',
      },
    ]);
  });

  it('and sees that two are to listen at one port', async () => {
    const port = await freePort();
    const [peer, page] = await findings(place(`127.0.0.1:${port}`, port));
    expect([peer?.ok, page?.ok, page?.message]).toEqual([true, false, `127.0.0.1:${port} is in use`]);
  });

  it('and says what it cannot know where the running daemon is not for this user to ask', async () => {
    const path = place(`127.0.0.1:${await somebody()}`);
    const { config } = await loadConfig(path);
    mkdirSync(join(dirname(path), 'state'), { mode: 0o000 });
    const [page] = await unprivileged(() => all(checkPorts(config)));
    expect(page).toMatchObject({ ok: false, message: expect.stringContaining('is in use') });
    expect(page?.hint).toMatch(
      /^If that is the daemon of this configuration, which could not be asked, all is well; /,
    );
  });

  it.skipIf(firstOfAll() <= 81)('and says when the port is for root', async () => {
    const { config } = await loadConfig(place('127.0.0.1:81'));
    expect(await unprivileged(() => all(checkPorts(config)))).toEqual([
      {
        check: 'status page',
        ok: false,
        message: 'this user may not listen at 127.0.0.1:81',
        hint: 'Set `status.listen` to a port from 1024 up.',
      },
    ]);
  });

  it('and says when the address is not one of this machine', async () => {
    expect(await findings(place('192.0.2.1:8385'))).toEqual([
      {
        check: 'status page',
        ok: false,
        message: 'this machine has no address 192.0.2.1',
        hint: 'Set `status.listen` to an address that it has; `ip address` names them.',
      },
    ]);
  });

  it('and takes its own running daemon for no trouble, but another one', async () => {
    const [port, page] = [await freePort(), await freePort()];
    const config = place(`127.0.0.1:${page}`, port);
    const daemon = new Running(['run', '-c', config]);
    await daemon.says('status page at');
    const ours = await peersync(['check', '-c', config]);
    expect(ours.stdout).toContain(
      `ok       embedded peer: the running daemon serves it at http://127.0.0.1:${port}\n`,
    );
    expect(ours.stdout).toContain(
      `ok       status page: the running daemon serves it at http://127.0.0.1:${page}/\n`,
    );
    expect(ours.code).toBe(0);
    const theirs = await peersync(['check', '-c', place(`127.0.0.1:${page}`, port)]);
    expect(theirs.stdout).toContain(`TROUBLE  embedded peer: 127.0.0.1:${port} is in use\n`);
    expect(theirs.stdout).toContain(`TROUBLE  status page: 127.0.0.1:${page} is in use\n`);
    expect(theirs.code).toBe(1);
  });
});
