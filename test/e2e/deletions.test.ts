import { rmSync } from 'node:fs';
import { beforeEach, expect, it } from 'vitest';
import { answering, stranger, well, when } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';

const names = Array.from({ length: 30 }, (_, i) => `inbox/f${String(i).padStart(2, '0')}.txt`);
let site: Site;

/** Returns the number of items in each status, without zeros. */
async function counts(): Promise<Readonly<Record<string, number>>> {
  const { items } = JSON.parse((await site.run('status', '--json')).stdout) as {
    items: Record<string, number>;
  };
  return Object.fromEntries(Object.entries(items).filter(([, count]) => count > 0));
}

/** Returns the number of these files that have a document in the peer. */
async function shown(files: readonly string[]): Promise<number> {
  const runs = await Promise.all(files.map((name) => site.run('doc', site.url(name))));
  return runs.filter(({ code }) => code === 0).length;
}

/** Files that are confirmed, by a folder that removes documents. */
async function confirmed(files: readonly string[]): Promise<void> {
  site.configure({ folders: [{ name: 'inbox', onDelete: 'remove' }] });
  for (const name of files) site.drop(name);
  expect((await site.run('once')).code).toBe(0);
  expect(await counts()).toEqual({ confirmed: files.length });
}

beforeEach(async () => {
  site = await Site.begin();
});

it('the document of a removed file is removed at once by a daemon, and comes back with the file', async () => {
  await confirmed(names.slice(0, 3));
  await site.start();
  rmSync(site.path('inbox/f00.txt'));
  await until(async () => (await counts()).removed === 1, 'it is removed');
  expect(await shown(names.slice(0, 3))).toBe(2);
  expect((await site.run('why', 'inbox/f00.txt')).stdout).toContain(
    'the document is gone from the peer',
  );
  site.drop('inbox/f00.txt');
  await until(async () => (await counts()).confirmed === 3, 'it is confirmed again');
  expect(await shown(names.slice(0, 3))).toBe(3);
});

it('the document of a removed file is removed from a separate embedded peer once its kind is known', async () => {
  site.configure({ folders: [{ name: 'inbox' }] });
  for (const name of names.slice(0, 3)) site.drop(name);
  expect((await site.run('once')).code).toBe(0);
  rmSync(site.path('inbox/f00.txt'));
  expect((await site.run('once')).code).toBe(0);
  expect(await counts()).toEqual({ confirmed: 2, removed: 1 });
  site.proxy.behaviour = answering(503, 'away');
  await site.start();
  rmSync(site.path('inbox/f01.txt'));
  await until(async () => (await counts()).gone === 1, 'the file is gone');
  expect((await site.run('why', 'inbox/f01.txt')).stdout).toContain(
    'as long as the peer has not answered',
  );
  site.proxy.behaviour = well;
  await until(async () => (await counts()).removed === 2, 'its document is removed');
  expect(await shown(names.slice(0, 3))).toBe(1);
});

it('the document of a removed file stays in a peer that may not be an embedded one', async () => {
  site.configure({ folders: [{ name: 'inbox' }] });
  site.proxy.behaviour = stranger;
  for (const name of names.slice(0, 2)) site.drop(name);
  expect((await site.run('once')).code).toBe(0);
  rmSync(site.path('inbox/f00.txt'));
  expect((await site.run('once')).code).toBe(0);
  expect(await counts()).toEqual({ confirmed: 1, gone: 1 });
  expect((await site.run('why', 'inbox/f00.txt')).stdout).toContain(
    'has no `onDelete`, and this is not the embedded peer',
  );
  expect(await shown(names.slice(0, 2))).toBe(2);
});

it('the document of a file that became empty is removed, and comes back with the text', async () => {
  await confirmed(names.slice(0, 2));
  await site.start();
  site.drop('inbox/f00.txt', '');
  await until(async () => (await shown(names.slice(0, 1))) === 0, 'it is removed');
  await site.becomes('inbox/f00.txt', 'skipped');
  expect((await site.why('inbox/f00.txt')).next).toContain(
    'The older version was removed from the peer.',
  );
  site.drop('inbox/f00.txt', 'text again');
  await site.confirmed('inbox/f00.txt');
});

it('the document of a file that became empty stays if its folder keeps documents, until a person removes it', async () => {
  await confirmed(names.slice(0, 2));
  site.configure({ folders: [{ name: 'inbox', onDelete: 'keep' }] });
  site.drop('inbox/f00.txt', '');
  expect((await site.run('once')).code).toBe(0);
  expect((await site.run('list')).stdout).toContain('An older version of it is still searchable.');
  const why = (await site.run('why', 'inbox/f00.txt')).stdout;
  expect(why).toMatch(/still searchable, and stays, .*`peersync forget inbox --remove`/);
  expect(await shown(names.slice(0, 1))).toBe(1);
  expect((await site.run('forget', 'inbox', '--remove', '--yes')).code).toBe(0);
  expect((await site.run('once')).code).toBe(0);
  expect(await counts()).toEqual({ confirmed: 1, skipped: 1 });
  expect(await shown(names.slice(0, 1))).toBe(0);
});

