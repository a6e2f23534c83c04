import { expect, it } from 'vitest';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';

const KEY = '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA hunter2secret\n';

it('secrets and packages are not pushed unless the folder allows them, and why names the rule', async () => {
  const site = await Site.begin();
  site.drop('inbox/note.txt', 'a note beside secrets\n');
  site.drop('inbox/.env', 'PASSWORD=hunter2secret\n');
  site.drop('inbox/.ssh/config', 'Host hunter2secret\n');
  site.drop('inbox/work/deploy-key.txt', KEY);
  site.drop('inbox/node_modules/a/readme.md', 'hunter2secret\n');
  await site.start();
  await site.confirmed('inbox/note.txt');
  await until(
    async () => (await site.why('inbox/work/deploy-key.txt')).status === 'skipped',
    'the key is skipped',
  );

  const why = async (file: string) => (await site.run('why', site.path(file))).stdout;
  expect(await why('inbox/.env')).toContain('IgnoreDefaults of folder "inbox": ".env*"');
  expect(await why('inbox/.ssh/config')).toContain('IgnoreDefaults of folder "inbox": ".ssh/"');
  expect(await why('inbox/work/deploy-key.txt')).toContain('The file holds a private key');
  expect(site.proxy.pushes.flatMap(({ urls }) => urls)).toEqual([site.url('inbox/note.txt')]);

  site.configure({ folders: [{ name: 'inbox', ignoreDefaults: false }] });
  await site.hangUp();
  await site.confirmed(
    'inbox/.env',
    'inbox/.ssh/config',
    'inbox/work/deploy-key.txt',
    'inbox/node_modules/a/readme.md',
  );
  await site.stop();
});
