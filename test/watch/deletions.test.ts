import { describe, expect, it } from 'vitest';
import type { FolderConfig } from '../../src/config/config.js';
import { systemClock } from '../../src/lib/clock.js';
import { type Entry, keptOutFor } from '../../src/state/entry.js';
import { gone, removed } from '../../src/state/transitions.js';
import type { List } from '../../src/watch/lister.js';
import { approveDeletes, massDeletion } from '../../src/watch/mass-deletions.js';
import { until } from '../support/wait.js';
import { folderOf, Inbox, listHere, PEER, send } from './inbox.js';

const many = (count: number, directory = 'd') =>
  Array.from({ length: count }, (_, i) => `${directory}/f${String(i).padStart(3, '0')}`);
const sentInbox = async (files: readonly string[]) => send(await new Inbox(files).start());
const count = (inbox: Inbox, status: Entry['status']) => inbox.state.counts()[status];
const massDeletionOf = (inbox: Inbox) => massDeletion(inbox.state, 'inbox');

/** A folder without `onDelete`. */
const UNSET = { onDelete: undefined };

describe('the document of a removed file', () => {
  it('is removed after a full scan confirms that the file is absent', async () => {
    const inbox = await sentInbox(['a', 'b']);
    inbox.remove('a');
    await inbox.becomes({ a: 'removing', b: 'accepted' });
    const history = inbox.get('a')?.history.map(({ status }) => status);
    expect(history?.slice(-2)).toEqual(['gone', 'removing']);
    expect(inbox.logged('1 file was removed from "inbox"; its document goes, too')).toBe(1);
  });

  it('stays in the peer until a full scan has ended', async () => {
    const inbox = await sentInbox(['a', 'b']);
    await inbox.start({ policy: { deletionPauseMs: 60_000 } });
    const { lastScan } = inbox.folder;
    inbox.remove('a');
    await inbox.becomes({ a: 'gone' });
    inbox.write('later');
    await inbox.becomes({ later: 'pending' });
    inbox.expect({ a: 'gone' });
    expect(inbox.folder.lastScan).toBe(lastScan);
    await inbox.watcher.scanAll();
    inbox.expect({ a: 'removing', b: 'accepted' });
  });

  it('stays in the peer after the scan that missed the file, until a later scan misses it as well', async () => {
    const inbox = await sentInbox(['a', 'b', 'd/c']);
    const list: List = async (order) => {
      const listed = await listHere(order);
      // The scan goes on for a while after it found that the file is absent.
      if (order.directory.endsWith('/d')) await systemClock.sleep(20);
      return listed;
    };
    await inbox.start({ hints: false, list, policy: { deletionPauseMs: 60_000 } });
    const known = inbox.get('b');
    if (known?.status !== 'accepted') throw new Error('it was not sent');
    inbox.remove('a', 'b');
    inbox.state.put(gone(known, known.since));
    await inbox.watcher.scanAll();
    inbox.expect({ a: 'gone', b: 'removing' });
    await inbox.watcher.scanAll();
    inbox.expect({ a: 'removing', b: 'removing' });
  });

  it('is removed if the file was removed while no watcher ran', async () => {
    const inbox = await sentInbox(['a', 'b']);
    await inbox.watcher.stop();
    inbox.remove('a');
    await inbox.start({ hints: false });
    inbox.expect({ a: 'removing', b: 'accepted' });
  });

  it('is removed by default as soon as the peer is known to be an embedded one', async () => {
    let isEmbedded: boolean | undefined;
    const inbox = await sentInbox(['a', 'b']);
    await inbox.start({ folder: UNSET, peer: { ...PEER, isEmbedded: () => isEmbedded } });
    inbox.remove('a');
    await until(() => inbox.get('a')?.status === 'gone', 'the file is gone');
    await inbox.idle();
    inbox.expect({ a: 'gone', b: 'accepted' });
    isEmbedded = true;
    await inbox.watcher.scanAll();
    inbox.expect({ a: 'removing', b: 'accepted' });
  });

  it('is removed even if the clock was set back a day between the removal of the file and a restart', async () => {
    const inbox = await sentInbox(['a', 'b']);
    await inbox.watcher.stop();
    inbox.remove('a');
    const item = inbox.get('a');
    if (item?.status !== 'accepted') throw new Error('it was not accepted');
    inbox.state.put(gone(item, Date.now() + 86_400_000));
    await inbox.start({ hints: false });
    inbox.expect({ a: 'removing', b: 'accepted' });
  });

  it.each<[string, (inbox: Inbox) => unknown]>([
    ['the folder keeps documents', (inbox) => inbox.start({ folder: { onDelete: 'keep' } })],
    [
      'the folder has no onDelete, and the peer is not an embedded one',
      (inbox) => inbox.start({ folder: UNSET, peer: { ...PEER, isEmbedded: () => false } }),
    ],
    [
      'the folder has no onDelete, and the kind of peer is unknown',
      (inbox) => inbox.start({ folder: UNSET }),
    ],
    [
      'the folder has another URL now',
      (inbox) => inbox.start({ folder: { url: 'https://new.example/' } }),
    ],
    [
      'the root is missing',
      async (inbox) => {
        inbox.rename('.', '../away');
        await inbox.begin();
      },
    ],
    [
      'the root is another directory',
      async (inbox) => {
        inbox.replace();
        await inbox.begin();
      },
    ],
    [
      'the file is back and not at rest yet',
      async (inbox) => {
        inbox.write('a');
        await inbox.begin({ folder: { settle: 60_000 } });
      },
    ],
    [
      'the file comes back after a scan listed its directory',
      async (inbox) => {
        const listing = async (order: Parameters<typeof listHere>[0]) => {
          const listed = await listHere(order);
          inbox.write('a');
          return listed;
        };
        await inbox.begin({ hints: false, list: listing, folder: { settle: 60_000 } });
        await inbox.watcher.scanAll();
        await inbox.watcher.stop();
      },
    ],
    [
      'a new file that may be the same one is not read yet',
      async (inbox) => {
        inbox.rename('../a', 'c');
        await inbox.begin({ folder: { settle: 60_000 } });
      },
    ],
    [
      'a copy of it is not read yet',
      async (inbox) => {
        inbox.write('c', 'content of a');
        const known = inbox.get('a');
        if (known?.status === 'gone') inbox.state.put({ ...known, since: Date.now() });
        await inbox.begin({ folder: { settle: 60_000 } });
      },
    ],
    [
      'a file of another folder has its URL',
      async (inbox) => {
        const other = new Inbox({ a: 'other' });
        const { url } = folderOf(inbox.root);
        const folders = [folderOf(other.root, { name: 'other', url })];
        await inbox.start({ folders });
        await inbox.start({ folders: [...folders, folderOf(inbox.root)] });
      },
    ],
  ])('stays in the peer while %s', async (_, change) => {
    const inbox = await sentInbox(['a', 'b']);
    const known = inbox.get('a');
    if (known?.status !== 'accepted') throw new Error('it was not sent');
    await inbox.watcher.stop();
    inbox.rename('a', '../a');
    inbox.state.put(gone(known, known.since));
    await change(inbox);
    await inbox.watcher.scanAll();
    await inbox.watcher.scanAll();
    inbox.expect({ a: 'gone' });
  });

  it('stays in the peer if the file comes back and the root goes away while its removal is decided', async () => {
    const inbox = await sentInbox(['a', 'b']);
    const known = inbox.get('a');
    if (known?.status !== 'accepted') throw new Error('it was not sent');
    await inbox.watcher.stop();
    inbox.rename('a', '../a');
    inbox.state.put(gone(known, known.since));
    let isListed = false;
    let isAway = false;
    const list: List = async (order) => {
      const listed = await listHere(order);
      isListed = true;
      return listed;
    };
    // The kind of peer is asked when the removal is decided.
    const isEmbedded = () => {
      if (isListed && !isAway) {
        isAway = true;
        inbox.rename('../a', 'a');
        inbox.rename('.', '../away');
      }
      return true;
    };
    await inbox.begin({ hints: false, list, folder: UNSET, peer: { ...PEER, isEmbedded } });
    await inbox.reaches('held', 'FOLDER_MISSING');
    expect(isAway).toBe(true);
    inbox.expect({ a: 'gone', b: 'accepted' });
  });

  it('is not removed if it was never sent', async () => {
    const inbox = await new Inbox(['a', 'b']).start();
    inbox.remove('a');
    await inbox.becomes({ a: 'gone' });
    await inbox.rescan();
    inbox.expect({ a: 'gone' });
  });

  it('is removed if the file became empty before it was removed', async () => {
    const inbox = await sentInbox(['a', 'b']);
    await inbox.start({ folder: { onDelete: 'keep' } });
    inbox.truncate('a');
    await inbox.becomes({ a: 'skipped' });
    inbox.remove('a');
    await inbox.becomes({ a: 'gone' });
    await inbox.start();
    inbox.expect({ a: 'removing' });
  });

  it('is pushed again when the file is back', async () => {
    const inbox = await sentInbox(['a']);
    inbox.write('b');
    inbox.remove('a');
    await inbox.becomes({ a: 'removing' });
    inbox.write('a');
    await inbox.becomes({ a: 'pending' });
  });
});

