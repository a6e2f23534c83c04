import {
  chownSync,
  mkdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { canMount, mount, run } from '../support/mounts.js';
import { until } from '../support/wait.js';
import { folderOf, Inbox } from './inbox.js';

describe('a folder whose root', () => {
  it('is missing at the start is held, logged once, and scanned when the root appears', async () => {
    const inbox = new Inbox();
    rmSync(inbox.root, { recursive: true });
    await inbox.start();
    await inbox.reaches('held', 'FOLDER_MISSING');
    expect(inbox.folder.failure?.hint).toMatch(/^Mount or create it\. A running daemon sees that /);
    inbox.write('a.txt');
    await inbox.becomes({ 'a.txt': 'pending' });
    await inbox.reaches('watching');
    inbox.write('b.txt');
    await inbox.becomes({ 'b.txt': 'pending' });
    expect(
      inbox.lines.filter((line) => /^warn: .* is not there or cannot be read/.test(line)),
    ).toHaveLength(1);
    expect(inbox.lines.filter((line) => /^info: .* is back/.test(line))).toHaveLength(1);
  });

  it('goes away keeps its items, and is followed again when the root is back', async () => {
    const inbox = await new Inbox(['sub/a.txt']).start();
    renameSync(inbox.root, `${inbox.root}.away`);
    await inbox.reaches('held', 'FOLDER_MISSING');
    expect(inbox.folder.directoriesWatched).toBe(0);
    expect(inbox.folder.failure?.hint).toMatch(
      /^Mount it or bring it back\. A running daemon sees that /,
    );
    await inbox.rescan();
    inbox.expect({ 'sub/a.txt': 'pending' });
    renameSync(`${inbox.root}.away`, inbox.root);
    await inbox.reaches('watching');
    await inbox.idle();
    inbox.write('sub/b.txt');
    await inbox.becomes({ 'sub/b.txt': 'pending', 'sub/a.txt': 'pending' });
  });

  it('goes away or comes back reports the change; until the first check it counts as missing', async () => {
    const inbox = new Inbox(['a.txt']);
    const states: unknown[] = [];
    await inbox.begin({
      onFolderStateChange: () => void states.push(inbox.watcher.folderState('inbox')),
    });
    const { watcher } = inbox;
    const becomes = (state: string) => until(() => states.at(-1) === state, `it is ${state}`);
    expect(watcher.folderState('inbox')).toBe('missing');
    expect(watcher.folderState('other')).toBeUndefined();
    await becomes('there');
    await inbox.idle();
    expect(states).toEqual(['there']);
    renameSync(inbox.root, `${inbox.root}.away`);
    await becomes('missing');
    mkdirSync(inbox.root);
    await inbox.reaches('held', 'FOLDER_REPLACED');
    rmdirSync(inbox.root);
    renameSync(`${inbox.root}.away`, inbox.root);
    await becomes('there');
    const settings = { hints: true, rescanMs: 3_600_000 };
    watcher.configure({ ...settings, folders: [folderOf(`${inbox.root}.elsewhere`)] });
    expect(states.at(-1)).toBe('missing');
    watcher.configure({ ...settings, folders: [folderOf(inbox.root)] });
    await becomes('there');
    watcher.configure({ ...settings, folders: [] });
    expect(states.at(-1)).toBeUndefined();
  });

  it('is replaced by another directory with files continues with that directory', async () => {
    const inbox = await new Inbox(['old.txt']).start();
    inbox.replace({ 'new.txt': 'x' });
    await inbox.becomes({ 'new.txt': 'pending', 'old.txt': 'gone' });
    await inbox.idle();
    inbox.write('later.txt');
    await inbox.becomes({ 'later.txt': 'pending' });
  });

  it('is replaced by an empty directory keeps its items, across a restart too, until it has a file', async () => {
    const inbox = await new Inbox(['old.txt']).start();
    inbox.replace();
    await inbox.reaches('held', 'FOLDER_REPLACED');
    await inbox.rescan('inbox');
    inbox.expect({ 'old.txt': 'pending' });
    await inbox.start();
    await inbox.reaches('held', 'FOLDER_REPLACED');
    inbox.expect({ 'old.txt': 'pending' });
    inbox.write('new.txt');
    await inbox.becomes({ 'old.txt': 'gone', 'new.txt': 'pending' });
  });

  it('has another path in the configuration accepts that directory, even an empty one', async () => {
    const inbox = await new Inbox(['a.txt']).start();
    mkdirSync(inbox.at('../other'));
    await inbox.start({ folder: { path: inbox.at('../other') } });
    await inbox.reaches('watching');
    inbox.expect({ 'a.txt': 'gone' });
  });

  it('is removed and created again between two checks is followed again', async () => {
    const inbox = await new Inbox().start({ policy: { rootCheckMs: 3_600_000 } });
    for (let i = 0; i < 5; i += 1) {
      rmSync(inbox.root, { recursive: true });
      inbox.write(`d/${i}.txt`);
      await inbox.becomes({ [`d/${i}.txt`]: 'pending' });
      await inbox.idle();
    }
  });

  it('is a symbolic link is followed to its target; another target is held until a scan is requested', async () => {
    const inbox = new Inbox(['d/a.txt']);
    renameSync(inbox.root, `${inbox.root}.one`);
    mkdirSync(`${inbox.root}.two`);
    writeFileSync(`${inbox.root}.two/b.txt`, 'x');
    symlinkSync(`${inbox.root}.one`, inbox.root);
    await inbox.start();
    expect(inbox.folder.directoriesWatched).toBe(2);
    inbox.write('d/later.txt');
    await inbox.becomes({ 'd/later.txt': 'pending' });
    rmSync(inbox.root);
    symlinkSync(`${inbox.root}.two`, inbox.root);
    await inbox.reaches('held', 'FOLDER_REPLACED');
    await inbox.rescan();
    inbox.expect({ 'd/a.txt': 'pending', 'b.txt': undefined });
    await inbox.rescan('inbox');
    await inbox.becomes({ 'b.txt': 'pending' });
    inbox.expect({ 'd/a.txt': 'gone' });
    expect(inbox.folder.directoriesWatched).toBe(1);
  });

  it('is swapped for a link is held, across a restart too, until it is put back', async () => {
    const inbox = await new Inbox(['plan.md']).start();
    inbox.write('../private/secret.md');
    inbox.write('../private/plan.md', 'a secret under the name of a known file');
    renameSync(inbox.root, `${inbox.root}.old`);
    symlinkSync(inbox.at('../private'), inbox.root);
    await inbox.reaches('held', 'FOLDER_REPLACED');
    expect(inbox.folder.failure?.message).toContain(`leads to ${inbox.at('../private')} now`);
    expect(inbox.folder.failure?.hint).toContain('`peersync rescan inbox`');
    expect(inbox.watcher.rootOf('inbox')).toBe(inbox.root);
    await inbox.rescan();
    await inbox.start();
    await inbox.reaches('held', 'FOLDER_REPLACED');
    inbox.expect({ 'plan.md': 'pending', 'secret.md': undefined });
    expect(inbox.get('plan.md')?.version.size).toBe('content of plan.md'.length);
    rmSync(inbox.root);
    renameSync(`${inbox.root}.old`, inbox.root);
    await inbox.reaches('watching');
    await inbox.idle();
    inbox.expect({ 'plan.md': 'pending', 'secret.md': undefined });
  });

  it('is swapped for a link is held even if it was empty', async () => {
    const inbox = await new Inbox().start();
    inbox.write('../private/secret.md');
    rmdirSync(inbox.root);
    symlinkSync(inbox.at('../private'), inbox.root);
    await inbox.reaches('held', 'FOLDER_REPLACED');
    await inbox.rescan();
    inbox.expect({ 'secret.md': undefined });
  });

  it('is swapped for a link between two checks takes nothing from the target', async () => {
    const inbox = await new Inbox(['a.txt']).start({ policy: { rootCheckMs: 3_600_000 } });
    inbox.write('../private/secret.md');
    renameSync(inbox.root, `${inbox.root}.old`);
    symlinkSync(inbox.at('../private'), inbox.root);
    await inbox.look('secret.md');
    await inbox.look('sub/');
    inbox.expect({ 'a.txt': 'pending', 'secret.md': undefined });
  });

  it.skipIf(process.getuid?.() !== 0)(
    'is swapped for the directory of another user is held (needs root)',
    async () => {
      const inbox = new Inbox(['a.txt']);
      chownSync(inbox.root, 4_321, 4_321);
      await inbox.start();
      inbox.write('../private/secret.md');
      renameSync(inbox.root, `${inbox.root}.old`);
      renameSync(inbox.at('../private'), inbox.root);
      await inbox.reaches('held', 'FOLDER_REPLACED');
      expect(inbox.folder.failure?.message).toContain('belongs to the user with the number 0 now');
      inbox.expect({ 'a.txt': 'pending', 'secret.md': undefined });
    },
  );

  it.skipIf(process.getuid?.() !== 0).each([
    ['a look at a file of the same name', 'a.txt'],
    ['a look at a file that was not there', 'secret.md'],
    ['a listing', 'sub/'],
    ['a listing of the root', '/'],
  ])(
    'is swapped for the directory of another user between two checks is held by %s (needs root)',
    async (_, path) => {
      const inbox = new Inbox(['a.txt']);
      chownSync(inbox.root, 4_321, 4_321);
      const policy = { rootCheckMs: 3_600_000 };
      await inbox.start({ hints: false, policy });
      for (const name of ['secret.md', 'a.txt', 'sub/secret.md'])
        inbox.write(`../private/${name}`, 'a secret');
      renameSync(inbox.root, `${inbox.root}.old`);
      renameSync(inbox.at('../private'), inbox.root);
      await inbox.long('a.txt');
      await inbox.look(path);
      expect(inbox.folder).toMatchObject({ state: 'held', failure: { code: 'FOLDER_REPLACED' } });
      expect(inbox.paths()).toEqual(['a.txt']);
      expect(inbox.get('a.txt')?.version.size).toBe('content of a.txt'.length);
    },
  );

  it('was remembered without its real path by an earlier version is accepted as it is', async () => {
    const inbox = await new Inbox(['a.txt']).start();
    await inbox.watcher.stop();
    const { path, dev, ino } = inbox.state.meta('watch.root.inbox') as Record<
      string,
      string | number
    >;
    inbox.state.setMeta('watch.root.inbox', { path, dev, ino } as never);
    renameSync(inbox.root, `${inbox.root}.moved`);
    symlinkSync(`${inbox.root}.moved`, inbox.root);
    await inbox.start();
    await inbox.reaches('watching');
    inbox.expect({ 'a.txt': 'pending' });
    expect(inbox.state.meta('watch.root.inbox')).toMatchObject({ real: `${inbox.root}.moved` });
  });

  it('is moved together with its link loses no file once a person accepts that', async () => {
    const inbox = new Inbox(['../above/inbox/a/old.txt']);
    const link = inbox.at('../link');
    symlinkSync(inbox.at('../above/inbox'), link);
    await inbox.start({ folders: [folderOf(link)], policy: { rootCheckMs: 60_000 } });
    const statuses: unknown[] = [];
    inbox.state.onChange((after, _, { path }) => void statuses.push([path, after?.status]));
    inbox.rename('../above', '../moved');
    rmSync(link);
    symlinkSync(inbox.at('../moved/inbox'), link);
    writeFileSync(join(link, 'a/old.txt'), 'written at its new place');
    await inbox.rescan('inbox');
    await until(() => inbox.get('a/old.txt')?.version.size === 24, 'it is read', 40_000);
    await inbox.idle();
    expect(statuses).toEqual([['a/old.txt', 'pending']]);
  });
});

describe.skipIf(!canMount)('a folder on a disk that', () => {
  /** Watches anew what was copied to another disk without one of its files. */
  async function copied(...options: string[]): Promise<Inbox> {
    const inbox = await new Inbox(['sub/a.txt', 'sub/b.txt']).start();
    await inbox.watcher.stop();
    renameSync(inbox.root, `${inbox.root}.old`);
    mkdirSync(inbox.root);
    mount(inbox.root);
    run('cp', '-r', ...options, `${inbox.root}.old/.`, inbox.root);
    inbox.remove('sub/b.txt');
    return await inbox.start();
  }

  it('is a copy on another disk is accepted if its files kept their times', async () => {
    const inbox = await copied('--preserve=timestamps');
    await inbox.reaches('watching');
    inbox.expect({ 'sub/a.txt': 'pending', 'sub/b.txt': 'gone' });
  });

  it('is a copy without these times is held until a scan of just that folder is requested', async () => {
    const inbox = await copied();
    await inbox.reaches('held', 'FOLDER_REPLACED');
    expect(inbox.folder.failure?.hint).toContain('`peersync rescan inbox`');
    await inbox.rescan();
    inbox.expect({ 'sub/a.txt': 'pending', 'sub/b.txt': 'pending' });
    await inbox.rescan('inbox');
    await inbox.reaches('watching');
    inbox.expect({ 'sub/a.txt': 'pending', 'sub/b.txt': 'gone' });
  });

  it('is not mounted keeps its items, even with a stray file in the mount point', async () => {
    const inbox = new Inbox();
    const unmount = mount(inbox.root);
    inbox.write('a.txt');
    await inbox.start();
    await inbox.watcher.stop();
    unmount();
    inbox.write('stray.txt');
    await inbox.start();
    await inbox.reaches('held', 'FOLDER_REPLACED');
    inbox.expect({ 'a.txt': 'pending', 'stray.txt': undefined });
  });

  it('is unmounted meanwhile keeps its items, and continues when it is mounted again', async () => {
    const inbox = new Inbox();
    const disk = `${inbox.root}.disk`;
    mkdirSync(disk);
    mount(disk);
    writeFileSync(join(disk, 'a.txt'), 'x');
    const unmount = mount(inbox.root, '--bind', disk);
    await inbox.start();
    unmount();
    await inbox.reaches('held', 'FOLDER_REPLACED');
    await inbox.rescan();
    inbox.expect({ 'a.txt': 'pending' });
    mount(inbox.root, '--bind', disk);
    await inbox.reaches('watching');
    writeFileSync(join(disk, 'b.txt'), 'y');
    await inbox.becomes({ 'b.txt': 'pending', 'a.txt': 'pending' });
  });
});
