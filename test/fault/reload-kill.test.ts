import { expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { Ledger } from './ledger.js';
import { expectShown, isConfirmed, settingBehindProxy } from './setting.js';

const LIVES = 3;
const RELOADS = 20;
/** Files of a folder that comes and goes. */
const GUESTS = 40;

it(`${RELOADS} reloads in a row under load, in each of ${LIVES} lives that end in a kill, lose nothing`, async () => {
  const { peer, proxy, setting } = await settingBehindProxy();
  const { random, user } = setting;
  const ledger = new Ledger();
  const guests = Array.from({ length: GUESTS }, (_, i) => `three/${i}.txt`);

  /** Another configuration each time: a folder comes and goes, another is replaced, limits change. */
  const change = (hasGuests: boolean) => {
    setting.configure({
      folders: [
        { name: 'one' },
        { name: 'two', settle: `${random.between(100, 300)}ms` },
        ...(hasGuests ? [{ name: 'three' }] : []),
      ],
      push: { maxItems: 10, concurrency: random.between(1, 6), requestsPerSecond: random.between(50, 500) },
      confirm: { maxInterval: '200ms', concurrency: random.between(1, 16) },
    });
  };
  /** A document of the folder that comes and goes may travel once more for it. */
  const isNoGuest = (sentence: string) =>
    !(sentence.includes('/three/') && sentence.includes('pushed twice'));

  change(true);
  for (const guest of guests) user.write(guest);
  user.work();
  for (let life = 1; life <= LIVES; life += 1) {
    const daemon = setting.start();
    await until(() => setting.asked('status'), 'it answers');
    for (let reload = 1; reload <= RELOADS; reload += 1) {
      change(random.chance(0.5));
      // Every other one is waited for, the rest comes while another is under way, and the last is cut short by the kill.
      if (reload % 2 === 0) daemon.child.kill('SIGHUP');
      else expect(await setting.asked('reload')).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, random.between(0, 50)));
    }
    const { signal, stdout } = await daemon.kill('SIGKILL');
    expect(signal).toBe('SIGKILL');
    expect(stdout).not.toContain('reload-failed');
    expect(stdout.match(/"event":"reloaded"/g)?.length).toBeGreaterThanOrEqual(RELOADS / 2);
    expect(ledger.close(proxy.requests, await setting.list()).filter(isNoGuest)).toEqual([]);
  }
  change(true);
  const listed = await setting.settle(120_000);
  expect(ledger.close(proxy.requests, listed).filter(isNoGuest)).toEqual([]);
  expect(listed.filter(isConfirmed).length).toBeGreaterThanOrEqual(GUESTS);
  await expectShown(peer, user);
}, 600_000);
