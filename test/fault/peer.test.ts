import { writeFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { checkPeer } from '../../src/commands/check-peer.js';
import type { Finding } from '../../src/commands/finding.js';
import { loadConfig } from '../../src/config/load.js';
import { silentLogger } from '../../src/lib/logger.js';
import { PeerProcess } from '../support/peer-process.js';
import {
  answering,
  type Behaviour,
  halfAnAnswer,
  otherPassword,
  type Recorded,
  STACK_TRACE,
  silent,
  slow,
  well,
} from '../support/scripted-peer.js';
import { type Daemon, Site } from '../support/site.js';
import { temporaryDirectory } from '../support/temp.js';
import { deferred, until } from '../support/wait.js';

// They mostly wait.
vi.setConfig({ maxConcurrency: 10 });

/** Longer than a peer takes that is well, also on a machine that is busy. */
const TIMEOUTS = { connect: '20s', headers: '20s', body: '20s', total: '40s' };

async function patient(timeouts: object = TIMEOUTS): Promise<Site> {
  const site = await Site.begin({}, 'file');
  site.configure({ peer: site.section({ timeouts }) });
  return site;
}

/** In detail, for of many files at once not each has a line otherwise. */
const inDetail = (site: Site): Daemon => site.spawn('--log-level', 'debug');

/** Changes the behaviour of the peer. */
async function begins({ proxy }: Site, behaviour: Behaviour | 'down'): Promise<void> {
  if (behaviour === 'down') await proxy.goDown();
  else proxy.behaviour = behaviour;
}

describe.concurrent('check', () => {
  const CHECKS: readonly [
    name: string,
    behaviour: Behaviour | 'down',
    code: number | undefined,
    says: RegExp,
  ][] = [
    ['well', well, undefined, /^access: the peer lets us in and takes pushes$/],
    ['down', 'down', 4, /^peer: .* cannot be reached: connect ECONNREFUSED/],
    [
      'failing',
      answering(500, 'oops'),
      1,
      /^peer: .* failed \(500\); the answer begins with: oops/,
    ],
    [
      'password',
      otherPassword,
      1,
      /^access: .* did not accept the user name and the password \(401\)/,
    ],
    [
      'another',
      answering(404, 'nginx'),
      1,
      /^dialect: .* has no page of a peer .*yacydoc\.xml.*peerdoc\.html/,
    ],
    ['stack-trace', answering(200, STACK_TRACE), 1, /^dialect: .* shows a document in none/],
  ];

  it.each(CHECKS)('reports a peer that is %s, with a hint', async (_, behaviour, code, says) => {
    const site = await patient();
    await begins(site, behaviour);
    const { config } = await loadConfig(site.config);
    const findings: Finding[] = [];
    const isUsable = await checkPeer(config, silentLogger, (finding) => findings.push(finding));
    expect(isUsable).toBe(code === undefined);
    const last = findings.at(-1);
    expect(`${last?.check}: ${last?.message}`).toMatch(says);
    expect(last).toMatchObject(
      code === undefined
        ? { ok: true }
        : { ok: false, exitCode: code, hint: expect.stringMatching(/\.$/) },
    );
    expect(findings.slice(0, -1).every(({ ok }) => ok)).toBe(true);
    expect(JSON.stringify(findings)).not.toMatch(/\n\s+at /);
  });

  it('ends with the exit code of the failure, and prints the hint', async () => {
    const site = await patient();
    expect(await site.run('check')).toMatchObject({ code: 0 });
    await site.proxy.goDown();
    const { code, stdout } = await site.run('check');
    expect(code).toBe(4);
    expect(stdout).toMatch(
      /^FAILED +peer: .*ECONNREFUSED.*\n {8}Check that the peer is running .*\.$/m,
    );
  });
});

describe.concurrent('once', () => {
  it('gives up by itself on an unreachable peer, with exit code 4, and loses nothing', async () => {
    const site = await patient();
    await site.proxy.goDown();
    site.dropSome('f');
    const { code, stdout, stderr } = await site.run('once');
    expect(code, stderr).toBe(4);
    expect(stdout).toContain('0 confirmed, 12 waiting, 0 quarantined');
    expect(stderr).toMatch(
      /^peersync: The peer does not answer: .*ECONNREFUSED [\d.]+:\d+\.\n {2}Check that the peer is running .* Nothing is lost: the next run goes on from here\.$/m,
    );
    await site.proxy.comeUp();
    const again = await site.run('once');
    expect([again.code, again.stdout]).toEqual([
      0,
      expect.stringContaining('12 confirmed, 0 waiting'),
    ]);
    await site.expectAllInPeer();
  });

  it('gives up on a peer that refuses the credentials, with exit code 1', async () => {
    const site = await patient();
    const file = site.path('password');
    writeFileSync(file, 'wrong-password-of-the-admin', { mode: 0o600 });
    site.configure({ peer: site.section({ auth: { username: 'admin', password: { file } } }) });
    site.dropSome('f');
    const { code, stderr } = await site.run('once');
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^peersync: The peer refuses the credentials: .*\(401\)\.\n {2}Check peer.auth: the user name, and the password/m,
    );
    expect(stderr + JSON.stringify(site.proxy.requests)).not.toContain(
      'wrong-password-of-the-admin',
    );
    expect(site.proxy.pushes).toEqual([]);
  });

  it.each<[string, Behaviour, string, RegExp]>([
    [
      'asks to wait for longer',
      answering(503, 'closed for the night', { 'retry-after': '3600' }),
      '5m',
      /^peersync: The peer asks to wait for (1h|59m.*), which is longer than this run may take \(5m\)\.$/m,
    ],
    [
      'failed all the time',
      answering(500, 'java.lang.OutOfMemoryError'),
      '30s',
      /^peersync: The peer answers with errors: .* failed \(500\); .*OutOfMemoryError\.$/m,
    ],
  ])(
    'ends with exit code 1 and the message of a peer that %s',
    async (_, behaviour, timeout, says) => {
      const site = await patient();
      site.proxy.behaviour = behaviour;
      site.dropSome('f');
      const { code, stderr } = await site.run('once', '--timeout', timeout);
      expect(code).toBe(1);
      expect(stderr).toMatch(says);
    },
  );
});

