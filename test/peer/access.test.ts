import {
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { PeerAccess } from '../../src/peer/access.js';
import type { PeerClientOptions } from '../../src/peer/client-options.js';
import { makeCertificate } from '../support/certificate.js';
import { CREDENTIALS, type DigestRules } from '../support/digest.js';
import { type HttpAnswer, HttpPeer, type HttpRequest } from '../support/http-peer.js';
import { loggerTo } from '../support/logger.js';
import { temporaryDirectory } from '../support/temp.js';
import { ACCEPTED, accepts, clientOf, ITEM, OK, serving } from './support.js';

const WEAK = { code: 'PEER_AUTH_WEAK' };
const BASIC = { 'www-authenticate': 'Basic realm="r"' };

/** Whether the password arrived in plain text. */
const isShownTo = ({ requests }: HttpPeer) =>
  requests.some(({ headers }) => headers.authorization?.startsWith('Basic'));

/** Accepts any password by Basic. */
const basic: HttpAnswer = ({ headers }, response) => {
  if (headers.authorization?.startsWith('Basic')) response.end(ACCEPTED);
  else response.writeHead(401, BASIC).end('no');
};

/** A peer with Digest, behind an attacker who may ask for the password in plain text instead. */
async function between(rules: Partial<DigestRules> = {}) {
  const digest = await HttpPeer.start(accepts, { digest: rules });
  const way = { strips: false };
  const server = await HttpPeer.start((request, response, n) => {
    if (way.strips) basic(request, response, n);
    else void handOn(request, response);
  });
  const handOn = async ({ method, url, headers, body }: HttpRequest, response: ServerResponse) => {
    const { authorization, 'content-type': type } = headers;
    const sent = { ...(authorization && { authorization }), ...(type && { 'content-type': type }) };
    const answer = await fetch(digest.url + url, { method, headers: sent, ...(body && { body }) });
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  };
  const accessFile = join(temporaryDirectory(), 'peer-access.json');
  const client = (more: Partial<PeerClientOptions> = {}) =>
    clientOf(server.url, { credentials: CREDENTIALS, accessFile, ...more });
  return { accessFile, client, digest, server, way };
}

describe('a peer that asked for Digest and asks for Basic', () => {
  it('never gets the password in plain text, and works again once it asks for Digest', async () => {
    const { client, server, way } = await between();
    const asking = client();
    expect(await asking.push([ITEM])).toMatchObject(OK);
    way.strips = true;
    for (let times = 0; times < 3; times += 1)
      await expect(asking.push([ITEM])).rejects.toMatchObject(WEAK);
    asking.authenticate({ ...CREDENTIALS, password: 'renewed' });
    await expect(asking.push([ITEM])).rejects.toMatchObject(WEAK);
    asking.authenticate(CREDENTIALS);
    way.strips = false;
    expect(await asking.push([ITEM])).toMatchObject(OK);
    expect(isShownTo(server)).toBe(false);
  });

  it('does not get the password after a restart either', async () => {
    const { accessFile, client, server, way } = await between();
    await client().push([ITEM]);
    way.strips = true;
    for (const work of [() => client().push([ITEM]), () => client().tables.list()])
      await expect(work()).rejects.toMatchObject({ ...WEAK, status: 401 });
    expect(isShownTo(server)).toBe(false);
    expect(statSync(accessFile).mode & 0o777).toBe(0o600);
    expect(readFileSync(accessFile, 'utf8')).not.toContain(CREDENTIALS.password);
  });

  it('does not get the password in plain text after Digest refused it', async () => {
    const { client, digest, server, way } = await between();
    digest.digest.password = 'another';
    await expect(client().push([ITEM])).rejects.toMatchObject({ code: 'PEER_AUTH' });
    way.strips = true;
    await expect(client().push([ITEM])).rejects.toMatchObject(WEAK);
    expect(isShownTo(server)).toBe(false);
  });

  it('gets the password once a person removes the file as the hint says, also from a running client', async () => {
    const { accessFile, client, server, way } = await between();
    const asking = client();
    await asking.push([ITEM]);
    way.strips = true;
    const hint = expect.stringContaining(`\`rm ${accessFile}\``);
    const message = expect.stringContaining(
      'asks for Basic (401), and asked for Digest with MD5 before',
    );
    await expect(asking.push([ITEM])).rejects.toMatchObject({ ...WEAK, hint, message });
    rmSync(accessFile);
    expect(await asking.push([ITEM])).toMatchObject(OK);
    expect(isShownTo(server)).toBe(true);
    expect(readFileSync(accessFile, 'utf8')).toContain('"basic"');
  });

  it('does not get the password if it asked for Basic first, and has accepted Digest since', async () => {
    const { client, server, way } = await between();
    way.strips = true;
    expect(await client().push([ITEM])).toMatchObject(OK);
    way.strips = false;
    expect(await client().push([ITEM])).toMatchObject(OK);
    way.strips = true;
    const before = server.requests.length;
    await expect(client().push([ITEM])).rejects.toMatchObject(WEAK);
    const later = server.requests.slice(before).map(({ headers }) => headers.authorization);
    expect(later).toEqual([undefined]);
  });

  it('does not get an answer for MD5 instead of SHA-256 either', async () => {
    const { accessFile, client, server } = await between({ algorithm: 'SHA-256' });
    await client().push([ITEM]);
    const weaker = await HttpPeer.start(accepts, { digest: {} });
    const text = readFileSync(accessFile, 'utf8').replace(server.url, weaker.url);
    writeFileSync(accessFile, text);
    const message = expect.stringContaining('asks for Digest with MD5');
    const asking = clientOf(weaker.url, { credentials: CREDENTIALS, accessFile });
    await expect(asking.push([ITEM])).rejects.toMatchObject({ ...WEAK, message });
    expect(weaker.digest.log).toEqual(['GET -']);
  });
});

it('a peer with Basic that asked for Digest for a while, and accepted nobody, gets Basic as before', async () => {
  let nonce: number | undefined;
  const accessFile = join(temporaryDirectory(), 'access');
  const { client } = await serving(
    (request, response, n) => {
      // Other pages need no password.
      if (nonce === undefined || !request.url.includes('_p.')) basic(request, response, n);
      else
        response
          .writeHead(401, { 'www-authenticate': `Digest realm="r", nonce="${nonce++}"` })
          .end();
    },
    { credentials: CREDENTIALS, accessFile },
  );
  await client.push([ITEM]);
  nonce = 0;
  await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_AUTH' });
  await client.peerdoc({ url: ITEM.url }).catch(() => {});
  nonce = undefined;
  await client.push([ITEM]).catch(() => {});
  expect(await client.push([ITEM])).toMatchObject(OK);
});

describe('Basic over http to another machine', () => {
  /** This address is not loopback, and leads to the same server. */
  const elsewhere = ({ url }: HttpPeer) => url.replace('127.0.0.1', '0.0.0.0');

  it('is not used unless the option allows it, which takes effect at once', async () => {
    const server = await HttpPeer.start(basic);
    const client = clientOf(elsewhere(server), { credentials: CREDENTIALS });
    const expected = {
      ...WEAK,
      message: expect.stringContaining('in plain text (Basic over http, 401); it was not sent'),
      hint: expect.stringContaining('peer.auth.allowBasic'),
    };
    for (let times = 0; times < 2; times += 1)
      await expect(client.push([ITEM])).rejects.toMatchObject(expected);
    expect(isShownTo(server)).toBe(false);
    client.allowBasic(true);
    expect(await client.push([ITEM])).toMatchObject(OK);
    client.allowBasic(false);
    const before = server.requests.length;
    await expect(client.push([ITEM])).rejects.toMatchObject(expected);
    expect(isShownTo({ requests: server.requests.slice(before) } as HttpPeer)).toBe(false);
    const allowed = clientOf(elsewhere(server), { credentials: CREDENTIALS, allowBasic: true });
    expect(await allowed.push([ITEM])).toMatchObject(OK);
  });

  it('is not used after Digest, even if the option allows it', async () => {
    const { client, server, way } = await between();
    await client().push([ITEM]);
    way.strips = true;
    await expect(client({ allowBasic: true }).push([ITEM])).rejects.toMatchObject(WEAK);
    expect(isShownTo(server)).toBe(false);
  });

  it('applies to every host name that is not loopback', () => {
    const isExposed = (url: string) =>
      new PeerAccess(new URL(url), {
        allowBasic: false,
        path: undefined,
        log: silentLogger,
      }).isExposedBy('basic');
    for (const own of ['localhost', '127.0.0.1', '127.9.8.7', '127.1', '[::1]'])
      expect(isExposed(`http://${own}:8090/`), own).toBe(false);
    for (const other of [
      'peer',
      '10.0.0.1',
      '0.0.0.0',
      '[::]',
      '127.0.0.1.example.org',
      'peer.localhost',
    ])
      expect(isExposed(`http://${other}:8090/`), other).toBe(true);
    expect(isExposed('https://peer.example.org/')).toBe(false);
  });
});

it('Basic over https needs no option', async () => {
  const own = makeCertificate();
  const { url } = await HttpPeer.start(basic, { tls: own });
  const client = clientOf(url, { credentials: CREDENTIALS, tls: { ca: own.cert } });
  expect(await client.push([ITEM])).toMatchObject(OK);
});

describe('the file that records the schemes', () => {
  it.each(['', 'not JSON', '[]', 'null', '{"a": 1}'])(
    'is written again if it contains %j',
    async (content) => {
      const { accessFile, client, server, way } = await between();
      writeFileSync(accessFile, content);
      const logged: string[] = [];
      const log = loggerTo(logged);
      expect(await client({ log }).push([ITEM])).toMatchObject(OK);
      const warned = content.startsWith('{')
        ? []
        : [expect.stringMatching(/^warn: .*peer-access.json.*cannot be read/)];
      expect(logged).toEqual(warned);
      way.strips = true;
      await expect(client().push([ITEM])).rejects.toMatchObject(WEAK);
      expect(JSON.parse(readFileSync(accessFile, 'utf8'))).toMatchObject({
        [server.url]: 'digest-md5',
      });
    },
  );

  it('holds several peers, and no credentials from their URLs', async () => {
    const { accessFile, client, server } = await between();
    const other = await HttpPeer.start(basic);
    await client().push([ITEM]);
    const named = other.url.replace('http://', 'http://admin:hunter2@');
    await clientOf(`${named}/peer/`, { credentials: CREDENTIALS, accessFile }).push([ITEM]);
    const known = { [server.url]: 'digest-md5', [`${other.url}/peer`]: 'basic' };
    expect(JSON.parse(readFileSync(accessFile, 'utf8'))).toEqual(known);
  });

  it('leads to one warning if it cannot be written, and the client remembers on its own', async () => {
    const { accessFile, client, server, way } = await between();
    const logged: string[] = [];
    // A file cannot be renamed over a directory.
    const path = join(accessFile, '..');
    const asking = client({ accessFile: path, log: loggerTo(logged) });
    await asking.push([ITEM]);
    way.strips = true;
    await expect(asking.push([ITEM])).rejects.toMatchObject(WEAK);
    expect(isShownTo(server)).toBe(false);
    expect(logged).toHaveLength(1);
    expect(readdirSync(path)).toEqual([]);
  });

  it('is written by the next challenge once it can be', async () => {
    const path = join(temporaryDirectory(), 'peer-access.json');
    const url = 'http://peer.example.org';
    const access = new PeerAccess(new URL(url), { path, allowBasic: false, log: silentLogger });
    mkdirSync(path);
    await access.recordChallenge('digest-md5');
    rmdirSync(path);
    await access.recordChallenge('digest-md5');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ [url]: 'digest-md5' });
  });

  it('is not created in a missing directory, nor by root in a directory of another user', async () => {
    const { client, server, way } = await between();
    const directory = temporaryDirectory();
    const own = temporaryDirectory();
    const clients = [client({ accessFile: join(directory, 'missing', 'access') })];
    if (process.geteuid?.() === 0) {
      chownSync(own, 65_534, 65_534);
      clients.push(client({ accessFile: join(own, 'access') }));
    }
    for (const asking of clients) await asking.push([ITEM]);
    expect([...readdirSync(directory), ...readdirSync(own)]).toEqual([]);
    way.strips = true;
    for (let times = 0; times < 2; times += 1)
      for (const asking of clients) await expect(asking.push([ITEM])).rejects.toMatchObject(WEAK);
    expect(isShownTo(server)).toBe(false);
  });
});
