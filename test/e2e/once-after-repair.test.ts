import { readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Site } from '../support/site.js';

/** The journal of a state directory that was begun last. */
function journalOf(stateDirectory: string): string {
  const journals = readdirSync(stateDirectory).filter((name) => name.startsWith('journal-'));
  return join(stateDirectory, journals.sort().at(-1) ?? '');
}

it('after a damaged journal, `once` ends only after every document was looked up in the peer', async () => {
  const site = await Site.begin();
  site.drop('inbox/a.txt', 'the first version\n');
  expect(await site.run('once')).toMatchObject({ code: 0 });
  const { size } = statSync(journalOf(site.stateDirectory));
  site.drop('inbox/a.txt', 'the second version\n');
  expect(await site.run('once')).toMatchObject({ code: 0 });

  // The state knows the first version as confirmed, the file has it again, and the peer has the
  // second.
  truncateSync(journalOf(site.stateDirectory), size + 10);
  rmSync(join(site.stateDirectory, 'acknowledged'));
  site.drop('inbox/a.txt', 'the first version\n');
  const ended = await site.run('once');
  expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining('State repaired') });
  expect(ended.stdout).toContain('1 confirmed');
  await site.expectAllInPeer();
  expect(await site.differences()).toEqual([]);

  // Everything was asked for once, and not again.
  const { lines } = await site.json<{ requests: { peerdoc: number } }>('once');
  expect(lines.at(-1)?.requests.peerdoc).toBe(0);
});