/** A duration of less than an hour. */
const TIME = '\\d+(ms|s|m( \\d+s)?)';
const AGAIN = new RegExp(`^info: The peer answers again after ${TIME}; (1 try|\\d+ tries)\\.$`);
const ASKS_TO_WAIT =
  'asks to wait: .* gets too many requests \\(429\\); the answer begins with: slow down\\.';

interface Trouble {
  readonly behaviour: Behaviour | 'down';
  /** The one line that is logged of it: `The peer …`. */
  readonly says: string;
}

/** The failures that differ in their log lines, counts or waits. */
const FAILURES: Readonly<Record<string, Trouble>> = {
  down: {
    behaviour: 'down',
    // Requests in flight lose their connection.
    says: 'does not answer: .* (cannot be reached: connect ECONNREFUSED [\\d.]+:\\d+|broke the connection without an answer: .*)\\. Check that',
  },
  silent: {
    behaviour: silent,
    says: 'does not answer: .* did not give an answer within 6000 ms\\. The peer is slow or hangs',
  },
  half: {
    behaviour: halfAnAnswer,
    says: 'does not answer: .* in the middle of its answer: other side closed\\. Check',
  },
  failing: {
    behaviour: answering(500, 'java.lang.OutOfMemoryError'),
    says: 'answers with errors: .* failed \\(500\\); the answer begins with: java.lang.OutOfMemoryError\\.',
  },
  empty: {
    behaviour: answering(200),
    says: 'answers with errors: .* gave an empty answer\\. Check that peer.url is',
  },
  stackTrace: {
    behaviour: answering(200, STACK_TRACE, { 'content-type': 'text/html' }),
    says: 'answers with errors: .* error page.*; the answer begins with: .*NullPointerException.*…',
  },
  anotherServer: {
    behaviour: answering(404, '<h1>404 Not Found</h1>nginx'),
    says: 'answers with errors: .* has no such page \\(404\\);.*check peer.url',
  },
  otherPassword: {
    behaviour: otherPassword,
    says: 'refuses the credentials: .* did not accept the user name and the password \\(401\\)\\. Check peer.auth',
  },
  busy: { behaviour: answering(429, 'slow down', { 'retry-after': '2' }), says: ASKS_TO_WAIT },
};

/** The names of those that one daemon goes through, one after the other. */
const ROUNDS = [
  'down half',
  'silent',
  'failing empty',
  'stackTrace anotherServer',
  'otherPassword busy',
];

/** Most calls within any second. */
function mostInASecond(calls: readonly Recorded[]): number {
  return Math.max(
    0,
    ...calls.map(({ at }) => calls.filter((c) => c.at >= at && c.at < at + 1000).length),
  );
}

/**
 * Makes the peer fail while a daemon works, waits until the failure was retried and reported, and
 * ends it.
 */
