import { execSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { ReloadReport } from '../../src/report/live.js';
import { type Behaviour, well } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';

/** Returns the authentication schemes that arrive at the proxy, in order. */
function watched(site: Site, behaviour: Behaviour): string[] {
  const came: string[] = [];
  site.proxy.behaviour = (call) => {
    const { authorization } = call.request.headers;
    if (authorization !== undefined) came.push(authorization.replace(/ .*/s, ''));
    return behaviour(call);
  };
  return came;
}

/** Simulates a peer with Digest that accepts any response. The real peer behind it has Basic. */
function withDigest({ peer }: Site): Behaviour {
  const password = readFileSync(`${peer.data}/admin-password`, 'utf8').trim();
  const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`;
  const challenge = 'Digest realm="peer", qop="auth", nonce="n"';
  return (call) => {
    const { headers } = call.request;
    if (call.path.includes('_p.') && !headers.authorization?.startsWith('Digest'))
      return { status: 401, headers: { 'www-authenticate': challenge }, body: Buffer.from('no') };
    headers.authorization = authorization;
    return call.forward();
  };
}

it('a peer that had Digest gets no plain-text password after a restart, unless a person allows it', async () => {
  const site = await Site.begin();
  const before = watched(site, withDigest(site));
  site.drop('inbox/a.txt');
  await site.start();
  await site.confirmed('inbox/a.txt');
  await site.stop();
  expect(before).toContain('Digest');

  const came = watched(site, well);
  site.drop('inbox/b.txt');
  await site.start();
  const isLogged = () =>
    site.daemon.logged.some((line) => /in a way that is not safe: .*asks for Basic/.test(line));
  await until(isLogged, 'it is logged');
  const checked = await site.run('check');
  expect(checked).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^FAILED {2}access: .*asks for Basic/m),
  });
  expect((await site.run('table', 'list')).stderr).toContain('asks for Basic');
  expect(came.join()).not.toContain('Basic');

  const { stdout } = await site.run('status');
  const [, forget = '', goOn = ''] = /`(rm [^`]*)`, then `peersync ([^`]*)`/.exec(stdout) ?? [];
  execSync(forget);
  expect(await site.run(...goOn.split(' '))).toMatchObject({ code: 0 });
  await site.confirmed('inbox/b.txt');
  expect(came).toContain('Basic');
  await site.stop();
});

it('Basic over http to another machine needs peer.auth.allowBasic, which a reload applies', async () => {
  const site = await Site.begin();
  const { hostname, port } = new URL(site.proxy.url);
  // A name that is none of loopback, and leads there.
  const url = `http://[::ffff:${hostname}]:${port}`;
  const { auth } = site.section() as { auth: object };
  const came = watched(site, well);
  site.configure({ peer: site.section({ url }) });
  site.drop('inbox/a.txt');
  await site.start();
  await until(
    () => site.daemon.logged.some((line) => line.includes('peer.auth.allowBasic')),
    'it is logged',
  );
  expect((await site.run('check')).stdout).toMatch(
    /^FAILED {2}access: .*in plain text[\s\S]*allowBasic/m,
  );
  expect(came).toEqual([]);
  site.configure({ peer: site.section({ url, auth: { ...auth, allowBasic: true } }) });
  const report = await site.ask<ReloadReport>('reload');
  expect(report).toEqual({ changes: ['peer.auth.allowBasic: false, now true'], restart: [] });
  await site.confirmed('inbox/a.txt');
  expect((await site.run('check')).stdout).toContain('ok      access:');
  await site.stop();
});
