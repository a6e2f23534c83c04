import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { checkFolder, checkWritable, openToOthers } from '../../src/commands/check-machine.js';
import { checkMirrored } from '../../src/commands/check-peer.js';
import type { Finding } from '../../src/commands/finding.js';
import type { ShareMirrorConfig } from '../../src/config/config.js';
import { checkConfig } from '../../src/config/load.js';
import type { PeerClient } from '../../src/peer/client.js';
import { temporaryDirectory } from '../support/temp.js';

it('check counts the directories that are watched, and none that rules keep out', async () => {
  const directory = temporaryDirectory();
  for (const path of ['a/b', '.git/objects/00', 'kept/out'])
    mkdirSync(join(directory, path), { recursive: true });
  writeFileSync(join(directory, '.peersyncignore'), 'kept/\n');
  const config = await checkConfig(
    { folders: [{ path: directory, collection: 'c' }] },
    '/srv/config.json',
  );
  const [folder] = config.folders;
  if (folder === undefined) throw new Error('no folder');
  expect(await checkFolder(folder, undefined)).toMatchObject({
    directories: 3,
    finding: { ok: true, message: `${directory} is readable, 3 directories` },
  });
});

it('check says of a folder that is a file that it is no directory', async () => {
  const path = join(temporaryDirectory(), 'plan.md');
  writeFileSync(path, 'a plan');
  const config = await checkConfig({ folders: [{ path, collection: 'c' }] }, '/srv/config.json');
  const [folder] = config.folders;
  if (folder === undefined) throw new Error('no folder');
  expect((await checkFolder(folder, undefined)).finding).toMatchObject({
    ok: false,
    message: `${path} is no directory`,
    hint: 'Name the directory that holds it in `folders`.',
  });
});

it('check counts what a pattern of shared objects matches, and asks for none of that name', async () => {
  const share = { name: 'dumps', data: 'dump/*', c: 'lists' } as ShareMirrorConfig;
  const shares = async () => ['lists/dump/a', 'lists/dump/b', 'lists/other', 'dump/c'];
  const findings: Finding[] = [];
  for await (const finding of checkMirrored({ shares: [share], tables: [] }, {
    shares,
  } as unknown as PeerClient))
    findings.push(finding);
  expect(findings).toMatchObject([{ ok: true, message: 'matches 2 shared objects of the peer' }]);
});

const checked = (path: string, free?: (asked: string) => Promise<number>) =>
  checkWritable('state', path, 'state.dir', free);

it('check is content with a state that can be made, and names what is in the way of one', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'a', 'b');
  expect(await checked(path)).toMatchObject({
    ok: true,
    message: `${path} will be made when it is needed`,
  });
  writeFileSync(join(directory, 'file'), 'a file', { mode: 0o600 });
  const inTheWay = await checked(join(directory, 'file'));
  expect(inTheWay).toMatchObject({ ok: false, hint: expect.stringContaining('`state.dir`') });
  expect(inTheWay.message).toContain(`${directory}/file cannot be written: `);
  const full = await checked(path, async (asked) => (asked === directory ? 0 : 1));
  expect(full).toMatchObject({ ok: false, message: `no space is left on the disk of ${path}` });
});

it('check warns of a state that others can read or write', async () => {
  const path = temporaryDirectory();
  chmodSync(path, 0o700);
  expect((await checked(path)).hint).toBeUndefined();
  for (const mode of [0o704, 0o740, 0o702]) {
    chmodSync(path, mode);
    expect(await checked(path)).toMatchObject({
      ok: true,
      hint: `Close it to them: chmod 700 ${path}`,
    });
  }
  expect((await checkWritable('mirror root', path, 'mirror.root')).hint).toBeUndefined();
});

it('other people who can log in reach what is open on loopback, until the configuration closes it', async () => {
  const passwd = join(temporaryDirectory(), 'passwd');
  const lines = [
    'root:x:0:0::/root:/bin/bash',
    'www:x:33:33::/:/bin/bash',
    'git:x:1500:1500::/:/usr/sbin/nologin',
  ];
  writeFileSync(passwd, `${lines.join('\n')}\n`);
  const config = (requireAuth: boolean, token: string | undefined) =>
    ({
      peer: { url: 'embedded', embedded: { requireAuth } },
      status: { listen: '127.0.0.1:1', token },
    }) as never;
  expect(await openToOthers(config(false, undefined), passwd)).toBeUndefined();
  writeFileSync(passwd, `${lines.join('\n')}\nann:x:60001:60001:Ann:/home/ann:/bin/bash\n`);
  expect(await openToOthers(config(false, undefined), passwd)).toEqual({
    accounts: 'ann',
    open: [expect.stringContaining('requireAuth'), expect.stringContaining('status.token')],
  });
  expect((await openToOthers(config(true, undefined), passwd))?.open).toHaveLength(1);
  expect(await openToOthers(config(true, 'secret'), passwd)).toBeUndefined();
});
