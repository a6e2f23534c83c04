import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { whyText } from '../../src/commands/items.js';
import { statusText } from '../../src/commands/status.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { PeerProcess } from '../support/peer-process.js';
import {
  answering,
  type Behaviour,
  BINARY,
  halfAnAnswer,
  otherPassword,
  type Recorded,
  resetting,
  type ScriptedPeer,
  STACK_TRACE,
  silent,
  slow,
  well,
} from '../support/scripted-peer.js';
import { type Daemon, Site, some, TIMEOUTS } from '../support/site.js';
import { temporaryDirectory } from '../support/temp.js';
import { deferred, until } from '../support/wait.js';

// They mostly wait.
vi.setConfig({ maxConcurrency: 10 });

let real: PeerProcess;
beforeAll(async () => {
  real = await PeerProcess.start(temporaryDirectory('file'), { life: 'file' });
});

/** Most calls within any second. */
function mostInASecond(calls: readonly Recorded[]): number {
  return Math.max(0, ...calls.map(({ at }) => calls.filter((c) => c.at >= at && c.at < at + 1000).length));
}

describe.concurrent('once', () => {
  const ERROR = /^peersync: .+\.\n {2}.+\.\n$/m;

  it('gives up on a peer that is away after a while, with exit code 4', async () => {
    const site = await Site.make(real, 'once-down');
    await site.peer.goDown();
    site.drop(...some('f'));
    const began = performance.now();
    const { code, stdout, stderr } = await site.command('once');
    expect(code, stderr).toBe(4);
    // By itself it would take ten minutes.
    expect(performance.now() - began).toBeLessThan(120_000);
    expect(stdout).toContain('0 confirmed, 12 waiting, 0 quarantined');
    expect(stderr).toMatch(ERROR);
    expect(stderr).toMatch(/^peersync: The peer does not answer: .*connect ECONNREFUSED [\d.]+:\d+\.$/m);
    expect(stderr).toMatch(
      /^ {2}Check that the peer is running .* Nothing is lost: the next run goes on from here\.$/m,
    );
    await site.peer.comeUp();
    const again = await site.command('once');
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('12 confirmed, 0 waiting')]);
    await site.expectAllInPeer();
  });

  it('gives up on a peer that refuses the credentials, with exit code 1', async () => {
    const file = join(temporaryDirectory('file'), 'password');
    writeFileSync(file, 'wrong-password-of-the-admin', { mode: 0o600 });
    const site = await Site.make(real, 'once-denied', { auth: { username: 'admin', password: { file } } });
    site.drop(...some('f'));
    const { code, stderr } = await site.command('once');
    expect(code).toBe(1);
    expect(stderr).toMatch(ERROR);
    expect(stderr).toMatch(/^peersync: The peer refuses the credentials: .*\(401\)\.$/m);
    expect(stderr).toMatch(/^ {2}Check peer.auth: the user name, and the password/m);
    expect(stderr + JSON.stringify(site.peer.requests)).not.toContain('wrong-password-of-the-admin');
    expect(site.peer.requests.filter(({ urls }) => urls.length > 0)).toEqual([]);
  });

  it.each<[string, Behaviour, string, RegExp]>([
    [
      'asks to wait for longer',
      answering(503, 'closed for the night', { 'retry-after': '3600' }),
      '5m',
      /^peersync: The peer asks to wait for (1h|59m.*), which is longer than this run may take \(5m\)\.$/m,
    ],
    [
      'was in trouble all the time',
      answering(500, 'java.lang.OutOfMemoryError'),
      '10s',
      /^peersync: The peer answers with errors: .* failed \(500\); .*OutOfMemoryError\.$/m,
    ],
  ])('ends with exit code 1 and the words of a peer that %s', async (_, behaviour, timeout, says) => {
    const site = await Site.make(real, `once-${timeout}`);
    site.peer.behaviour = behaviour;
    site.drop(...some('f'));
    const { code, stderr } = await site.command('once', '--timeout', timeout);
    expect(code).toBe(1);
    expect(stderr).toMatch(says);
  });
});

interface Trouble {
  readonly name: string;
  readonly begin: (peer: ScriptedPeer) => void | Promise<void>;
  /** The one line that is logged of it. */
  readonly says: RegExp;
  readonly over: RegExp | undefined;
}

/** A duration of less than an hour. */
const TIME = '\\d+(ms|s|m( \\d+s)?)';
const AGAIN = new RegExp(`^info: The peer answers again after ${TIME}; (1 try|\\d+ tries)\\.$`);
const WAITS = `Work waits and nothing is lost; next try in ${TIME}\\.$`;
/** Long enough for a peer that is well on most machines, and not too long to wait for one that is not. */
const SILENCE = { ...TIMEOUTS, headers: '3s' };

