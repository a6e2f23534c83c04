import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { approve } from '../../src/api/approve-deletes.js';
import { forgetFolder } from '../../src/api/forget.js';
import { statusReport } from '../../src/report/status.js';
import { explain } from '../../src/report/why.js';
import type { Entry, SkippedWithDocument } from '../../src/state/entry.js';
import { accepted, gone, removed, removing, skipped } from '../../src/state/transitions.js';
import { massDeletion, massDeletionCondition } from '../../src/watch/mass-deletions.js';
import { failures } from '../../src/watch/rules/failures.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { setUp } from './world.js';

const HELD = { files: 25, of: 40, examples: ['a', 'b', 'c'], since: 5, before: 10 };
const sent = (path: string, folder = 'inbox') => {
  const item = pendingRecord(path, folder);
  return accepted(item, sentOf(item), 1);
};
const goneAt = (path: string, at: number, folder = 'inbox') => gone(sent(path, folder), at);
const excluded = (path: string, why = failures.excluded('inbox')) => {
  const item = sent(path);
  return skipped(item, item, item.version, why, 1);
};

async function world(onDelete: 'remove' | 'keep' = 'remove', ...records: readonly Entry[]) {
  const set = await setUp({ onDelete, url: 'https://files.example.org/inbox/' });
  for (const record of records) set.state.put(record);
  const statuses = (folder = 'inbox') =>
    Object.fromEntries(
      [...set.state.entries.all(folder)].map(({ path, status }) => [path, status]),
    );
  return { ...set, statuses };
}

describe('very many removed files', () => {
  it('are a condition that says how many, which and what to type; not where the folder keeps documents', async () => {
    const { config, state, now } = await world();
    state.setMeta('watch.held-deletes.inbox', HELD);
    const [condition] = statusReport(config, state, undefined, now).conditions;
    expect(condition).toMatchObject({
      code: 'DELETES_AWAIT_APPROVAL',
      severity: 'warning',
      subject: 'inbox',
      since: 5,
    });
    expect(condition?.message).toMatch(/^25 of 40 files of the folder "inbox" .* a, b, c;/);
    expect(condition?.hint).toContain('`peersync approve-deletes inbox`');
    const folders = config.folders.map((folder) => ({ ...folder, onDelete: 'keep' as const }));
    expect(statusReport({ ...config, folders }, state, undefined, now).conditions).toEqual([]);
  });

  it('are approved as they were shown, and no more than that', async () => {
    const set = await world();
    const ask = (files: number, folder = 'inbox') => approve(set, { folder, files });
    await expect(ask(25)).rejects.toMatchObject({ code: 'NOTHING_TO_APPROVE' });
    await expect(ask(25, 'none')).rejects.toMatchObject({ code: 'UNKNOWN_FOLDER' });
    set.state.setMeta('watch.held-deletes.inbox', HELD);
    await expect(ask(24)).rejects.toMatchObject({ code: 'DELETES_CHANGED' });
    expect(set.state.meta('watch.approved-deletes.inbox')).toBeUndefined();
    expect(await ask(25)).toEqual(HELD);
    expect(set.state.meta('watch.approved-deletes.inbox')).toBe(HELD.before);
    expect(massDeletion(set.state, 'inbox')).toEqual(HELD);
    // They wait for the next scan, and for nobody any more.
    expect(statusReport(set.config, set.state, undefined, set.now).conditions).toEqual([]);
    set.state.put(goneAt('a', 9));
    const { next } = await explain(join(set.inbox, 'a'), set.config, set.state, undefined);
    expect(next).toMatch(/^A full scan of the folder is to show/);
  });
});

it.each<[string, Entry, RegExp]>([
  ['waits for a scan', goneAt('a', 20), /^A full scan of the folder is to show/],
  ['is held', goneAt('a', 9), /waits for `peersync approve-deletes inbox`/],
  ['never was one', gone(pendingRecord('a'), 9), /^Nothing\.$/],
  [
    'is being removed',
    removing(goneAt('a', 9), 9),
    /^It is removed from the peer when the daemon runs/,
  ],
  [
    'is gone',
    removed(removing(goneAt('a', 9), 9), 9),
    /^Nothing: the document is gone from the peer/,
  ],
])('`why` says of the document of a removed file that it %s', async (_, entry, words) => {
  const { config, inbox, state } = await world('remove', entry);
  state.setMeta('watch.held-deletes.inbox', HELD);
  expect((await explain(join(inbox, 'a'), config, state, undefined)).next).toMatch(words);
});

it('commands that a person is to type take a folder whose name has a blank', () => {
  const name = 'My notes';
  const hints = [
    massDeletionCondition(name, HELD).hint,
    failures.excluded(name).hint,
    failures.rootReplaced('/a', name).hint,
  ];
  for (const hint of hints) expect(hint).toContain("'My notes'");
});

