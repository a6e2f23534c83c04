import { expect, it } from 'vitest';
import type { Finding } from '../../src/commands/canary.js';
import { checkMirrored } from '../../src/commands/check.js';
import type { ShareMirrorConfig } from '../../src/config/config.js';
import type { PeerClient } from '../../src/peer/client.js';

it('check counts what a pattern of shared objects matches, and asks for none of that name', async () => {
  const share = { name: 'dumps', data: 'dump/*', c: 'lists' } as ShareMirrorConfig;
  const client = {
    shares: async () => ['lists/dump/a', 'lists/dump/b', 'lists/other', 'dump/c'],
  } as unknown as PeerClient;
  const findings: Finding[] = [];
  for await (const finding of checkMirrored({ shares: [share], tables: [] }, client)) findings.push(finding);
  expect(findings).toEqual([
    { check: 'mirror dumps', ok: true, message: 'matches 2 shared objects of the peer' },
  ]);
});
