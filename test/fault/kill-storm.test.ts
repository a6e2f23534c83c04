import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { ScriptedPeer } from '../support/scripted-peer.js';
import type { Listed } from '../support/site.js';
import { until } from '../support/wait.js';
import {
  BUSY,
  busySite,
  inWords,
  isConfirmed,
  Ledger,
  Passing,
  REMOVALS,
  randomMoment,
  settle,
} from './busy.js';

/** PEERSYNC_KILLS sets how many times the daemon is killed. */
const KILLS = Number(process.env.PEERSYNC_KILLS ?? 10);
/** Number of files that are confirmed before the first kill. */
const FILES = 150;
/** Every fifth kill comes during a requested scan. */
const SCAN_EACH = 5;

/** The URLs of documents that the daemon asked the peer to remove. */
function removalsAsked(proxy: ScriptedPeer): Set<string> {
  const removals = proxy.requests.filter(({ path }) => path === REMOVALS);
  return new Set(removals.flatMap(({ form }) => [...form.values()]));
}

it(
  `after ${KILLS} kills during scans, files on disk are confirmed, and documents of removed files are removed or kept as configured`,
  async () => {
    const { site, random, user, note } = await busySite(['kept', 'cleared']);
    console.log(`PEERSYNC_TEST_SEED=${random.seed} PEERSYNC_KILLS=${KILLS} repeats this`);
    const folders = [
      { name: 'kept', onDelete: 'keep' },
      { name: 'cleared', onDelete: 'remove' },
    ] as const;
    site.configure({ ...BUSY, folders });
    const passing = new Passing(site.proxy);
    const ledger = new Ledger();
    let scans = 0;

    // Only what was confirmed once has a document that is to be removed or kept.
    for (let file = 0; file < FILES; file += 1)
      user.write(`${random.pick(['kept', 'cleared'])}/${file % 7}/${file}.txt`);
    expect(ledger.close(site.proxy.requests, await settle(site, user))).toEqual([]);

    user.work();
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const daemon = site.spawn();
      if (kill % SCAN_EACH === 0) {
        const ms = random.between(0, 40);
        note(`${ms} ms after a scan was asked for`);
        scans += 1;
        await daemon.says('watching');
        // The kill may come before its answer.
        void site.ask('rescan').catch(() => undefined);
        await sleep(ms);
      } else {
        const moment = randomMoment(random);
        note(inWords(moment));
        await passing.comes(moment, daemon);
      }
      expect((await daemon.kill('SIGKILL')).signal).toBe('SIGKILL');
      const listed = await site.list();
      expect(ledger.close(site.proxy.requests, listed)).toEqual([]);
      for (const { url, sha256 } of listed.filter(isConfirmed))
        expect(passing.shown).toContain(`${url} ${sha256}`);
    }
    expect(ledger.close(site.proxy.requests, await settle(site, user))).toEqual([]);
    await site.expectAllInPeer();

    // Very many removals at once wait for a person.
    await site.start();
    const isInPeer = async ({ url }: Listed) => (await site.peer.peerdoc(url)) !== undefined;
    /** The files of the folder whose documents are removed that are not in their last status. */
    const unfinished = async () => {
      const files = (await site.list()).filter(({ folder }) => folder === 'cleared');
      const open = files.filter(({ status }) => !['confirmed', 'removed', 'gone'].includes(status));
      // A file that was removed before it was pushed is gone, and stays so.
      for (const file of files)
        if (file.status === 'gone' && (await isInPeer(file))) open.push(file);
      return open;
    };
    const isCleared = async () => {
      const { folders: [, cleared] = [] } = await site.status();
      if (cleared?.massDeletion !== undefined)
        await site.run('approve-deletes', 'cleared', '--yes');
      return (await unfinished()).length === 0;
    };
    await until(isCleared, 'the documents of removed files are removed').catch(
      async (error: unknown) => {
        const { folders } = await site.status();
        throw new Error(JSON.stringify({ folders, unfinished: await unfinished() }), {
          cause: error,
        });
      },
    );
    const asked = removalsAsked(site.proxy);
    for (const file of await site.list()) {
      if (file.folder === 'kept') expect(asked, file.url).not.toContain(file.url);
      else if (!isConfirmed(file)) expect(await isInPeer(file), file.url).toBe(false);
    }
    await site.expectAllInPeer();
    await site.stop();
    expect(asked.size).toBeGreaterThan(0);
    console.log(
      `${site.onDisk().size} files, ${asked.size} documents removed, ${scans} kills during a scan`,
    );
  },
  60_000 + KILLS * 20_000 + 240_000,
);
