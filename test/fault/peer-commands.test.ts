import { beforeAll, describe, expect, it } from 'vitest';
import type { Finding } from '../../src/commands/check.js';
import { checkPeer } from '../../src/commands/check.js';
import { loadConfig } from '../../src/config/load.js';
import { silentLogger } from '../../src/lib/logger.js';
import { PeerProcess } from '../support/peer-process.js';
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
} from '../support/scripted-peer.js';
import { Site, some, TIMEOUTS } from '../support/site.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

let real: PeerProcess;
beforeAll(async () => {
  real = await PeerProcess.start(temporaryDirectory('file'), { life: 'file' });
});

describe.concurrent('check', () => {
  const CHECKS: readonly [
    name: string,
    behaviour: Behaviour | 'down',
    code: number | undefined,
    says: RegExp,
  ][] = [
    ['well', well, undefined, /^access: the peer lets us in and takes pushes$/],
    ['down', 'down', 4, /^peer: .* cannot be reached: connect ECONNREFUSED/],
    ['silent', silent, 4, /^peer: .* did not give an answer within 1000 ms/],
    ['half', halfAnAnswer, 4, /^peer: .* broke the connection in the middle of its answer/],
    ['failing', answering(500, 'oops'), 1, /^peer: .* failed \(500\); the answer begins with: oops/],
    ['busy', answering(429, '', { 'retry-after': '9' }), 1, /^peer: .* gets too many requests \(429\)/],
    ['password', otherPassword, 1, /^access: .* did not accept the user name and the password \(401\)/],
    ['another', answering(404, 'nginx'), 1, /^dialect: .* has neither .*yacydoc\.xml nor .*peerdoc\.html/],
    ['binary', answering(200, BINARY), 1, /^dialect: .*; the answer is not text/],
    ['stack-trace', answering(200, STACK_TRACE), 1, /^dialect: .* shows a document in neither/],
  ];

  it.each(CHECKS)('tells a peer that is %s, and what to do', async (name, behaviour, code, says) => {
    const patience = name === 'silent' ? { timeouts: { ...TIMEOUTS, headers: '1s' } } : {};
    const site = await Site.make(real, `check-${name}`, { ...real.section(), ...patience });
    if (behaviour === 'down') await site.peer.goDown();
    else site.peer.behaviour = behaviour;
    const { config } = await loadConfig(site.config);
    const findings: Finding[] = [];
    const isUsable = await checkPeer(config, silentLogger, (finding) => findings.push(finding));
    expect(isUsable).toBe(code === undefined);
    const last = findings.at(-1);
    expect(`${last?.check}: ${last?.message}`).toMatch(says);
    expect(last).toMatchObject(
      code === undefined ? { ok: true } : { ok: false, exitCode: code, hint: expect.stringMatching(/\.$/) },
    );
    expect(findings.slice(0, -1).every(({ ok }) => ok)).toBe(true);
    expect(JSON.stringify(findings)).not.toMatch(/\n\s+at /);
  });

  it('ends with the exit code of the trouble, and prints what to do', async () => {
    const site = await Site.make(real, 'check-code');
    expect(await site.command('check')).toMatchObject({ code: 0 });
    await site.peer.goDown();
    const { code, stdout } = await site.command('check');
    expect(code).toBe(4);
    expect(stdout).toMatch(/^TROUBLE +peer: .*ECONNREFUSED.*\n {9}Check that the peer is running .*\.$/m);
  }, 240_000);
});

describe.concurrent('one bad file among good ones', () => {
  it('that makes every push with it fail ends in quarantine with the peer’s own words, and is retried', async () => {
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
    expect((await site.command('retry', site.path('bad.txt'))).stdout).toContain('1 item is pending again.');
    expect(await site.command('once')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('25 confirmed'),
    });
    await site.expectAllInPeer();
  }, 240_000);

  it('that the peer refuses in its answer ends in quarantine with the peer’s own words, and is retried', async () => {
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
    expect((await site.command('retry', site.path('bad.txt'))).stdout).toContain('1 item is pending again.');
    await daemon.confirms(25);
    expect((await site.status()).items).toMatchObject({ confirmed: 25, quarantined: 0 });
    await site.expectAllInPeer();
    await daemon.stop();
  }, 240_000);
});
