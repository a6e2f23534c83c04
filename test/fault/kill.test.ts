import { expect, it } from 'vitest';
import { Ledger } from './ledger.js';
import { inWords, Passing, randomMoment } from './moments.js';
import { expectShown, isConfirmed, type Listed, settingBehindProxy } from './setting.js';

const CRASHES = 25;

it(`a daemon that is killed ${CRASHES} times at random moments loses nothing, claims no confirmation, and pushes a version once a life at most`, async () => {
  const { peer, proxy, setting } = await settingBehindProxy();
  const passing = new Passing(proxy);
  const { random, user } = setting;
  const ledger = new Ledger();
  const checked = new Set<string>();

  const expectTrue = async (listed: readonly Listed[]) => {
    expect(ledger.close(proxy.requests, listed)).toEqual([]);
    for (const { url = '', sha256 = '' } of listed.filter(isConfirmed)) {
      const version = `${url} ${sha256}`;
      if (checked.has(version)) continue;
      // The peer may have got it since: what it had shown until then counts as well.
      expect(passing.shown).toContain(version);
      expect(await peer.peerdoc(url)).toMatchObject({ url, digest: sha256 });
      checked.add(version);
    }
  };

  user.work();
  for (let crash = 1; crash <= CRASHES; crash += 1) {
    const moment = randomMoment(random);
    setting.note(inWords(moment));
    const daemon = setting.start();
    await passing.comes(moment, daemon);
    expect((await daemon.kill('SIGKILL')).signal).toBe('SIGKILL');
    await expectTrue(await setting.list());
  }
  await expectTrue(await setting.settle());
  await expectShown(peer, user);
  // What was under way at a crash is looked up first, so hardly anything that the peer had received is pushed again.
  expect(ledger.again.size).toBeLessThan(ledger.pushed / 20);
}, 600_000);