describe('a mass deletion', () => {
  const removeMany = async (files: number, of: number) => {
    const inbox = await sentInbox([...many(files), ...many(of - files, 'rest')]);
    inbox.remove('d');
    return inbox;
  };
  const awaitsApproval = async (inbox: Inbox) => {
    await until(() => massDeletionOf(inbox) !== undefined, 'they await approval');
    const example: unknown = expect.stringMatching(/^d\/f/);
    expect(massDeletionOf(inbox)).toMatchObject({
      files: 25,
      of: 40,
      examples: [example, example, example],
    });
    expect(count(inbox, 'gone')).toBe(25);
    return inbox;
  };

  it.each([
    [20, 20],
    [25, 300],
  ])('is not the removal of %i files of %i', async (files, of) => {
    const inbox = await removeMany(files, of);
    await inbox.becomes({ 'd/f000': 'removing' });
    await inbox.idle();
    expect(count(inbox, 'removing')).toBe(files);
    expect(massDeletionOf(inbox)).toBeUndefined();
  });

  it('awaits the approval of a person, across a restart too; later removals are not part of it', async () => {
    const inbox = await awaitsApproval(await removeMany(25, 40));
    expect(inbox.logged('approve-deletes inbox')).toBe(1);
    await awaitsApproval(await inbox.start());
    approveDeletes(inbox.state, 'inbox');
    inbox.remove('rest/f000');
    await inbox.becomes({ 'rest/f000': 'gone' });
    await inbox.watcher.scanAll();
    expect(count(inbox, 'removing')).toBeGreaterThanOrEqual(25);
    expect(massDeletionOf(inbox)).toBeUndefined();
  });

  it('consists of the files of one minute; files that went over many minutes are removed', async () => {
    const inbox = await sentInbox([...many(40), ...many(25, 'e'), ...many(15, 'rest')]);
    await inbox.watcher.stop();
    inbox.remove('d', 'e');
    const now = Date.now();
    const goneAt = (path: string, at: number) => {
      const known = inbox.get(path);
      if (known?.status === 'accepted') inbox.state.put(gone(known, at));
    };
    for (const [i, path] of many(40).entries()) goneAt(path, now - 3_600_000 + 4_000 * i);
    for (const [i, path] of many(25, 'e').entries()) goneAt(path, now - 300_000 + 2_000 * i);
    await inbox.start({ hints: false });
    expect([count(inbox, 'removing'), count(inbox, 'gone')]).toEqual([40, 25]);
    expect(massDeletionOf(inbox)).toMatchObject({ files: 25, of: 80 });
    inbox.expect({ 'd/f039': 'removing', 'e/f000': 'gone' });
  });

  it('ends when files come back', async () => {
    const inbox = await awaitsApproval(await removeMany(25, 40));
    for (const path of many(10)) inbox.write(path);
    await inbox.becomes({ 'd/f000': 'accepted', 'd/f010': 'removing' });
    expect(massDeletionOf(inbox)).toBeUndefined();
  });

  it('counts removed files even if as many others had the same content', async () => {
    const files = Object.fromEntries(
      [...many(25), ...many(15, 'rest')].map((path) => [path, 'the same']),
    );
    const inbox = send(await new Inbox(files).start());
    for (const path of many(25).slice(0, 24)) inbox.remove(path);
    inbox.remove('rest');
    await until(() => massDeletionOf(inbox) !== undefined, 'they await approval');
    expect(massDeletionOf(inbox)).toMatchObject({ files: 38, of: 40 });
  });

  it('does not count files that are back and not read yet, however long they were gone', async () => {
    const inbox = await sentInbox(many(40));
    await inbox.watcher.stop();
    for (const entry of [...inbox.state.entries.all()])
      if (entry.status === 'accepted') inbox.state.put(gone(entry, Date.now() - 3_600_000));
    await inbox.begin({ folder: { settle: 60_000 } });
    await inbox.watcher.scanAll();
    expect(inbox.logged('approve-deletes inbox')).toBe(0);
  });

  it('does not count renamed files', async () => {
    const inbox = await sentInbox(many(40));
    inbox.rename('d', 'e');
    await inbox.becomes({ 'd/f000': 'removing', 'e/f000': 'pending' });
    await inbox.idle();
    expect(count(inbox, 'removing')).toBe(40);
    expect(massDeletionOf(inbox)).toBeUndefined();
  });
});