function trouble(name: string, behaviour: Behaviour, says: string): Trouble {
  const begin = (peer: ScriptedPeer) => {
    peer.behaviour = behaviour;
  };
  return { name, begin, says: new RegExp(`^warn: The peer ${says}.*${WAITS}`), over: AGAIN };
}

const TROUBLES: readonly Trouble[] = [
  {
    ...trouble(
      'down',
      well,
      'does not answer: .* cannot be reached: connect ECONNREFUSED [\\d.]+:\\d+\\. Check that',
    ),
    begin: (peer) => peer.goDown(),
  },
  trouble(
    'silent',
    silent,
    'does not answer: .* did not give an answer within 3000 ms\\. The peer is slow or hangs',
  ),
  trouble(
    'resetting',
    resetting,
    'does not answer: .* broke the connection without an answer: read ECONNRESET\\. Check',
  ),
  trouble(
    'half',
    halfAnAnswer,
    'does not answer: .* in the middle of its answer: other side closed\\. Check',
  ),
  trouble(
    'failing',
    answering(500, 'java.lang.OutOfMemoryError: Java heap space'),
    'answers with errors: .* failed \\(500\\); the answer begins with: java.lang.OutOfMemoryError: Java heap space\\.',
  ),
  trouble('binary', answering(200, BINARY), 'answers with errors: .*; the answer is not text\\. Check'),
  trouble('empty', answering(200), 'answers with errors: .* gave an empty answer\\. Check that peer.url is'),
  trouble(
    'braces',
    answering(200, '{}'),
    'answers with errors: .* gave an empty answer; the answer begins with: {}\\.',
  ),
  trouble(
    'stack-trace',
    answering(200, STACK_TRACE, { 'content-type': 'text/html' }),
    'answers with errors: .* error page.*; the answer begins with: .*NullPointerException.*…',
  ),
  trouble(
    'another-server',
    answering(404, '<h1>404 Not Found</h1>nginx'),
    'answers with errors: .* has no such page \\(404\\);.*check peer.url',
  ),
  trouble(
    'other-password',
    otherPassword,
    'refuses the credentials: .* did not accept the user name and the password \\(401\\)\\. Check peer.auth',
  ),
  {
    ...trouble('busy', answering(429, 'slow down', { 'retry-after': '2' }), ''),
    says: /^info: The peer asks to wait: .* gets too many requests \(429\); the answer begins with: slow down\. Going on in 2s\.$/,
    over: undefined,
  },
];

/** The names of those that one daemon goes through, one after the other. */
const ROUNDS = [
  'down resetting half',
  'silent',
  'failing binary empty',
  'braces stack-trace another-server',
  'other-password busy',
];

/** The trouble begins while a daemon works, lasts until it was tried and reported as it should be, and is over. */
async function goThrough(site: Site, daemon: Daemon, { name, begin, says, over }: Trouble): Promise<void> {
  const { peer } = site;
  const [confirmed, saidBefore] = [daemon.confirmed, daemon.said.length];
  const said = () => daemon.said.slice(saidBefore);
  // It begins just when a push was answered, so that accepted items are caught in it too.
  const accepted = deferred();
  peer.behaviour = async (call) => {
    const answer = await call.forward();
    if (call.urls.length > 0) call.response.on('finish', accepted.resolve);
    return answer;
  };
  site.drop(...some(`${name}-amid`));
  await accepted.promise;
  await begin(peer);
  const calls = peer.requests.length;
  site.drop(...some(`${name}-after`));
  const last = `${name}-after3.txt`;
  await until(() => said().length > 0, `${name}: something is said`);
  await until(async () => (await site.why(last)).verdict === 'pending', `${name}: the file is seen`);

  const triesAt = async () => (await site.status()).peer.queue?.circuit.tries ?? 0;
  const tries = await triesAt();
  const saidAt = peer.requests.length;
  const end = performance.now() + 1_500;
  const isTriedAgain = async () => (await triesAt()) > tries || peer.requests.length > saidAt + 1;
  await until(isTriedAgain, `${name}: tried again`);
  // A rate needs a time to be seen in.
  await until(() => performance.now() > end, 'a moment passed');
  expect(said()).toEqual([expect.stringMatching(says)]);
  const pushes = (since: number) => peer.requests.slice(since).filter(({ path }) => path.includes('push_p'));
  expect(mostInASecond(peer.requests.slice(calls)), 'calls in a second').toBeLessThanOrEqual(48);
  expect(mostInASecond(pushes(calls)), 'pushes in a second').toBeLessThanOrEqual(12);
  expect(mostInASecond(pushes(saidAt)), 'pushes in a second, once it is said').toBeLessThan(5);
  if (said()[0]?.includes('does not answer'))
    expect(mostInASecond(peer.requests.slice(saidAt)), 'calls in a second, once it is said').toBeLessThan(7);

  // Between two waits that a peer asks for it is asked, and a file may be on its way.
  const reported = new RegExp(
    name === 'busy'
      ? `asks to wait, for ${TIME} more`
      : `, for ${TIME}  http.*\n.* http.*\n.*\n.*the next try: (20|now)`,
  );
  await until(async () => {
    const status = await site.status();
    expect(status.items).toMatchObject({ quarantined: 0 });
    return reported.test(statusText(status, Date.now()).slice(0, 6).join('\n'));
  }, `${name}: status has it`);
  await until(async () => {
    const why = await site.why(last);
    expect(whyText(why, Date.now()).join('\n')).toMatch(/^status +pending/m);
    return /^It waits( for the peer, which |, for the peer asked)/.test(why.next);
  }, `${name}: why has it`);

  peer.behaviour = well;
  // It is found out by itself that the peer is back, and sooner where a person asks for another try.
  if (name === 'down') await peer.comeUp();
  else await site.retry();
  await daemon.confirms(confirmed + 24);
  expect((await site.status()).items).toMatchObject({
    confirmed: confirmed + 24,
    pending: 0,
    quarantined: 0,
  });
  expect(said().slice(1)).toEqual(over === undefined ? [] : [expect.stringMatching(over)]);
}

