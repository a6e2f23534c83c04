import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { PeerProcess } from '../support/peer-process.js';
import { Site, some } from '../support/site.js';
import { temporaryDirectory } from '../support/temp.js';
import {
  answering,
  type Behaviour,
  BINARY,
  halfAnAnswer,
  otherPassword,
  STACK_TRACE,
  silent,
  well,
  whenPushed,
} from '../support/troublesome-peer.js';
import { until } from '../support/wait.js';

let real: PeerProcess;
beforeAll(async () => {
  real = await PeerProcess.start(temporaryDirectory('file'), { life: 'file' });
});

describe('once', () => {
  const ERROR = /^peersync: .+\.\n {2}.+\.\n$/m;

  it.concurrent('gives up on a peer that is away after a while, with exit code 4', async () => {
    const site = await Site.make(real, 'once-down');
    await site.peer.goDown();
    site.drop(...some('f'));
    const began = performance.now();
    const { code, stdout, stderr } = await site.command('once');
    expect(code).toBe(4);
    expect(performance.now() - began).toBeLessThan(30_000);
    expect(stdout).toContain('0 confirmed, 12 waiting, 0 quarantined');
    expect(stderr).toMatch(ERROR);
    expect(stderr).toMatch(/^peersync: The peer does not answer: .*connect ECONNREFUSED 127.0.0.1:\d+\.$/m);
    expect(stderr).toMatch(
      /^ {2}Check that the peer is running .* Nothing is lost: the next run goes on from here\.$/m,
    );
    await site.peer.comeUp();
    expect(await site.command('once')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('12 confirmed, 0 waiting'),
    });
    await site.expectAllInPeer();
  }, 60_000);

  it.concurrent('gives up on a peer that refuses the credentials, with exit code 1', async () => {
    const passwordFile = join(temporaryDirectory('file'), 'password');
    writeFileSync(passwordFile, 'wrong-password-of-the-admin', { mode: 0o600 });
    const auth = { username: 'admin', password: { file: passwordFile } };
    const site = await Site.make(real, 'once-denied', { auth });
    site.drop(...some('f'));
    const { code, stderr } = await site.command('once');
    expect(code).toBe(1);
    expect(stderr).toMatch(ERROR);
    expect(stderr).toMatch(/^peersync: The peer refuses the credentials: .*\(401\)\.$/m);
    expect(stderr).toMatch(/^ {2}Check peer.auth: the user name, and the password/m);
    expect(stderr + JSON.stringify(site.peer.calls)).not.toContain('wrong-password-of-the-admin');
    expect(
      site.peer.calls.filter(({ urls }) => urls.length > 0),
      'documents sent',
    ).toEqual([]);
  }, 60_000);

  it.concurrent('does not wait longer than it may for a peer that asks to wait', async () => {
    const site = await Site.make(real, 'once-busy');
    site.peer.behaviour = answering(503, 'closed for the night', { 'retry-after': '3600' });
    site.drop('a.txt');
    const { code, stderr } = await site.command('once', '--timeout', '5m');
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^peersync: The peer asks to wait for (1h|59m.*), which is longer than this run may take \(5m\)\.$/m,
    );
  }, 60_000);

  it.concurrent('tells at the end of its time what the peer’s trouble was', async () => {
    const site = await Site.make(real, 'once-failing');
    site.peer.behaviour = answering(500, 'java.lang.OutOfMemoryError');
    site.drop(...some('f'));
    const { code, stderr } = await site.command('once', '--timeout', '4s');
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^peersync: The peer answers with errors: .* failed \(500\); .*OutOfMemoryError\.$/m,
    );
  }, 60_000);
});