describe('the document of a file that is there and skipped', () => {
  it.each<[string, string, (inbox: Inbox) => void]>([
    ['empty', 'EMPTY', (inbox) => inbox.truncate('a')],
    ['binary', 'NOT_TEXT', (inbox) => inbox.write('a', Uint8Array.of(0, 1, 2, 255, 0))],
    ['too large', 'TOO_LARGE', (inbox) => inbox.write('a', Buffer.alloc(1_048_577, 'a '))],
  ])('is removed when the file became %s', async (_, code, change) => {
    const inbox = await sentInbox(['a', 'b']);
    change(inbox);
    await inbox.becomes({ a: 'removing', b: 'accepted' });
    expect(inbox.get('a')).toMatchObject({
      keptOut: { code },
      sent: { url: expect.anything() as unknown },
    });
    await inbox.rescan();
    inbox.expect({ a: 'removing' });
  });

  it.each<[string, Partial<FolderConfig>]>([
    ['the folder keeps documents', { onDelete: 'keep' }],
    ['the folder has another URL now', { url: 'https://new.example/' }],
  ])('stays in the peer while %s', async (_, folder) => {
    const inbox = await sentInbox(['a', 'b']);
    await inbox.start({ folder });
    inbox.truncate('a');
    await inbox.becomes({ a: 'skipped' });
    await inbox.rescan();
    inbox.expect({ a: 'skipped' });
    expect(inbox.get('a')).toMatchObject({ sent: { url: expect.anything() as unknown } });
  });

  it('is removed if the file was skipped already when the watch began', async () => {
    const inbox = await sentInbox(['a']);
    await inbox.start({ folder: { onDelete: 'keep' } });
    inbox.truncate('a');
    await inbox.becomes({ a: 'skipped' });
    await inbox.start();
    inbox.expect({ a: 'removing' });
  });

  it('stays in removal while the skipped file changes, and when the file is removed', async () => {
    const inbox = await sentInbox(['a', 'b']);
    inbox.truncate('a');
    await inbox.becomes({ a: 'removing' });
    inbox.write('a', Uint8Array.of(0, 1, 255, 0));
    await until(() => keptOutFor(inbox.get('a'))?.code === 'NOT_TEXT', 'it is known to be binary');
    inbox.expect({ a: 'removing' });
    inbox.remove('a');
    await until(() => keptOutFor(inbox.get('a')) === undefined, 'it is known to be gone');
    await inbox.becomes({ a: 'removing' });
  });

  it('is pushed again when the file is text again; once the document is removed, the file is skipped', async () => {
    const inbox = await sentInbox(['a', 'b']);
    inbox.truncate('a');
    inbox.truncate('b');
    await inbox.becomes({ a: 'removing', b: 'removing' });
    inbox.write('a', 'text again');
    await inbox.becomes({ a: 'pending' });
    const leaving = inbox.get('b');
    if (leaving?.status === 'removing') inbox.state.put(removed(leaving, Date.now()));
    await inbox.rescan();
    inbox.expect({ b: 'skipped' });
    expect(inbox.get('b')).not.toHaveProperty('sent');
    inbox.write('b', 'text again');
    await inbox.becomes({ b: 'pending' });
  });

  it('awaits approval if very many files became empty at once', async () => {
    const inbox = await sentInbox(many(40));
    for (const path of many(25)) inbox.truncate(path);
    await until(() => massDeletionOf(inbox) !== undefined, 'they await approval');
    expect(massDeletionOf(inbox)).toMatchObject({ files: 25, of: 40 });
    expect(count(inbox, 'skipped')).toBe(25);
    for (const path of many(10)) inbox.write(path);
    await inbox.becomes({ 'd/f000': 'accepted', 'd/f010': 'removing' });
  });
});

describe('a rule that excludes a file with a document in the peer', () => {
  it('removes nothing, and the record of the document stays until the file is taken again', async () => {
    const inbox = await sentInbox(['a', 'd/b', 'c']);
    inbox.write('never-sent');
    await inbox.becomes({ 'never-sent': 'pending' });
    inbox.write('.peersyncignore', 'a\nd/\nnever-sent\n');
    await inbox.becomes({ a: 'skipped', 'd/b': 'skipped', 'never-sent': undefined });
    expect(inbox.get('a')).toMatchObject({
      failure: { code: 'EXCLUDED' },
      sent: { url: expect.anything() },
    });
    inbox.remove('d/b');
    await inbox.rescan();
    await inbox.rescan();
    inbox.expect({ a: 'skipped', 'd/b': 'skipped', c: 'accepted' });
    inbox.remove('.peersyncignore');
    await inbox.becomes({ a: 'accepted', 'd/b': 'removing' });
  });
});