describe.concurrent('a peer in trouble', () => {
  it.each(ROUNDS)(
    '(%s) is logged once, waited for without a storm of requests, and then everything is confirmed',
    async (names) => {
      const timeouts = names === 'silent' ? SILENCE : TIMEOUTS;
      const site = await Site.make(real, names.replaceAll(' ', '-'), { ...real.section(), timeouts });
      site.drop(...some('before'));
      const daemon = site.run();
      await daemon.confirms(12);
      for (const trouble of TROUBLES.filter(({ name }) => names.split(' ').includes(name)))
        await goThrough(site, daemon, trouble);
      await site.expectAllInPeer();
      await daemon.stop();
    },
  );

  it('that is only slow is waited for, and nothing is said', async () => {
    // Much slower than usual, and far from too slow, also on a machine that is busy.
    const site = await Site.make(real, 'slow');
    site.peer.behaviour = slow(600);
    site.drop(...some('f'));
    const daemon = site.run();
    await daemon.confirms(12);
    expect(daemon.said).toEqual([]);
    await daemon.stop();
  });

  it('that is killed and restarted in the middle of the work loses nothing', async () => {
    const directory = temporaryDirectory('file');
    const first = await PeerProcess.start(directory, { life: 'file' });
    const config = writeConfig(temporaryDirectory('file'), {
      peer: { ...first.section(), timeouts: TIMEOUTS },
    });
    const inbox = join(config, '../inbox');
    // Of 400 files at once not each has a line otherwise.
    const daemon = new Running(['run', '-c', config, '--log-level', 'debug'], { life: 'file' });
    await daemon.says('"event":"watching"');
    for (let i = 0; i < 400; i += 1) writeFileSync(join(inbox, `${i}.txt`), `text ${i}`);
    const confirmed = () => daemon.stdout.split('"event":"confirmed"').length - 1;
    await until(() => confirmed() > 0, 'the first are confirmed');
    await first.running.kill('SIGKILL');
    writeFileSync(join(inbox, 'late.txt'), 'late');
    await daemon.says('The peer does not answer');
    const second = await PeerProcess.start(directory, {
      port: Number(new URL(first.url).port),
      life: 'file',
    });
    await until(() => confirmed() === 401, 'all are confirmed');
    expect((await second.search('late')).total).toBe(1);
    expect(daemon.stdout.match(/"level":[45]0/g)).toHaveLength(1);
    expect((await daemon.kill('SIGTERM')).code).toBe(0);
  });
});

describe.concurrent('status and why', () => {
  it('tell the trouble, what to do and when the next try is, to a person at a terminal', async () => {
    const site = await Site.make(real, 'told');
    await site.peer.goDown();
    site.drop('a.txt');
    const daemon = site.run();
    await until(() => daemon.said.length > 0, 'the trouble is said');
    await until(async () => (await site.why('a.txt')).verdict === 'pending', 'the file is seen');
    const [status, why] = await Promise.all([
      site.command('status'),
      site.command('why', site.path('a.txt')),
    ]);
    expect(status.stdout).toMatch(
      new RegExp(`does not answer, for ${TIME}  http.*\n.*ECONNREFUSED.*\n +Check that the peer is running`),
    );
    expect(status.stdout).toMatch(
      /Work waits and nothing is lost\. Tried \d+ times?; the next try: (20.*\(\w+ \d|now)/,
    );
    expect(why.stdout).toMatch(
      /^next +It waits for the peer, which does not answer: .*(Next try: 20.*\(\w+ \d|It is tried again now|It is due now)/m,
    );
    await daemon.stop();
  });
});
