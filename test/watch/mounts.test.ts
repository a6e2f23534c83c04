import { mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { canMount, mount, run } from '../support/mounts.js';
import { until } from '../support/wait.js';
import { Inbox } from './inbox.js';

/**
 * A folder with a file of its own and `disk`, a directory that another file system is mounted on.
 */
function withDisk() {
  const inbox = new Inbox(['own.txt', 'disk/stays']);
  inbox.remove('disk/stays');
  const store = inbox.at('../store');
  mkdirSync(store);
  mount(store);
  const mountDisk = () => mount(inbox.at('disk'), '--bind', store);
  const unmount = mountDisk();
  inbox.write('disk/a.txt');
  inbox.write('disk/deep/b.txt');
  return { inbox, store, mountDisk, unmount };
}

const CONFIRMED = {
  'own.txt': 'pending',
  'disk/a.txt': 'pending',
  'disk/deep/b.txt': 'pending',
} as const;

async function problemIs(inbox: Inbox, code: string | undefined): Promise<void> {
  await until(() => inbox.watcher.problems()[0]?.failure.code === code, `the problem is ${code}`);
}

describe.skipIf(!canMount)(
  'a file system that is mounted below the root (skipped if nothing can be mounted)',
  () => {
    it.each([true, false])(
      'keeps its items while it is away, is logged once, and continues when it is back; with events: %s',
      async (hints) => {
        const { inbox, store, mountDisk, unmount } = withDisk();
        await inbox.start({ hints });
        inbox.expect(CONFIRMED);
        unmount();
        await problemIs(inbox, 'MOUNT_AWAY');
        expect(inbox.watcher.problems()).toMatchObject([
          { folder: 'inbox', path: inbox.at('disk') },
        ]);
        // A file in the empty mount point is not taken. The rest of the folder continues.
        inbox.write('disk/stray.txt');
        inbox.write('own.txt', 'more');
        inbox.remove('disk/stray.txt');
        inbox.write('disk/a.txt', 'another');
        await inbox.look('disk/a.txt');
        await inbox.look('disk/deep/b.txt');
        await inbox.rescan();
        inbox.expect({ ...CONFIRMED, 'disk/stray.txt': undefined });
        expect(inbox.get('disk/a.txt')?.version.size).toBe('content of disk/a.txt'.length);
        inbox.remove('disk/a.txt');
        await inbox.rescan();
        inbox.expect(CONFIRMED);
        writeFileSync(`${store}/new.txt`, 'x');
        rmSync(`${store}/a.txt`);
        mountDisk();
        await problemIs(inbox, undefined);
        await inbox.becomes({
          'disk/new.txt': 'pending',
          'disk/a.txt': 'gone',
          'disk/deep/b.txt': 'pending',
        });
        inbox.expect({ 'own.txt': 'pending' });
        expect(inbox.logged('warn: ')).toBe(1);
      },
    );

    it.each([
      ['an empty directory', () => {}],
      ['nothing', (inbox: Inbox) => rmdirSync(inbox.at('disk'))],
      [
        'a file',
        (inbox: Inbox) => {
          rmdirSync(inbox.at('disk'));
          inbox.write('disk');
        },
      ],
    ])('keeps its items if it is away at the start, with %s in its place', async (_, change) => {
      const { inbox, store, unmount } = withDisk();
      await inbox.start();
      await inbox.watcher.stop();
      unmount();
      change(inbox);
      await inbox.start();
      inbox.expect(CONFIRMED);
      await problemIs(inbox, 'MOUNT_AWAY');
      rmSync(inbox.at('disk'), { recursive: true, force: true });
      mkdirSync(inbox.at('disk'));
      // A device with another number is recognised by the files on it.
      mkdirSync(inbox.at('../other'));
      mount(inbox.at('../other'));
      run('cp', '-r', '--preserve=timestamps', `${store}/.`, inbox.at('../other'));
      mount(inbox.at('disk'), '--bind', inbox.at('../other'));
      await problemIs(inbox, undefined);
      rmSync(inbox.at('disk/a.txt'));
      await inbox.becomes({ 'disk/a.txt': 'gone', 'disk/deep/b.txt': 'pending' });
    });

    it('is forgotten when a person says so, unless the directory is empty', async () => {
      const { inbox, unmount } = withDisk();
      await inbox.start();
      unmount();
      await inbox.rescan('inbox');
      inbox.expect(CONFIRMED);
      inbox.write('disk/instead.txt');
      await inbox.rescan();
      inbox.expect({ ...CONFIRMED, 'disk/instead.txt': undefined });
      expect(inbox.watcher.problems()[0]?.failure.hint).toContain('`peersync rescan inbox`');
      await inbox.rescan('inbox');
      inbox.expect({ 'own.txt': 'pending', 'disk/a.txt': 'gone', 'disk/deep/b.txt': 'gone' });
      await inbox.becomes({ 'disk/instead.txt': 'pending' });
      expect(inbox.watcher.problems()).toEqual([]);
    });

    it('may go away if no file on it is known', async () => {
      const { inbox, unmount } = withDisk();
      inbox.remove('disk/a.txt', 'disk/deep');
      await inbox.start();
      unmount();
      await inbox.rescan();
      inbox.write('disk/instead.txt');
      await inbox.becomes({ 'disk/instead.txt': 'pending' });
      expect(inbox.watcher.problems()).toEqual([]);
    });

    it('keeps its items at their old path if the directory above it was moved', async () => {
      const inbox = new Inbox(['above/own.txt', 'above/disk/stays']);
      inbox.remove('above/disk/stays');
      const unmount = mount(inbox.at('above/disk'));
      inbox.write('above/disk/a.txt');
      await inbox.start();
      unmount();
      renameSync(inbox.at('above'), inbox.at('../elsewhere'));
      await inbox.rescan();
      inbox.expect({ 'above/own.txt': 'gone', 'above/disk/a.txt': 'pending' });
      await problemIs(inbox, 'MOUNT_AWAY');
    });
  },
);