describe('check', () => {
  const CHECKS: readonly [name: string, behaviour: Behaviour | 'down', code: number, says: RegExp][] = [
    ['well', well, 0, /^ok +access: the peer lets us in and takes pushes$/m],
    ['down', 'down', 4, /^TROUBLE +peer: .* cannot be reached: connect ECONNREFUSED/m],
    ['silent', silent, 4, /^TROUBLE +peer: .* did not give an answer within 1000 ms/m],
    ['half', halfAnAnswer, 4, /^TROUBLE +peer: .* broke the connection in the middle of its answer/m],
    [
      'failing',
      answering(500, 'oops'),
      1,
      /^TROUBLE +peer: .* failed \(500\); the answer begins with: oops/m,
    ],
    [
      'busy',
      answering(429, '', { 'retry-after': '9' }),
      1,
      /^TROUBLE +peer: .* gets too many requests \(429\)/m,
    ],
    [
      'password',
      otherPassword,
      1,
      /^TROUBLE +access: .* did not accept the user name and the password \(401\)/m,
    ],
    ['another', answering(404, 'nginx'), 1, /^TROUBLE +pushing: .* has no such page \(404\)/m],
    ['binary', answering(200, BINARY), 1, /^TROUBLE +pushing: .*; the answer is not text/m],
    [
      'stack-trace',
      answering(200, STACK_TRACE),
      1,
      /^TROUBLE +pushing: .* answered a push with an error page/m,
    ],
  ];

  it.concurrent.each(CHECKS)(
    'tells a peer that is %s',
    async (name, behaviour, code, says) => {
      const site = await Site.make(real, `check-${name}`);
      if (behaviour === 'down') await site.peer.goDown();
      else site.peer.behaviour = behaviour;
      const checked = await site.command('check');
      expect(checked.stdout).toMatch(says);
      if (code !== 0) expect(checked.stdout).toMatch(/^TROUBLE .*\n {9}[A-Z].*\.$/m);
      expect(checked.code).toBe(code);
      expect(checked.stdout + checked.stderr).not.toMatch(/^\s+at /m);
    },
    60_000,
  );
});

describe('one bad file among good ones', () => {
  it.concurrent('that makes every push with it fail ends in quarantine with the peer’s own words, and is retried', async () => {
    const site = await Site.make(real, 'poison');
    site.peer.behaviour = whenPushed(site.url('bad.txt'), answering(500, 'java.lang.StackOverflowError'));
    site.drop(...some('good'), 'bad.txt', ...some('more'));
    const once = await site.command('once');
    expect(once.code).toBe(3);
    expect(once.stdout).toContain('24 confirmed, 0 waiting, 1 quarantined');
    expect(once.stderr).not.toContain('The peer answers with errors');
    expect(once.stderr).toMatch(
      /quarantined inbox\/bad.txt: .* failed \(500\); the answer begins with: java.lang.StackOverflowError\./,
    );
    const why = await site.command('why', site.path('bad.txt'));
    expect(why.stdout).toMatch(/^status +in quarantine/m);
    expect(why.stdout).toMatch(/^reason .*java.lang.StackOverflowError/m);
    expect((await site.command('once')).code).toBe(3);
    site.peer.behaviour = well;
    expect((await site.command('retry', site.path('bad.txt'))).stdout).toContain('1 items are pending again');
    expect(await site.command('once')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('25 confirmed'),
    });
    await site.expectAllInPeer();
  }, 90_000);

  it.concurrent('that the peer refuses in its answer ends in quarantine with the peer’s own words, and is retried', async () => {
    const site = await Site.make(real, 'refused');
    site.peer.behaviour = whenPushed(site.url('bad.txt'), async (call) => {
      const { status } = await call.forward();
      const items = call.urls.map((url, i) => {
        const isBad = url === site.url('bad.txt');
        return [
          `item-${i}`,
          { url, success: String(!isBad), message: isBad ? 'url is in the blacklist' : '' },
        ];
      });
      const body = Buffer.from(
        JSON.stringify({ count: String(items.length), successall: 'false', ...Object.fromEntries(items) }),
      );
      return { status, headers: { 'content-type': 'application/json' }, body };
    });
    site.drop(...some('good'), 'bad.txt', ...some('more'));
    const daemon = site.run();
    await daemon.confirms(24);
    await until(() => daemon.said.length > 0, 'the quarantine is said');
    expect(daemon.said).toEqual([
      expect.stringMatching(
        /^warn: quarantined inbox\/bad.txt: The peer refused it: url is in the blacklist\. Mend what/,
      ),
    ]);
    expect((await site.status()).quarantined).toMatchObject([{ file: 'inbox/bad.txt', code: 'REFUSED' }]);
    site.peer.behaviour = well;
    expect((await site.command('retry', site.path('bad.txt'))).stdout).toContain('1 items are pending again');
    await daemon.confirms(25);
    expect((await site.status()).items).toMatchObject({ confirmed: 25, quarantined: 0 });
    await site.expectAllInPeer();
    await daemon.stop();
  }, 90_000);
});
