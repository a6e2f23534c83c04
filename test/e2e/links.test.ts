import { mkdirSync, symlinkSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Site } from '../support/site.js';

it('with followSymlinks, files behind links within the folder are confirmed, and files outside are not pushed', async () => {
  const site = await Site.begin({ folders: [{ name: 'inbox', followSymlinks: true }] });
  site.drop('inbox/real/note.txt', 'a note that links lead to\n');
  site.drop('outside/secret.txt', 'nothing for the peer\n');
  mkdirSync(site.path('inbox/links'));
  symlinkSync('../real/note.txt', site.path('inbox/links/file.txt'));
  symlinkSync('../real', site.path('inbox/links/directory'));
  symlinkSync(site.path('outside'), site.path('inbox/links/outside'));
  symlinkSync(site.path('outside/secret.txt'), site.path('inbox/links/secret.txt'));
  await site.start();

  await site.confirmed(
    'inbox/real/note.txt',
    'inbox/links/file.txt',
    'inbox/links/directory/note.txt',
  );
  const pushed = new Set(site.proxy.pushes.flatMap(({ urls }) => urls));
  expect([...pushed].sort()).toEqual(
    ['inbox/links/directory/note.txt', 'inbox/links/file.txt', 'inbox/real/note.txt'].map((file) =>
      site.url(file),
    ),
  );
  await site.stop();
});