async function goThrough(site: Site, name: string): Promise<void> {
  const { daemon, proxy } = site;
  const { behaviour, says } = FAILURES[name] ?? { behaviour: well, says: '' };
  const isBusy = says === ASKS_TO_WAIT;
  const [confirmed, saidBefore] = [daemon.confirmed, daemon.said.length];
  const said = () => daemon.said.slice(saidBefore);
  // It begins just when a push was answered, so that accepted items are caught in it too.
  const accepted = deferred();
  proxy.behaviour = async (call) => {
    const answer = await call.forward();
    if (call.urls.length > 0) call.response.on('finish', accepted.resolve);
    return answer;
  };
  site.dropSome(`${name}-amid`);
  await accepted.promise;
  await begins(site, behaviour);
  const calls = proxy.requests.length;
  const [last = ''] = site.dropSome(`${name}-after`);
  await until(() => said().length > 0, `${name}: something is said`);
  await site.becomes(last, 'pending');

  const triesAt = async () => (await site.status()).peer.queue?.circuit.tries ?? 0;
  const tries = await triesAt();
  const saidAt = proxy.requests.length;
  const end = performance.now() + 1_500;
  const isTriedAgain = async () => (await triesAt()) > tries || proxy.requests.length > saidAt + 1;
  await until(isTriedAgain, `${name}: tried again`);
  // A rate needs a time to be seen in.
  await until(() => performance.now() > end, 'a moment passed');
  const line = isBusy
    ? `^info: The peer ${says} Going on in 2s\\.$`
    : `^warn: The peer ${says}.*Work waits and nothing is lost; next try in ${TIME}\\.$`;
  expect(said()).toEqual([expect.stringMatching(new RegExp(line))]);
  const pushes = (since: number) =>
    proxy.requests.slice(since).filter(({ path }) => path.includes('push_p'));
  expect(mostInASecond(proxy.requests.slice(calls)), 'calls in a second').toBeLessThanOrEqual(48);
  expect(mostInASecond(pushes(calls)), 'pushes in a second').toBeLessThanOrEqual(12);
  expect(mostInASecond(pushes(saidAt)), 'pushes in a second, once it is said').toBeLessThan(5);
  if (says.startsWith('does not answer'))
    expect(
      mostInASecond(proxy.requests.slice(saidAt)),
      'calls in a second, once it is said',
    ).toBeLessThan(7);

  // Between two waits that a peer asks for it is asked, and a file may be on its way.
  const reported = new RegExp(
    isBusy
      ? `asks to wait, for ${TIME} more`
      : `, for ${TIME}  http.*\\n.* http.*\\n[\\s\\S]* Work waits and nothing is lost\\. Tried \\d+ (time|times); the next try: (20.*\\(\\w+ \\d|now)`,
  );
  await until(async () => {
    expect((await site.status()).items).toMatchObject({ quarantined: 0 });
    return reported.test((await site.run('status')).stdout);
  }, `${name}: status has it`);
  const isWaiting =
    /^status +pending[\s\S]*^next +It waits( for the peer, which |, for the peer asked)/m;
  const hasWhy = async () => isWaiting.test((await site.run('why', last)).stdout);
  await until(hasWhy, `${name}: why has it`);

  proxy.behaviour = well;
  // It is found out by itself that the peer is back, and sooner where a person asks for another
  // try.
  if (behaviour === 'down') await proxy.comeUp();
  else await site.ask('retry', { all: true });
  await daemon.confirms(confirmed + 24);
  const items = { confirmed: confirmed + 24, pending: 0, quarantined: 0 };
  expect((await site.status()).items).toMatchObject(items);
  expect(said().slice(1)).toEqual(isBusy ? [] : [expect.stringMatching(AGAIN)]);
}

describe.concurrent('a failing peer', () => {
  it.each(ROUNDS)(
    '(%s) is logged once, gets few requests, and everything is confirmed afterwards',
    async (names) => {
      // Long enough for a peer that is well on most machines, and not too long to wait for one that
      // is not.
      const site = await patient(names === 'silent' ? { ...TIMEOUTS, headers: '6s' } : TIMEOUTS);
      site.dropSome('before');
      await inDetail(site).confirms(12);
      for (const name of names.split(' ')) await goThrough(site, name);
      await site.expectAllInPeer();
      await site.stop();
    },
  );

  it('that is only slow causes no log lines', async () => {
    // Much slower than usual, and far from too slow, also on a machine that is busy.
    const site = await patient();
    site.proxy.behaviour = slow(600);
    site.dropSome('f');
    const daemon = inDetail(site);
    await daemon.confirms(12);
    expect(daemon.said).toEqual([]);
    await site.stop();
  });

  it('that is killed and restarted during the work loses nothing', async () => {
    const data = temporaryDirectory('file');
    const first = await PeerProcess.start(data, { life: 'file' });
    const site = await Site.begin({ peer: { ...first.section(), timeouts: TIMEOUTS } }, 'file');
    const daemon = inDetail(site);
    await daemon.says('"event":"watching"');
    for (let i = 0; i < 400; i += 1) site.drop(`inbox/${i}.txt`);
    await until(() => daemon.confirmed > 0, 'the first are confirmed');
    await first.running.kill('SIGKILL');
    site.drop('inbox/late.txt');
    await daemon.says('The peer does not answer');
    const port = Number(new URL(first.url).port);
    const second = await PeerProcess.start(data, { port, life: 'file' });
    await daemon.confirms(401);
    await site.expectAllInPeer(second);
    expect(daemon.lines.filter(({ level }) => level >= 40)).toHaveLength(1);
    await site.stop();
  });
});
