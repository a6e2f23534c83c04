import { renameSync, rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';

describe('a name with invisible characters', () => {
  it('is printed the same way everywhere, and commands accept that form', async () => {
    const site = await Site.begin();
    site.daemonEnv = { PEERSYNC_LOG: 'pretty', NO_COLOR: '1' };
    site.drop('inbox/first\nsecond.txt', 'one name in two lines\n');
    site.drop('inbox/zero\u200bwidth.txt', '');
    await site.start();
    await site.confirmed('inbox/first\nsecond.txt');
    await site.daemon.says('INFO: confirmed inbox/first\\x0asecond.txt (');
    await site.daemon.says('INFO: skipped inbox/zero\\u200bwidth.txt: The file is empty.');
    const { stdout: listed } = await site.run('list');
    expect(listed).toContain('  inbox/first\\x0asecond.txt\n');
    expect(listed).toContain('  inbox/zero\\u200bwidth.txt\n');
    for (const name of [
      'inbox/first\\x0asecond.txt',
      'first\\x0asecond.txt',
      './inbox/first\\x0asecond.txt',
    ])
      expect((await site.run('why', name)).stdout).toMatch(
        /^file .*\/inbox\/first\\x0asecond\.txt\nstatus +confirmed/,
      );
    const retried = await site.run('retry', 'inbox/zero\\u200bwidth.txt');
    expect(retried).toMatchObject({ code: 0, stdout: '1 file is looked at again.\n' });
    await site.stop();
  });

  it('is found by that form after the file is gone, and a file with exactly that name is found first', async () => {
    const site = await Site.begin({ folders: [{ name: 'inbox', onDelete: 'keep' }] });
    site.drop('inbox/a\tb.txt', 'a name with a tabulator\n');
    site.drop('inbox/a\\x09c.txt', 'a name with a backslash\n');
    await site.start();
    await site.confirmed('inbox/a\tb.txt', 'inbox/a\\x09c.txt');
    rmSync(site.path('inbox/a\tb.txt'));
    await site.becomes('inbox/a\tb.txt', 'gone');
    const why = async (name: string) =>
      (await site.json<{ path: string; status: string }>('why', name)).lines[0];
    expect(await why('inbox/a\\x09b.txt')).toMatchObject({ path: 'a\tb.txt', status: 'gone' });
    expect(await why('inbox/a\\x09c.txt')).toMatchObject({
      path: 'a\\x09c.txt',
      status: 'confirmed',
    });
    await until(async () => (await site.status()).items.gone === 1, 'one is gone');
    await site.stop();
  });
});

it('why explains a rename by both names, and the log has it in one line', async () => {
  const site = await Site.begin({ folders: [{ name: 'inbox', onDelete: 'remove' }] });
  site.drop('inbox/draft.md', 'a note that gets another name\n');
  await site.start();
  await site.confirmed('inbox/draft.md');
  renameSync(site.path('inbox/draft.md'), site.path('inbox/note.md'));
  await site.confirmed('inbox/note.md');
  await site.becomes('inbox/draft.md', 'removed');
  expect((await site.run('why', 'inbox/draft.md')).stdout).toMatch(
    /^name +renamed to inbox\/note\.md$/m,
  );
  expect((await site.run('why', 'inbox/note.md')).stdout).toMatch(
    /^name +renamed from inbox\/draft\.md$/m,
  );
  const renames = site.daemon.logged.filter((line) => /draft|removed/.test(line));
  expect(renames).toEqual(['info: renamed inbox/draft.md to inbox/note.md']);
  await site.stop();
});