it('the documents of very many removed files stay until a person approves their removal, even without a daemon', async () => {
  await confirmed(names);
  for (const name of names.slice(0, 25)) rmSync(site.path(name));
  for (let run = 0; run < 2; run += 1) {
    const result = await site.run('once');
    expect(result.code).toBe(3);
    expect(result.stdout).toMatch(
      /25 of 30 files of the folder "inbox" .*`peersync approve-deletes inbox`/,
    );
  }
  expect((await site.run('status')).stdout).toContain('`peersync approve-deletes inbox`');
  const unasked = await site.run('approve-deletes', 'inbox');
  expect(unasked).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/inbox\/f00\.txt[\s\S]*and 22 more[\s\S]*--yes/) as unknown,
  });
  expect(await counts()).toEqual({ confirmed: 5, gone: 25 });
  const approved = await site.run('approve-deletes', 'inbox', '--yes');
  expect(approved.stdout).toContain(
    '25 documents of the folder "inbox" are removed from the peer by the next run',
  );
  expect((await site.run('once')).code).toBe(0);
  expect(await counts()).toEqual({ confirmed: 5, removed: 25 });
  expect(await shown(names.slice(23, 27))).toBe(2);
  expect((await site.run('approve-deletes', 'inbox', '--yes')).stderr).toContain(
    'No removed files',
  );
});

it.each([
  ['fails', answering(500, 'no'), 'PEER'],
  [
    'refuses the password',
    answering(401, 'no', { 'www-authenticate': 'Basic realm="peer"' }),
    'PEER',
  ],
  [
    'refuses each',
    answering(200, '{"items":[{"item":"0","success":"false","message":"no"}]}'),
    'REMOVALS_FAIL',
  ],
])(
  'a peer that %s removals still accepts documents, and the failure is reported',
  async (_, behaviour, code) => {
    await confirmed(names.slice(0, 3));
    site.proxy.behaviour = when(({ path }) => path === '/api/remove_p.html', behaviour);
    await site.start();
    rmSync(site.path('inbox/f00.txt'));
    const conditions = async () =>
      (await site.status()).conditions.map((one) => `${one.severity} ${one.code}`);
    await until(async () => (await conditions()).includes(`warning ${code}`), 'somebody is told');
    site.drop('inbox/new.txt');
    await site.confirmed('inbox/new.txt');
    expect(await counts()).toEqual({ confirmed: 3, removing: 1 });
    site.proxy.behaviour = well;
    await until(async () => (await counts()).removed === 1, 'it is removed');
  },
);

it('once ends if the peer refuses to remove a document, and reports it', async () => {
  await confirmed(names.slice(0, 2));
  const refusal = answering(200, '{"items":[{"item":"0","success":"false","message":"not mine"}]}');
  site.proxy.behaviour = when(({ path }) => path === '/api/remove_p.html', refusal);
  rmSync(site.path('inbox/f00.txt'));
  const { code, stderr } = await site.run('once');
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /The peer still has 1 document of removed files, .*inbox\/f00\.txt: .*not mine/,
  );
  expect(await counts()).toEqual({ confirmed: 1, removing: 1 });
  site.proxy.behaviour = well;
  expect((await site.run('once')).code).toBe(0);
  expect(await counts()).toEqual({ confirmed: 1, removed: 1 });
});

it('a folder that left the configuration keeps its documents until forget removes them', async () => {
  await confirmed(names.slice(0, 3));
  site.configure({ folders: [{ name: 'notes', onDelete: 'remove' }] });
  site.drop('notes/a.txt');
  expect((await site.run('once')).code).toBe(0);
  expect(await counts()).toEqual({ confirmed: 1, gone: 3 });
  expect(await shown(names.slice(0, 3))).toBe(3);
  expect((await site.run('status')).stdout).toContain(
    'The folder "inbox" is not in the configuration any more; the peer may still have 3 documents',
  );
  expect((await site.run('forget', 'inbox', '--remove')).code).toBe(2);
  const forgotten = await site.run('forget', 'inbox', '--remove', '--yes');
  expect(forgotten.stdout).toBe('3 documents of the folder "inbox" to be removed from the peer.\n');
  expect((await site.run('once')).code).toBe(0);
  expect(await shown(names.slice(0, 3))).toBe(0);
  expect((await site.run('forget', 'inbox', '--yes')).stdout).toBe(
    '3 files of the folder "inbox" forgotten.\n',
  );
  expect(await counts()).toEqual({ confirmed: 1 });
});

it('forget refuses to leave documents in the peer without --keep', async () => {
  await confirmed(names.slice(0, 3));
  site.configure({ folders: [{ name: 'notes' }] });
  expect((await site.run('once')).code).toBe(0);
  for (const words of [
    ['forget', 'inbox'],
    ['forget', 'inbox', '--yes'],
  ])
    expect(await site.run(...words)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /Nothing was forgotten, for the peer has 3 documents of the folder "inbox".*\n.*inbox --remove --yes` removes them, .*inbox --keep/,
      ) as unknown,
    });
  expect((await site.run('forget', 'inbox', '--remove', '--keep')).code).toBe(2);
  expect(await counts()).toEqual({ gone: 3 });
  expect((await site.run('forget', 'inbox', '--remove', '--yes')).code).toBe(0);
  // They are being removed, and would stay for ever if that were forgotten.
  expect((await site.run('forget', 'inbox', '--yes')).code).toBe(2);
  expect((await site.run('once')).code).toBe(0);
  expect(await shown(names.slice(0, 3))).toBe(0);
});

it('forget --keep leaves the documents in the peer, and names the command that removes them', async () => {
  await confirmed(names.slice(0, 2));
  site.configure({ folders: [{ name: 'notes' }] });
  expect((await site.run('once')).code).toBe(0);
  const kept = await site.run('forget', 'inbox', '--keep', '--yes');
  expect(kept.stdout).toMatch(
    /^2 files of the folder "inbox" forgotten; the peer keeps 2 documents\. `peersync push --remove URL`/,
  );
  expect(await counts()).toEqual({});
  expect(await shown(names.slice(0, 2))).toBe(2);
  expect((await site.run('push', '--remove', site.url('inbox/f00.txt'), '--yes')).code).toBe(0);
  expect(await shown(names.slice(0, 2))).toBe(1);
});
