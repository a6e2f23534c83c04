import { mkdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { FolderConfig } from '../../src/config/config.js';
import type { FsEvents } from '../../src/watch/fs-events.js';
import { afterwards } from '../support/afterwards.js';
import { until } from '../support/wait.js';
import { folderOf, gate, Inbox } from './inbox.js';

/** A second folder beside that of an inbox, in `../name`. */
function another(inbox: Inbox, name = 'notes'): FolderConfig {
  mkdirSync(inbox.at(`../${name}`), { recursive: true });
  const url = `https://files.example.org/${name}/`;
  return folderOf(inbox.at(`../${name}`), { name, collection: name, url });
}

const settings = (...folders: readonly FolderConfig[]) => ({
  folders,
  hints: true,
  rescanMs: 3_600_000,
});

const names = ({ watcher }: Inbox) => watcher.status().map(({ name }) => name);

const MANY = Object.fromEntries(
  Array.from({ length: 300 }, (_, i) => [`${i}.txt`, 'x'.repeat(20_000)]),
);

describe('a watcher that is configured again', () => {
  it('does not wait for the disk of a folder that is no longer watched', async () => {
    const { open, opened } = gate();
    const silent: FsEvents = {
      watch: async () => 'watched',
      unwatch: () => {},
      watches: () => false,
      watched: 0,
      close: () => opened,
    };
    const inbox = await new Inbox().start({ openEvents: () => silent });
    afterwards('test', open);
    const notes = another(inbox);
    inbox.write('../notes/n.txt');
    inbox.watcher.configure(settings(notes));
    await inbox.idle();
    expect(inbox.status('n.txt', 'notes')).toBe('pending');
    expect(names(inbox)).toEqual(['notes']);
  });

  it('scans and follows a folder that was added, and scans no other', async () => {
    const inbox = await new Inbox(['a.txt', '../notes/n.txt']).start();
    const { lastScan } = inbox.folder;
    inbox.watcher.configure(settings(folderOf(inbox.root), another(inbox)));
    await inbox.idle();
    expect(inbox.status('n.txt', 'notes')).toBe('pending');
    inbox.write('../notes/later.txt');
    inbox.write('later.txt');
    await until(() => inbox.status('later.txt', 'notes') === 'pending', 'the new one is followed');
    await inbox.becomes({ 'later.txt': 'pending' });
    expect(inbox.folder.lastScan).toBe(lastScan);
  });

  it('keeps the settling files of an unchanged folder', async () => {
    const folder = { settle: 1_000 };
    const inbox = await new Inbox().start({ folder });
    inbox.write('fresh.txt');
    await until(() => inbox.folder.settling === 1, 'it settles');
    inbox.watcher.configure(settings(folderOf(inbox.root, folder), another(inbox)));
    expect(inbox.folder.settling).toBe(1);
    await inbox.becomes({ 'fresh.txt': 'pending' });
  });

  it('does not look at a removed folder any more, whatever was under way there', async () => {
    const inbox = new Inbox();
    const notes = another(inbox);
    for (const [path, content] of Object.entries(MANY)) inbox.write(`../notes/${path}`, content);
    await inbox.begin({
      folders: [folderOf(inbox.root), notes],
      policy: { readers: 1, backpressureAt: 5 },
    });
    const { watcher, state } = inbox;
    await until(() => state.counts('notes').pending > 10, 'the scan is under way');
    for (let i = 0; i < 50; i += 1) watcher.lookSoon({ folder: 'notes', path: `${i}.txt` });
    watcher.configure(settings(folderOf(inbox.root)));
    const known = state.counts('notes').pending;
    expect(known).toBeLessThan(300);
    inbox.write('../notes/later.txt');
    watcher.lookSoon({ folder: 'notes', path: 'later.txt' });
    await watcher.idle();
    inbox.write('a.txt');
    await inbox.becomes({ 'a.txt': 'pending' });
    expect(state.counts('notes').pending).toBe(known);
    expect(names(inbox)).toEqual(['inbox']);
  });

  it('scans a changed folder again, even in the middle of its first scan', async () => {
    const inbox = new Inbox(MANY);
    await inbox.begin({ policy: { readers: 2, backpressureAt: 10 } });
    await until(() => inbox.state.counts().pending > 10, 'the scan is under way');
    inbox.watcher.configure(
      settings(folderOf(inbox.root, { collection: 'other', ignore: ['1*.txt'] })),
    );
    await inbox.idle();
    const entries = [...inbox.state.entries.all('inbox')];
    expect(entries.filter(({ path }) => path.startsWith('1'))).toEqual([]);
    expect(entries).toHaveLength(300 - 111);
    const collections = new Set(entries.map((entry) => 'collection' in entry && entry.collection));
    expect([...collections]).toEqual(['other']);
  });

  it('turns hints off and on, and scans at another interval', async () => {
    const inbox = await new Inbox().start();
    const folder = folderOf(inbox.root);
    expect(inbox.folder).toMatchObject({ state: 'watching', directoriesWatched: 1 });
    inbox.watcher.configure({ ...settings(folder), hints: false });
    await inbox.idle();
    expect(inbox.folder).toMatchObject({ state: 'unwatched', directoriesWatched: 0 });
    inbox.watcher.configure({ ...settings(folder), hints: false, rescanMs: 100 });
    inbox.write('a.txt');
    await inbox.becomes({ 'a.txt': 'pending' });
    inbox.watcher.configure(settings(folder));
    await inbox.idle();
    expect(inbox.folder).toMatchObject({ state: 'watching', directoriesWatched: 1 });
  });

  it('shows folders in the order of the configuration, and recognises each by its name', async () => {
    const inbox = new Inbox();
    const [a, b, c] = [folderOf(inbox.root), another(inbox, 'b'), another(inbox, 'c')];
    await inbox.begin({ folders: [a, b] });
    inbox.watcher.configure(settings(c, b, a));
    expect(names(inbox)).toEqual(['c', 'b', 'inbox']);
    inbox.watcher.configure(settings(c));
    inbox.watcher.configure(settings(b, c));
    inbox.write('../b/again.txt');
    await until(() => inbox.status('again.txt', 'b') === 'pending', 'b is followed again');
  });
});
