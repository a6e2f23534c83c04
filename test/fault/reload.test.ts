import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { slow, when } from '../support/scripted-peer.js';
import { BUSY, busySite, isConfirmed, Ledger, settle } from './busy.js';

const LIVES = 3;
const RELOADS = 20;
/** Files of a folder that comes and goes. */
const GUESTS = 40;

it(`${RELOADS} reloads in a row under load, in each of ${LIVES} lives that end in a kill, lose nothing`, async () => {
  const { site, random, user } = await busySite();
  const ledger = new Ledger();

  /**
   * Another configuration each time: a folder comes and goes, another is replaced, limits change.
   */
  const change = (hasGuests: boolean) => {
    const two = { name: 'two', settle: `${random.between(100, 300)}ms` };
    site.configure({
      folders: [{ name: 'one' }, two, ...(hasGuests ? [{ name: 'three' }] : [])],
      push: {
        maxItems: 10,
        concurrency: random.between(1, 6),
        requestsPerSecond: random.between(50, 500),
      },
      confirm: { maxInterval: '200ms', concurrency: random.between(1, 16) },
    });
  };
  /** A document of the folder that comes and goes may travel once more for it. */
  const isNoGuest = (sentence: string) =>
    !(sentence.includes('/three/') && sentence.includes('pushed twice'));

  change(true);
  for (let guest = 0; guest < GUESTS; guest += 1) user.write(`three/${guest}.txt`);
  user.work();
  for (let life = 1; life <= LIVES; life += 1) {
    const daemon = await site.start();
    for (let reload = 1; reload <= RELOADS; reload += 1) {
      change(random.chance(0.5));
      // Every other one is waited for, the rest comes while another is under way, and the last is
      // cut short by the kill.
      if (reload % 2 === 0) daemon.child.kill('SIGHUP');
      else await site.ask('reload');
      await sleep(random.between(0, 50));
    }
    const { signal, stdout } = await daemon.kill('SIGKILL');
    expect(signal).toBe('SIGKILL');
    expect(stdout).not.toContain('reload-failed');
    expect(stdout.match(/"event":"reloaded"/g)?.length).toBeGreaterThanOrEqual(RELOADS / 2);
    expect(ledger.close(site.proxy.requests, await site.list()).filter(isNoGuest)).toEqual([]);
  }
  change(true);
  const listed = await settle(site, user);
  expect(ledger.close(site.proxy.requests, listed).filter(isNoGuest)).toEqual([]);
  expect(listed.filter(isConfirmed).length).toBeGreaterThanOrEqual(GUESTS);
  await site.expectAllInPeer();
}, 600_000);

const MOVES = 12;
const SAME = 30;
const DIRECTORIES = ['one', 'two', 'three'] as const;

it(`folders that swap paths, names, URLs and collections ${MOVES} times during pushes to a slow peer end as they are on disk`, async () => {
  const { site, random, user } = await busySite(DIRECTORIES);
  site.proxy.behaviour = when(
    ({ items }) => items.length > 0,
    (call) => slow(random.chance(0.2) ? random.between(500, 3_000) : random.between(0, 100))(call),
  );
  const shuffled = (): string[] => {
    const rest = [...DIRECTORIES];
    return DIRECTORIES.flatMap(() => rest.splice(random.between(0, rest.length - 1), 1));
  };
  /** @param least how many of the three folders there are at least */
  const change = (least = 2): void => {
    const paths = shuffled();
    // Mostly a directory keeps its URL, and a name its collection: then what was before is back
    // after a few changes.
    const urls = random.chance(0.7) ? paths : shuffled();
    const collections = random.chance(0.6) ? DIRECTORIES : shuffled();
    const names = random.chance(0.3) ? ['uno', 'two', 'tres'] : DIRECTORIES;
    const folders = names.map((name, i) => ({
      name,
      path: site.path(paths[i] ?? ''),
      url: site.url(`${urls[i]}/`),
      collection: collections[i] ?? '',
      settle: random.chance(0.5) ? '100ms' : '250ms',
    }));
    site.configure({ ...BUSY, folders: folders.slice(0, random.chance(0.2) ? least : 3) });
  };
  for (const name of DIRECTORIES)
    for (let i = 0; i < SAME; i += 1) user.write(`${name}/same/${i}.txt`);
  change();
  await site.start();
  user.work();
  for (let i = 0; i < MOVES; i += 1) {
    change();
    await site.ask('reload');
    for (let j = 0; j < 5; j += 1)
      if (random.chance(0.5))
        user.write(`${random.pick(DIRECTORIES)}/same/${random.between(0, SAME - 1)}.txt`);
    await sleep(random.between(0, 800));
  }
  user.rest();
  change(3);
  await site.ask('reload');
  await site.allConfirmed();
  await site.expectAllInPeer();
  expect((await site.stop()).stdout).not.toContain('"level":50');
}, 400_000);
