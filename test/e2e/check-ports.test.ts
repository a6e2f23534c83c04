import { mkdirSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkPorts } from '../../src/commands/check-machine.js';
import type { Finding } from '../../src/commands/finding.js';
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

function place(listen: string, port?: number, directory = temporaryDirectory()): string {
  const token = { env: 'PATH' };
  const peer =
    port === undefined ? { url: 'http://127.0.0.1:1' } : { embedded: { dir: './peer', port } };
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

const page = { check: 'status page', ok: false };
const peer = { check: 'embedded peer', ok: false };
const inUse = (at: string) => ({
  message: `${at} is in use`,
  hint: expect.stringMatching(/^Stop what listens/),
});

describe('check of the listening addresses', () => {
  it('passes without an address, and with free ports', async () => {
    expect(await findings(place('off'))).toEqual([]);
    const port = await freePort();
    expect(await findings(place(`127.0.0.1:${port}`, 0))).toEqual([
      { ...peer, ok: true, message: 'it can listen at any free port of 127.0.0.1' },
      { ...page, ok: true, message: `it can listen at 127.0.0.1:${port}` },
    ]);
  });

  it('reports ports in use, and one port that is configured twice', async () => {
    const [one, other, port] = [await somebody(), await somebody('127.0.0.2'), await freePort()];
    expect(await findings(place(`127.0.0.2:${other}`, one))).toEqual([
      { ...peer, ...inUse(`127.0.0.1:${one}`) },
      { ...page, ...inUse(`127.0.0.2:${other}`) },
    ]);
    const same = await findings(place(`127.0.0.1:${port}`, port));
    expect(same).toMatchObject([{ ok: true }, { ...page, ...inUse(`127.0.0.1:${port}`) }]);
  });

  it('reports that it cannot ask the daemon of another user', async () => {
    const path = place(`127.0.0.1:${await somebody()}`);
    const { config } = await loadConfig(path);
    mkdirSync(join(dirname(path), 'state'), { mode: 0o000 });
    const hint = expect.stringContaining('unless it is the daemon of this configuration');
    expect(await unprivileged(() => all(checkPorts(config)))).toMatchObject([{ ...page, hint }]);
  });

  it('reports addresses that are not of this machine', async () => {
    const message = expect.stringMatching(
      /^nobody can listen at 192\.0\.2\.1:8385: .*EADDRNOTAVAIL/,
    );
    expect(await findings(place('192.0.2.1:8385'))).toMatchObject([{ ...page, message }]);
  });

  it('accepts ports of its own running daemon, but not of another one', async () => {
    const ports = { peer: await freePort(), page: await freePort() };
    const config = place(`127.0.0.1:${ports.page}`, ports.peer);
    await new Running(['run', '-c', config]).says('status page at');
    const ours = await peersync(['check', '-c', config]);
    expect(ours.code).toBe(0);
    const served = 'the running daemon serves it at http://127.0.0.1';
    expect(ours.stdout).toContain(`ok      embedded peer: ${served}:${ports.peer}\n`);
    expect(ours.stdout).toContain(`ok      status page: ${served}:${ports.page}/\n`);
    const theirs = await peersync(['check', '-c', place(`127.0.0.1:${ports.page}`, ports.peer)]);
    expect(theirs.code).toBe(1);
    expect(theirs.stdout).toContain(`FAILED  embedded peer: 127.0.0.1:${ports.peer} is in use\n`);
    expect(theirs.stdout).toContain(`FAILED  status page: 127.0.0.1:${ports.page} is in use\n`);
  });
});
