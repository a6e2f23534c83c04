import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { Site } from '../support/site.js';
import { sha256 } from '../support/tree.js';

/** PEERSYNC_SWAP_SECONDS sets how long the directory is swapped. */
const SECONDS = Number(process.env.PEERSYNC_SWAP_SECONDS ?? 180);
/** Sizes that the daemon reads in different ways: whole in a group, streamed when it is pushed, and in pieces. */
const SIZES = [40, 300_000, 1_500_000];

/** Numbers of the system call renameat2, by machine; the flag 2 exchanges two names. */
const EXCHANGE = `
  my %calls = (x86_64 => 316, aarch64 => 276);
  my $call = $calls{(split ' ', \`uname -m\`)[0]} or exit 3;
  my ($one, $other, $end) = (@ARGV[0, 1], time + $ARGV[2]);
  do {
    syscall($call, -100, $one, -100, $other, 2) == 0 or exit 4;
    select undef, undef, undef, rand 0.004;
  } while (time < $end);
`;

function canExchange(): boolean {
  try {
    execFileSync('perl', ['-e', EXCHANGE, '/no/such/name', '/no/such/name', '0'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    // Exchanging names that do not exist fails with code 4: perl and the system call are there.
    return error instanceof Error && 'status' in error && error.status === 4;
  }
}

it.skipIf(!canExchange())(
  `no file outside of a folder is pushed while a directory in it and a link to the outside change places for ${SECONDS} s`,
  async () => {
    const site = await Site.begin({ watch: { rescan: '1s' } });
    const outside = site.path('outside');
    mkdirSync(outside, { mode: 0o700 });
    const secrets = new Map<string, string>();
    for (const [i, size] of SIZES.entries()) {
      const names = [`same${i}.txt`, ...Array.from({ length: 8 }, (_, n) => `secret${i}-${n}.txt`)];
      for (const name of names) {
        const content = `${name} is secret\n`.repeat(Math.ceil(size / 24));
        writeFileSync(join(outside, name), content, { mode: 0o600 });
        secrets.set(sha256(Buffer.from(content)), name);
      }
      site.drop(`inbox/d/same${i}.txt`, `${i} is for everybody\n`.repeat(Math.ceil(size / 24)));
    }
    symlinkSync(outside, site.path('inbox/link'));
    const swapped = [site.path('inbox/d'), site.path('inbox/link')];
    await site.start();

    const attack = spawn('perl', ['-e', EXCHANGE, ...swapped, String(SECONDS)], { stdio: 'ignore' });
    afterwards('test', () => void attack.kill('SIGKILL'));
    const leaked = () =>
      site.proxy.pushes
        .flatMap(({ items }) => items)
        .map(({ digest }) => secrets.get(digest))
        .filter((name) => name !== undefined);
    const ended = new Promise((resolve) => attack.once('exit', resolve));
    for (let turn = 0; attack.exitCode === null && leaked().length === 0; turn += 1) {
      // New files keep the daemon busy with the directory.
      site.drop(`inbox/notes/${turn % 50}.txt`, `note ${turn}\n`);
      await sleep(200);
    }
    expect(leaked()).toEqual([]);
    expect(await ended).toBe(0);

    await site.allConfirmed();
    await site.stop();
  },
  SECONDS * 1_000 + 240_000,
);
