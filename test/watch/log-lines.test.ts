import { mkdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DaemonLog } from '../../src/daemon/log-repeats.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { folderOf, Inbox, send } from './inbox.js';

const KEY = '-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n';

describe('a file that is skipped', () => {
  it('is logged once with its name, the reason and a hint', async () => {
    const files = {
      empty: '',
      large: 'x'.repeat(2_000),
      'no.bin': Buffer.from([0, 1, 2, 255]),
      key: KEY,
    };
    const folder = { maxFileSize: 1_000, ignoreDefaults: true };
    const inbox = await new Inbox(files).start({ folder });
    expect(inbox.lines.filter((line) => line.includes('skipped')).toSorted()).toEqual([
      'info: skipped inbox/empty: The file is empty. It is taken as soon as it has content.',
      'info: skipped inbox/large: The file has 2 KiB; the limit of its folder is 1000 B. Raise `maxFileSize` of the folder if the peer takes such large documents.',
      'info: skipped inbox/no.bin: It is not text. None.',
      expect.stringMatching(
        /^warn: skipped inbox\/key: The file holds a private key\. .* Move it out/,
      ),
    ]);
    await inbox.rescan();
    await inbox.start({ folder });
    await inbox.rescan();
    expect(inbox.logged('skipped')).toBe(4);
  });

  it('is logged again for another reason, and not for another change', async () => {
    const inbox = await new Inbox({ 'a.log': 'x'.repeat(2_000) }).start({
      folder: { maxFileSize: 1_000 },
    });
    inbox.append('a.log', 'more');
    await until(() => inbox.get('a.log')?.version.size === 2_004, 'its size is known');
    expect(inbox.logged('skipped inbox/a.log')).toBe(1);
    inbox.write('a.log', '');
    await until(() => inbox.get('a.log')?.version.size === 0, 'it is empty');
    expect(inbox.logged('skipped inbox/a.log: The file is empty.')).toBe(1);
  });

  it('is not logged if a rule excludes it and the peer has no document of it', async () => {
    const inbox = new Inbox({
      'node_modules/a/b.js': 'x',
      'a.part': 'x',
      '.peersyncignore': '*.tmp',
      'a.tmp': '',
    });
    await inbox.start({ folder: { ignoreDefaults: true } });
    expect(inbox.logged('skipped')).toBe(0);
  });

  it('is logged if a new rule excludes it and its document stays in the peer', async () => {
    const inbox = send(await new Inbox({ 'a.txt': 'x' }).start());
    await inbox.start({ folder: { ignore: ['*.txt'] } });
    await inbox.rescan();
    const line =
      'info: skipped inbox/a.txt: ignore pattern "*.txt" of folder "inbox". The peer keeps the document that it already has. `peersync forget inbox --remove` removes such documents from the peer.';
    expect(inbox.lines.filter((each) => each.includes('skipped'))).toEqual([line]);
  });

  it('is only counted if very many files are skipped at once', async () => {
    const clock = new FakeClock();
    const inbox = new Inbox(Array.from({ length: 300 }, (_, i) => `${i} of many.txt`));
    const daemonLog = new DaemonLog(inbox.log, clock);
    await inbox.start({ log: daemonLog, folder: { maxFileSize: 1 } });
    await clock.advance(10_000);
    const logged = inbox.lines.filter((line) => line.startsWith('info: '));
    expect(logged).toHaveLength(21);
    expect(logged.at(-1)).toContain(
      '280 more like this in the last 10s, the last one: skipped inbox/',
    );
  });
});

describe('a rename', () => {
  const notes = (inbox: Inbox, path: string, folder?: string) =>
    inbox.get(path, folder)?.history.map(({ note }) => note);
  const RENAMED = 'info: renamed inbox/a.md to inbox/sub/b.md';

  it('is recorded in the log and in the histories of both names', async () => {
    const inbox = send(await new Inbox({ 'a.md': 'a', 'sub/other.md': 'other' }).start());
    inbox.rename('a.md', 'sub/b.md');
    await inbox.becomes({ 'a.md': 'removing', 'sub/b.md': 'pending' });
    expect(inbox.lines.filter((line) => line.startsWith('info: '))).toEqual([RENAMED]);
    expect(notes(inbox, 'a.md')).toContain('renamed to inbox/sub/b.md');
    expect(notes(inbox, 'sub/b.md')).toEqual(['renamed from inbox/a.md']);
  });

  it('is recorded if it was made while no watcher ran, whichever name is found first', async () => {
    const inbox = send(
      await new Inbox({ 'a.md': 'a', 'z/z.md': 'z', 'sub/other.md': 'other' }).start(),
    );
    await inbox.watcher.stop();
    inbox.rename('a.md', 'sub/b.md');
    inbox.rename('z/z.md', '0.md');
    await inbox.start();
    await inbox.becomes({
      'a.md': 'removing',
      'sub/b.md': 'pending',
      'z/z.md': 'removing',
      '0.md': 'pending',
    });
    const logged = inbox.lines
      .filter((line) => line.includes('renamed') || line.includes('removed'))
      .toSorted();
    expect(logged).toEqual([RENAMED, 'info: renamed inbox/z/z.md to inbox/0.md']);
  });

  it('is recorded when it is undone, and from folder to folder', async () => {
    const inbox = new Inbox({ 'a.md': 'a' });
    mkdirSync(inbox.at('../other'));
    const other = folderOf(inbox.at('../other'), { name: 'other', url: 'https://o.example/' });
    await inbox.start({ folders: [folderOf(inbox.root), other] });
    inbox.rename('a.md', '../other/a.md');
    await until(
      () => inbox.logged('renamed inbox/a.md to other/a.md') === 1,
      'the rename is logged',
    );
    await inbox.idle();
    inbox.rename('../other/a.md', 'a.md');
    await until(
      () => inbox.logged('renamed other/a.md to inbox/a.md') === 1,
      'the way back is logged',
    );
    expect(notes(inbox, 'a.md')).toEqual([
      'new file',
      'renamed to other/a.md',
      'renamed from other/a.md',
    ]);
  });

  it('is not a copy, a file with other content, or a new file with an old inode', async () => {
    const inbox = send(await new Inbox({ copied: 'one', changed: 'two', gone: 'three' }).start());
    inbox.write('copy', 'one');
    inbox.remove('copied', 'gone');
    inbox.write('new', 'three');
    inbox.append('changed', ' and more');
    inbox.rename('changed', 'changed and renamed');
    await inbox.becomes({
      copied: 'removing',
      changed: 'removing',
      gone: 'removing',
      new: 'pending',
    });
    await inbox.becomes({ copy: 'pending', 'changed and renamed': 'pending' });
    expect(inbox.logged('renamed ')).toBe(0);
  });
});
