import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { peersync } from '../support/cli.js';
import { PeerProcess } from '../support/peer-process.js';
import type { Listed } from '../support/site.js';
import { until } from '../support/wait.js';
import {
  BUSY,
  busySite,
  inWords,
  isConfirmed,
  Ledger,
  Passing,
  randomMoment,
  settle,
} from './busy.js';

const CRASHES = 25;
const CRASHES_WITH_PEER = 3;

it(`a daemon that is killed ${CRASHES} times at random loses nothing, confirms nothing wrongly, and pushes a version at most once per life`, async () => {
  const { site, random, user, note } = await busySite();
  const passing = new Passing(site.proxy);
  const ledger = new Ledger();
  const checked = new Set<string>();

  const expectTrue = async (listed: readonly Listed[]) => {
    expect(ledger.close(site.proxy.requests, listed)).toEqual([]);
    for (const { url, sha256 } of listed.filter(isConfirmed)) {
      const version = `${url} ${sha256}`;
      if (checked.has(version)) continue;
      // The peer may have got it since: what it had shown until then counts as well.
      expect(passing.shown).toContain(version);
      expect(await site.peer.peerdoc(url)).toMatchObject({ url, digest: sha256 });
      checked.add(version);
    }
  };

  user.work();
  for (let crash = 1; crash <= CRASHES; crash += 1) {
    const moment = randomMoment(random);
    note(inWords(moment));
    const daemon = site.spawn();
    await passing.comes(moment, daemon);
    expect((await daemon.kill('SIGKILL')).signal).toBe('SIGKILL');
    await expectTrue(await site.list());
  }
  await expectTrue(await settle(site, user));
  await site.expectAllInPeer();
  // Batches that were in flight at a crash are looked up first, so hardly any document that the
  // peer received is pushed again.
  expect(ledger.again.size).toBeLessThan(ledger.pushed / 20);
}, 600_000);

it(`a daemon that is killed with its embedded peer ${CRASHES_WITH_PEER} times loses nothing, and the peer has all confirmed and no removed documents`, async () => {
  const { site, random, user, note } = await busySite();
  const dir = site.path('peer');
  site.configure({ ...BUSY, peer: { url: 'embedded', embedded: { dir, port: 0 } } });

  user.work();
  for (let crash = 1; crash <= CRASHES_WITH_PEER; crash += 1) {
    const event = crash % 2 === 0 ? 'confirmed' : 'pushing to';
    const ms = random.between(0, 600);
    note(`${ms} ms after "${event}"`);
    const daemon = site.spawn();
    await daemon.says(event);
    await sleep(ms);
    expect((await daemon.kill('SIGKILL')).signal).toBe('SIGKILL');

    const check = await peersync(['peer', 'check', '--data', dir]);
    expect(check).toMatchObject({ code: 0, stdout: expect.stringContaining('documents agree') });
    const listed = (await site.list()).filter(isConfirmed);
    const peer = await PeerProcess.start(dir);
    for (const { url, sha256 } of listed)
      expect(await peer.peerdoc(url)).toMatchObject({ url, digest: sha256 });
    await peer.running.kill('SIGKILL');
  }
  const last = user.write('one/removed at last.txt');
  await settle(site, user);
  rmSync(site.path(last));
  await site.start();
  const isRemoved = async () => {
    // It may have gone within the same minute as very many others, which wait for a person.
    const { folders } = await site.status();
    if (folders[0]?.massDeletion !== undefined) await site.run('approve-deletes', 'one', '--yes');
    return (await site.list()).some(
      ({ url, status }) => url === site.url(last) && status === 'removed',
    );
  };
  await until(isRemoved, 'the document of a removed file is removed');
  await site.stop();
  const peer = await PeerProcess.start(dir);
  await site.expectAllInPeer(peer);
  // The documents of removed files were removed from the peer, and none while its file existed.
  const removed = (await site.list()).filter(({ status }) => status === 'removed');
  expect(removed.length).toBeGreaterThan(0);
  for (const { url } of removed) expect(await peer.peerdoc(url)).toBeUndefined();
}, 400_000);
