import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkFleet, checkVisible, type WorkerHere } from '../../src/commands/check-fleet.js';
import { fleetSchema } from '../../src/config/fleet-schema.js';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { abilitiesOf } from '../../src/fleet/abilities.js';
import { buildName } from '../../src/fleet/build-name.js';
import { Keys, type Owner, peerDigest } from '../../src/fleet/protocol.js';
import { RedisConnections } from '../../src/fleet/redis.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards } from '../support/afterwards.js';
import { makeCertificate } from '../support/certificate.js';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { temporaryDirectory } from '../support/temp.js';

const PEER_URL = 'http://peer.example:8090';
const WORKER: WorkerHere = { folders: [], peerUrl: PEER_URL, programs: NO_PROGRAMS };

/** A section `fleet` with its defaults. */
function fleetWith(parts: object) {
  const fleet = fleetSchema.parse(parts);
  if (fleet === undefined) throw new Error('no fleet');
  return fleet;
}

/** A secret in a file. */
function secret(text: string) {
  const file = join(temporaryDirectory(), 'secret');
  writeFileSync(file, text, { mode: 0o600 });
  return { file };
}

/** The findings as lines: the label, the check and the message, and the hint. */
async function checked(parts: object, worker?: WorkerHere): Promise<string[]> {
  const lines: string[] = [];
  for await (const finding of checkFleet(fleetWith(parts), silentLogger, worker)) {
    const { check, hint, message, ok } = finding;
    const label = ok ? (hint === undefined ? 'ok' : 'note') : 'FAILED';
    lines.push(`${label} ${check}: ${message}${hint === undefined ? '' : ` | ${hint}`}`);
  }
  return lines;
}

/** Starts a Redis with these settings. */
async function redisWith(...settings: string[]) {
  const server = new RedisServer(temporaryDirectory(), { settings });
  await server.start();
  afterwards('test', () => server.kill());
  return server;
}

/** Listens with a program that is no Redis. @returns its address */
async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterwards('test', () => new Promise<void>((closed) => server.close(() => closed())));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `127.0.0.1:${address.port}`;
}