it('`why` says why the peer keeps the document of a removed file', async () => {
  const { config, inbox, state } = await world('keep', goneAt('a', 9));
  const [folder] = config.folders;
  const next = async (changes: object) => {
    const changed = { ...config, folders: [{ ...folder, ...changes }] } as typeof config;
    return (await explain(join(inbox, 'a'), changed, state, undefined)).next;
  };
  expect(await next({})).toContain('as `onDelete` of the folder has it');
  const moved = { onDelete: 'remove', url: 'https://new.example/' };
  expect(await next(moved)).toContain('`peersync forget inbox --remove`');
});

const emptied = excluded('a', failures.empty());
const leaving = removing(emptied as SkippedWithDocument, 9);

it.each<[string, 'remove' | 'keep', Entry, RegExp]>([
  [
    'is kept, and what to do',
    'keep',
    emptied,
    /still searchable, and stays, .*`peersync forget inbox --remove`/,
  ],
  [
    'waits for a scan',
    'remove',
    { ...emptied, since: 20 },
    /still searchable\. A full scan of the folder/,
  ],
  ['is held', 'remove', emptied, /still searchable\. .*waits for `peersync approve-deletes inbox`/],
  ['is being removed', 'remove', leaving, /^It is removed from the peer when the daemon runs/],
  ['is gone', 'remove', removed(leaving, 9), /The older version was removed from the peer\.$/],
  [
    'is kept, for a rule excludes the file',
    'remove',
    excluded('a'),
    /still searchable; `peersync forget inbox/,
  ],
])(
  '`why` says of the older version of a file that became empty that it %s',
  async (_, onDelete, entry, words) => {
    const { config, inbox, state } = await world(onDelete, entry);
    state.setMeta('watch.held-deletes.inbox', HELD);
    writeFileSync(join(inbox, 'a'), '');
    const why = await explain(join(inbox, 'a'), config, state, undefined);
    expect(why.next).toMatch(words);
    expect(why.failure?.code).toMatch(/^(EMPTY|EXCLUDED)$/);
  },
);

describe('forget', () => {
  const old = [goneAt('a', 1, 'old'), sent('b', 'old'), gone(pendingRecord('c', 'old'), 1)];

  it('forgets a folder that left the configuration, after it said how many files that are', async () => {
    const set = await world('remove', ...old, sent('stays'));
    const ask = (atMost?: number) => forgetFolder(set, { folder: 'old', remove: false, atMost });
    expect(await ask()).toMatchObject({ records: 3, documents: 0, isDone: false });
    await expect(ask(2)).rejects.toMatchObject({ code: 'DELETES_CHANGED' });
    expect(await ask(3)).toMatchObject({ isDone: true });
    expect([set.statuses('old'), set.statuses()]).toEqual([{}, { stays: 'accepted' }]);
    await expect(ask()).rejects.toMatchObject({ code: 'UNKNOWN_FOLDER' });
  });

  it('removes its documents where that is asked for, but none that is another file’s now', async () => {
    const taken = { ...sent('b'), url: 'https://files.example.org/old/b' };
    const set = await world('remove', ...old, taken);
    const request = { folder: 'old', remove: true };
    const effect = await forgetFolder(set, request);
    expect(effect).toMatchObject({ records: 3, documents: 1, examples: ['a'] });
    await forgetFolder(set, { ...request, atMost: 1 });
    expect(set.statuses('old')).toEqual({ a: 'removing' });
    expect(set.statuses()).toEqual({ b: 'accepted' });
  });

  it('removes what rules exclude in a folder of the configuration, what became empty, and what has another URL now', async () => {
    const moved = {
      ...goneAt('moved', 1),
      sent: { ...sent('moved').sent, url: 'https://old.example/moved' },
    };
    const kept = [sent('live'), goneAt('gone', 1)];
    const empty = excluded('empty', failures.empty());
    const set = await world('keep', excluded('out'), empty, moved, ...kept);
    await expect(forgetFolder(set, { folder: 'inbox', remove: false })).rejects.toMatchObject({
      code: 'FOLDER_CONFIGURED',
    });
    await forgetFolder(set, { folder: 'inbox', remove: true, atMost: 3 });
    expect(set.statuses()).toEqual({
      out: 'removing',
      empty: 'removing',
      moved: 'removing',
      live: 'accepted',
      gone: 'gone',
    });
    expect(set.state.get('inbox', 'empty')).toMatchObject({ keptOut: { code: 'EMPTY' } });
    expect(set.state.get('inbox', 'out')).not.toHaveProperty('keptOut');
    expect(set.state.get('inbox', 'moved')).toMatchObject({ url: 'https://old.example/moved' });
  });
});
