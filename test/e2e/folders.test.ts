import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';

it('once ends when all that waits is in a folder that is away, and says which, how many files wait and what to do', {
  timeout: 240_000,
}, async () => {
  const directory = temporaryDirectory();
  const notes = join(directory, 'notes');
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: join(directory, 'peer'), port: 0 } },
    folders: [{ name: 'notes' }, { name: 'inbox' }],
  });
  const run = (...args: string[]) => peersync([...args, '--config', config]);
  const once = async () => {
    const { code, stdout, stderr } = await run('once', '--json', '--timeout', '2m');
    const error = code === 0 ? undefined : JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '').error;
    return { code, items: JSON.parse(stdout).items, error };
  };
  for (const name of ['a.md', 'b.md', 'c.md']) writeFileSync(join(notes, name), `# ${name}\n`);
  writeFileSync(join(directory, 'inbox', 'plan.md'), '# A plan\n');
  expect((await run('pause')).code).toBe(0);
  expect(await once()).toMatchObject({ error: { code: 'PAUSED' } });
  expect((await run('resume')).code).toBe(0);
  renameSync(notes, `${notes}.away`);
  const held = await once();
  expect(held).toMatchObject({
    code: 1,
    items: { confirmed: 1, pending: 3 },
    error: { code: 'FOLDER_HELD' },
  });
  expect(held.error.message).toContain(`The folder notes was left out: The folder ${notes} is not there`);
  expect(held.error.message).toContain('3 files of it wait to be pushed.');
  expect(held.error.hint).toContain('then run again');
  renameSync(`${notes}.away`, notes);
  expect(await once()).toMatchObject({ code: 0, items: { confirmed: 4, pending: 0 } });
  renameSync(notes, `${notes}.away`);
  const without = await once();
  expect(without).toMatchObject({ code: 1, items: { confirmed: 4 }, error: { code: 'FOLDER_HELD' } });
  expect(without.error.message).not.toContain('to be pushed');
});
