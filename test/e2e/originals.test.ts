import { once } from 'node:events';
import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type RawAnswer, type SearchJson, send } from '../embedded/support.js';
import { peersync, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const MANY = 3_000_000;

/** A daemon with a peer of its own, which has confirmed a note, a page and a large text. */
async function setUp(embedded: object = {}) {
  const directory = temporaryDirectory();
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0, ...embedded } },
  });
  const inbox = (name: string) => join(directory, 'inbox', name);
  writeFileSync(inbox('tea notes.txt'), 'Grüner Tee\n');
  writeFileSync(inbox('page.html'), '<script>alert(1)</script> tea');
  writeFileSync(inbox('large.txt'), 'tea '.repeat(MANY));
  writeFileSync(inbox('scan 2024.txt'), '');
  const run = new Running(['run', '-c', config]);
  for (const name of ['tea notes.txt', 'page.html', 'large.txt'])
    await run.says(`confirmed inbox/${name}`);
  await run.says('skipped inbox/scan 2024.txt');
  const url = /search it at (http:\/\/127\.0\.0\.1:\d+)\//.exec(run.stdout)?.[1] ?? '';
  const pathOf = (name: string) =>
    `/original?${new URLSearchParams({ url: `https://files.example.org/inbox/${encodeURIComponent(name)}` })}`;
  const original = (name: string): Promise<RawAnswer> =>
    send({ url }, pathOf(name), { headers: { accept: 'application/json' } });
  const search = async (query: string): Promise<SearchJson & { notIndexed?: object[] }> =>
    (await send({ url }, `/search.json?${new URLSearchParams({ query })}`)).json();
  return { config, directory, inbox, original, pathOf, run, search, url };
}

it('a search result leads to its file, and a file that is not searchable is found by its name', async () => {
  const { config, inbox, original, pathOf, run, search, url } = await setUp();
  const result = async () =>
    (await search('Grüner Tee')).items.map((item) => 'original' in item && item.original);
  await until(async () => (await result()).includes(true), 'the result has an original');
  expect((await send({ url }, '/?query=Tee')).body).toContain(`href="${pathOf('tea notes.txt')}"`);
  const note = await original('tea notes.txt');
  expect([note.status, note.body]).toEqual([200, 'Grüner Tee\n']);
  const page = await original('page.html');
  expect(page.headers).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': expect.stringMatching(/^attachment;/),
  });
  expect((await original('large.txt')).bytes.length).toBe(4 * MANY);
  expect(await original('scan 2024.txt')).toMatchObject({ status: 404 });

  const file = inbox('scan 2024.txt');
  expect(await search('scan')).toMatchObject({
    total: 0,
    notIndexed: [
      {
        path: file,
        status: 'skipped',
        code: 'EMPTY',
        reason: 'The file is empty.',
        command: `peersync why '${file}' -c ${config}`,
      },
    ],
  });
  const { code, stdout } = await peersync(['search', 'scan', '-c', config]);
  expect(code).toBe(0);
  expect(stdout).toContain(`not searchable: ${file} – skipped: The file is empty.`);
  expect(stdout).toContain(`\`peersync why '${file}' -c ${config}\` explains it.`);

  // The file becomes searchable, and its name is no longer listed.
  writeFileSync(file, 'The scan has words now.\n');
  await run.says('confirmed inbox/scan 2024.txt');
  expect(await search('scan')).toMatchObject({ total: 1 });
  expect(await search('scan')).not.toHaveProperty('notIndexed');
  expect((await run.kill('SIGTERM')).code).toBe(0);
});

it('what is swapped, changed or removed is not opened, and what changes while it is sent breaks off', async () => {
  const { directory, inbox, original, pathOf, run, url } = await setUp();
  expect((await original('tea notes.txt')).status).toBe(200);
  const request = get(`${url}${pathOf('large.txt')}`);
  const [response] = await once(request, 'response');
  writeFileSync(inbox('large.txt'), 'another text');
  const ended = await new Promise((resolve) => {
    response.on('end', () => resolve('whole')).on('error', () => resolve('broken off'));
    response.resume();
  });
  expect(ended).toBe('broken off');

  writeFileSync(join(directory, 'secret.txt'), 'secret');
  renameSync(inbox('tea notes.txt'), inbox('moved.txt'));
  symlinkSync(join(directory, 'secret.txt'), inbox('tea notes.txt'));
  const refused = await original('tea notes.txt');
  expect([404, 409]).toContain(refused.status);
  expect(refused.body).not.toContain('"secret"');
  for (const outside of ['file:///etc/passwd', `file://${directory}/secret.txt`]) {
    const address = `/original?${new URLSearchParams({ url: outside })}`;
    expect((await send({ url }, address)).status).toBe(404);
  }
  expect((await run.kill('SIGTERM')).code).toBe(0);
});

it('no file is served if the configuration says so', async () => {
  const { original, search, url } = await setUp({ originals: false });
  expect((await original('tea notes.txt')).json()).toMatchObject({
    status: 404,
    message:
      'Files are not opened here: `peer.embedded.originals` is false. Open the file by its path.',
  });
  expect((await search('Tee')).items.some((item) => 'original' in item)).toBe(false);
  expect((await send({ url }, '/?query=Tee')).body).not.toContain('/original');
});
