import { expect, it } from 'vitest';
import { STOP_GRACE_MS } from '../../src/daemon/parts.js';
import { State } from '../../src/state/state.js';
import { Random } from '../support/random.js';
import { type Behaviour, well, when } from '../support/scripted-peer.js';
import { until } from '../support/wait.js';
import { Ledger } from './ledger.js';
import { inWords, Passing, randomMoment } from './moments.js';
import { expectShown, isConfirmed, settingBehindProxy, urlOf } from './setting.js';

const STOPS = 5;
/** A good deal more than the daemon gives its requests, and less than it would wait for an answer. */
const GENTLY_MS = 20_000;

/** The URLs of items whose push left and of which no answer is recorded. */
async function inDoubt(stateDirectory: string): Promise<string[]> {
  const { entries } = await State.read(stateDirectory);
  return [...entries.all()].flatMap((entry) =>
    entry.status === 'pending' && entry.doubt !== undefined ? [entry.url] : [],
  );
}

it(`a daemon that is asked to stop, ${STOPS} times at random moments, ends what is under way and pushes nothing twice`, async () => {
  const { peer, proxy, setting } = await settingBehindProxy();
  const { random, user, stateDirectory } = setting;
  const slowness = new Random(random.seed + 2);
  const passing = new Passing(proxy, () => slowness.between(0, 300));
  const ledger = new Ledger();

  user.work();
  for (let stop = 1; stop <= STOPS; stop += 1) {
    const moment = randomMoment(random);
    setting.note(inWords(moment));
    const daemon = setting.start();
    await passing.comes(moment, daemon);
    await daemon.says('watching');
    const asked = performance.now();
    expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(performance.now() - asked).toBeLessThan(GENTLY_MS);
    expect(await inDoubt(stateDirectory)).toEqual([]);
    expect(ledger.close(proxy.requests, await setting.list())).toEqual([]);
  }
  expect(ledger.close(proxy.requests, await setting.settle())).toEqual([]);
  await expectShown(peer, user);
  expect([...ledger.again]).toEqual([]);
}, 600_000);

/** A daemon whose pushes the peer has taken, and whose answers do not come. */
async function unanswered() {
  const { proxy, setting } = await settingBehindProxy();
  const urls = ['one/1.txt', 'one/2.txt', 'two/3.txt'].map((path) => urlOf(setting.user.write(path)));
  const taken: Behaviour = async (call) => void (await call.forward());
  proxy.behaviour = when(({ items }) => items.length > 0, taken);
  const daemon = setting.start();
  const arrived = () =>
    proxy.requests
      .filter(({ status }) => status === 200)
      .flatMap(({ items }) => items.map(({ url }) => url))
      .sort();
  await until(() => arrived().length >= urls.length, 'the peer has taken all');
  void daemon.ended.then(() => {
    proxy.behaviour = well;
  });
  return { setting, daemon, urls, arrived };
}

it.each([
  ['asked to stop', false],
  ['asked twice', true],
])(
  'a daemon that is %s does not wait for ever for an answer, and looks afterwards what became of the push',
  async (_, twice) => {
    const { setting, daemon, urls, arrived } = await unanswered();
    if (twice) daemon.child.kill('SIGTERM');
    if (twice) await daemon.says('stopping');
    const asked = performance.now();
    const how = twice ? { code: null, signal: 'SIGTERM' } : { code: 0, signal: null, stderr: '' };
    expect(await daemon.kill('SIGTERM')).toMatchObject(how);
    expect(performance.now() - asked).toBeLessThan(twice ? STOP_GRACE_MS : GENTLY_MS);
    expect((await inDoubt(setting.stateDirectory)).sort()).toEqual(urls);
    expect((await setting.settle()).filter(isConfirmed).length).toBe(urls.length);
    expect(arrived()).toEqual(urls);
  },
  300_000,
);
