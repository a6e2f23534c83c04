import { expect, it } from 'vitest';
import { STOP_GRACE_MS } from '../../src/daemon/shutdown.js';
import { State } from '../../src/state/state.js';
import { Random } from '../support/random.js';
import { type Behaviour, well, when } from '../support/scripted-peer.js';
import type { Site } from '../support/site.js';
import { until } from '../support/wait.js';
import { busySite, inWords, isConfirmed, Ledger, Passing, randomMoment, settle } from './busy.js';

const STOPS = 5;
/**
 * A good deal more than the daemon gives its requests, and less than it would wait for an answer.
 */
const GENTLY_MS = 20_000;

/** The URLs of items whose push left and of which no answer is recorded. */
async function inDoubt({ stateDirectory }: Site): Promise<string[]> {
  const { entries } = await State.read(stateDirectory);
  return [...entries.all()].flatMap((entry) =>
    entry.status === 'pending' && entry.inFlight !== undefined ? [entry.url] : [],
  );
}

it(`a daemon that is stopped ${STOPS} times at random finishes the requests in flight and pushes nothing twice`, async () => {
  const { site, random, user, note } = await busySite();
  const slowness = new Random(random.seed + 2);
  const passing = new Passing(site.proxy, () => slowness.between(0, 300));
  const ledger = new Ledger();

  user.work();
  for (let stop = 1; stop <= STOPS; stop += 1) {
    const moment = randomMoment(random);
    note(inWords(moment));
    const daemon = site.spawn();
    await passing.comes(moment, daemon);
    await daemon.says('watching');
    const asked = performance.now();
    await site.stop();
    expect(performance.now() - asked).toBeLessThan(GENTLY_MS);
    expect(await inDoubt(site)).toEqual([]);
    expect(ledger.close(site.proxy.requests, await site.list())).toEqual([]);
  }
  expect(ledger.close(site.proxy.requests, await settle(site, user))).toEqual([]);
  await site.expectAllInPeer();
  expect([...ledger.again]).toEqual([]);
}, 600_000);

it.each([
  ['asked to stop', false],
  ['asked twice', true],
])(
  'a daemon that is %s does not wait for an answer without limit, and looks the push up after the restart',
  async (_, twice) => {
    const { site, user } = await busySite();
    const urls = ['one/1.txt', 'one/2.txt', 'two/3.txt'].map((path) => site.url(user.write(path)));
    // The peer takes it, and does not answer.
    const taken: Behaviour = async (call) => void (await call.forward());
    site.proxy.behaviour = when(({ items }) => items.length > 0, taken);
    const daemon = site.spawn();
    const arrived = () =>
      site.proxy.pushes
        .filter(({ status }) => status === 200)
        .flatMap((push) => push.urls)
        .sort();
    await until(() => arrived().length >= urls.length, 'the peer has taken all');
    if (twice) daemon.child.kill('SIGTERM');
    if (twice) await daemon.says('stopping');
    const asked = performance.now();
    const how = twice ? { code: null, signal: 'SIGTERM' } : { code: 0, signal: null, stderr: '' };
    expect(await daemon.kill('SIGTERM')).toMatchObject(how);
    expect(performance.now() - asked).toBeLessThan(twice ? STOP_GRACE_MS : GENTLY_MS);
    site.proxy.behaviour = well;
    expect((await inDoubt(site)).sort()).toEqual(urls);
    expect((await settle(site, user)).filter(isConfirmed).length).toBe(urls.length);
    expect(arrived()).toEqual(urls);
  },
  300_000,
);