/** A port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

describe.skipIf(!hasRedis)('check of a Redis', () => {
  it('says which one answers, and who is there', async () => {
    const { url: redis } = await redisWith();
    const [first, second, third] = await checked({ redis });
    expect(first).toMatch(
      /^ok redis: (Redis|Valkey) \d+\.\d+\.\d+ answers at unix:.*, and can be written$/,
    );
    expect(second).toBe('ok redis memory: it never throws keys away (noeviction)');
    expect(third).toMatch(/^note workers: none is there; .* \| Start `peersync worker`/);
    expect((await checked({ redis }, WORKER))[2]).toMatch(/^note owner: nobody gives work now/);
  });

  it('names the owner and the workers, and refuses those of another version', async () => {
    const { url: redis } = await redisWith();
    const config = fleetWith({ redis });
    const client = (await RedisConnections.of(config, silentLogger)).forWaiting();
    afterwards('test', () => client.disconnect());
    const keys = new Keys(config.prefix);
    const owner: Owner = {
      epoch: 'e',
      continues: [],
      instance: 'i',
      host: 'ada',
      pid: 1,
      build: buildName(),
      folders: [],
      abilities: abilitiesOf(NO_PROGRAMS),
    };
    const counts = { slots: 1, active: 0, done: 0, failed: 0, seenAt: 1 };
    const worker = { id: 'w', host: 'bob', pid: 1, version: '1', build: buildName(), ...counts };
    await client.sadd(keys.workers, 'w', 'of which nothing is known');
    const write = async (build: string) => {
      await client.set(keys.owner, JSON.stringify({ ...owner, build }));
      await client.set(keys.worker('w'), JSON.stringify({ ...worker, build }));
    };
    await write(buildName());
    expect((await checked({ redis }))[2]).toBe('ok workers: 1 worker (bob)');
    expect((await checked({ redis }, WORKER))[2]).toBe(
      'ok owner: peersync on "ada" gives the work, and has the same version',
    );
    await client.set(keys.worker('w'), JSON.stringify({ ...worker, noPush: 'denied' }));
    expect((await checked({ redis }))[2]).toMatch(
      /^FAILED workers: "bob" was not let in by the peer \| Type `peersync check --worker`/,
    );
    await write('0.0.1 other');
    expect((await checked({ redis }))[2]).toMatch(
      /^FAILED workers: "bob" has version 0\.0\.1 other; here it is .* \| Install the same/,
    );
    expect((await checked({ redis }, WORKER))[2]).toMatch(
      /^FAILED owner: peersync on "ada" has version 0\.0\.1 other; here it is /,
    );
    await client.set(keys.owner, '{ "damaged');
    expect((await checked({ redis }, WORKER))[2]).toMatch(/^note owner: nobody gives work/);
  });

  it('of a worker names the folders and the programs that only the owner has', async () => {
    const { url: redis } = await redisWith();
    const config = fleetWith({ redis });
    const client = (await RedisConnections.of(config, silentLogger)).forWaiting();
    afterwards('test', () => client.disconnect());
    const abilities = [...abilitiesOf(NO_PROGRAMS), '.dwg by dwg2text'];
    const program = { epoch: 'e', instance: 'i', host: 'ada', pid: 1, build: buildName() };
    const owner: Owner = { ...program, continues: [], folders: ['inbox', 'docs'], abilities };
    await client.set(new Keys(config.prefix).owner, JSON.stringify(owner));
    const path = temporaryDirectory();
    writeFileSync(join(path, 'a.md'), 'a');
    const folders = [{ name: 'docs', path }] as unknown as WorkerHere['folders'];
    expect((await checked({ redis }, { ...WORKER, folders })).slice(3)).toEqual([
      expect.stringMatching(/^FAILED folders: the owner sees files in inbox, and this machine/),
      expect.stringMatching(/^FAILED programs: other .* \(owner: \.dwg by dwg2text\) \| Install/),
    ]);
    const pushes = { redis, share: ['push'] };
    const peerIs = async (peer: string) => {
      const known = JSON.stringify({ ...owner, peer: peerDigest(peer) });
      await client.set(new Keys(config.prefix).owner, known);
      return (await checked(pushes, WORKER)).find((line) => line.includes('peer of the owner'));
    };
    expect(await peerIs(`${PEER_URL}/`)).toBe('ok peer of the owner: it is the same one');
    expect(await peerIs('http://other.example')).toMatch(
      /^FAILED peer of the owner: the owner has another `peer\.url` \| Set it here/,
    );
    // One that reads no documents needs no programs.
    const onlyPushes = await checked(pushes, { ...WORKER, folders });
    expect(onlyPushes.filter((line) => line.includes('programs'))).toEqual([]);
    await client.set(
      new Keys(config.prefix).owner,
      JSON.stringify({ ...owner, folders: ['docs'], abilities: abilities.slice(0, -1) }),
    );
    expect((await checked({ redis }, { ...WORKER, folders })).slice(3)).toEqual([
      'ok folders: all folders in which the owner sees files are there',
      'ok programs: the same ones read documents here and there, in the same versions',
    ]);
  });

  it('fails if it throws keys away, and names the command that changes that', async () => {
    const { url: redis } = await redisWith('--maxmemory-policy', 'allkeys-lru');
    expect((await checked({ redis }))[1]).toMatch(
      /^FAILED redis memory: its maxmemory-policy is allkeys-lru.* \| Type `redis-cli config set maxmemory-policy noeviction`/,
    );
  });

  it('fails if it has no memory left', async () => {
    const { url: redis } = await redisWith('--maxmemory', '1');
    expect(await checked({ redis })).toEqual([
      expect.stringMatching(/^FAILED redis: The memory of Redis at unix:.* is full/),
    ]);
  });

  it('tells a missing password from a wrong one', async () => {
    const { url: redis } = await redisWith('--requirepass', 'a secret');
    expect(await checked({ redis })).toEqual([
      expect.stringMatching(
        /^FAILED redis: Redis at .* wants a password\. \| Name its place in `fleet\.password`/,
      ),
    ]);
    const wrong = await checked({ redis, password: secret('another') });
    expect(wrong).toEqual([expect.stringMatching(/^FAILED redis: .* refuses the password\./)]);
    expect(wrong.join()).not.toContain('another');
    expect((await checked({ redis, password: secret('a secret') }))[0]).toMatch(/^ok redis: /);
  });

  it('notes a Redis that lets everybody in, and one whose texts travel unencrypted', async () => {
    const port = await freePort();
    await redisWith('--port', `${port}`, '--bind', '127.0.0.1');
    const open = await checked({ redis: `redis://127.0.0.1:${port}` });
    expect(open[2]).toMatch(/^note redis access: it lets everybody in who reaches it \| Set/);
  });

  it('tells a certificate that is not trusted from a Redis without TLS, and the reverse', async () => {
    const { cert, key } = makeCertificate();
    const directory = temporaryDirectory();
    const [certFile, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    const [tls, plain] = [await freePort(), await freePort()];
    const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile];
    const settings = ['--tls-port', `${tls}`, ...files, '--tls-ca-cert-file', certFile];
    await redisWith('--port', `${plain}`, ...settings, '--tls-auth-clients', 'no');
    const ca = certFile;
    expect((await checked({ redis: `rediss://127.0.0.1:${tls}`, ca }))[0]).toMatch(/^ok redis: /);
    expect(await checked({ redis: `rediss://127.0.0.1:${tls}` })).toEqual([
      expect.stringMatching(
        /^FAILED redis: The certificate of Redis at .* is not trusted: .* \| .*fleet\.ca/,
      ),
    ]);
    expect(await checked({ redis: `rediss://127.0.0.1:${plain}`, ca })).toEqual([
      expect.stringMatching(/^FAILED redis: .* does not answer in TLS\. \| Write redis:/),
    ]);
    expect(await checked({ redis: `redis://127.0.0.1:${tls}` })).toEqual([
      expect.stringMatching(/^FAILED redis: The connection to Redis at .* was lost\. \| .*rediss:/),
    ]);
  });
});

describe('check of an address where no Redis is', () => {
  it('says that nothing listens there, or that there is no such socket or host', async () => {
    const redis = `redis://127.0.0.1:${await freePort()}`;
    expect(await checked({ redis })).toEqual([
      expect.stringMatching(/^FAILED redis: No Redis listens at redis:/),
    ]);
    expect(await checked({ redis: `unix://${temporaryDirectory()}/none.sock` })).toEqual([
      expect.stringMatching(/^FAILED redis: No Redis listens at unix:/),
    ]);
    expect(await checked({ redis: 'redis://no-such-host.invalid' })).toEqual([
      expect.stringMatching(/^FAILED redis: The name of the host in redis:.* cannot be resolved/),
    ]);
  });

  it.skipIf(!hasRedis)('says that Redis has no such database', async () => {
    const port = await freePort();
    await redisWith('--port', `${port}`, '--bind', '127.0.0.1');
    expect(await checked({ redis: `redis://127.0.0.1:${port}/300` })).toEqual([
      expect.stringMatching(
        /^FAILED redis: .*\/300 does not answer as it should: ERR DB index is out of range/,
      ),
    ]);
  });

  it('says that something else answers there', async () => {
    const http = createServer((socket) => {
      socket.on('error', () => {}).resume();
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    expect(await checked({ redis: `redis://${await listening(http)}` })).toEqual([
      expect.stringMatching(/^FAILED redis: .* does not answer as it should: /),
    ]);
  });
});

it('check of a worker says which folders it sees', async () => {
  const directory = temporaryDirectory();
  for (const name of ['full', 'empty']) mkdirSync(join(directory, name));
  writeFileSync(join(directory, 'full/a.md'), 'a');
  const folders = ['full', 'empty', 'missing'].map((name) => ({
    name,
    path: join(directory, name),
  }));
  const lines: string[] = [];
  for await (const { check, message, ok } of checkVisible({ folders } as never))
    lines.push(`${ok} ${check}: ${message}`);
  expect(lines).toEqual([
    `true folder full: ${directory}/full is there`,
    `true folder empty: ${directory}/empty is empty`,
    expect.stringMatching(/^false folder missing: .* cannot be read: ENOENT/),
  ]);
});
