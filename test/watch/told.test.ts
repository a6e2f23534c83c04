import { describe, expect, it } from 'vitest';
import { DaemonLog } from '../../src/daemon/log-repeats.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { Inbox, send } from './inbox.js';

const KEY = '-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n';

describe('a file that is skipped', () => {
  it('is told once with its name, the reason and what to do', async () => {
    const files = { empty: '', large: 'x'.repeat(2_000), 'no.bin': Buffer.from([0, 1, 2, 255]), key: KEY };
    const folder = { maxFileSize: 1_000, ignoreDefaults: true };
    const inbox = await new Inbox(files).start({ folder });
    expect(inbox.lines.filter((line) => line.includes('skipped')).toSorted()).toEqual([
      'info: skipped inbox/empty: The file is empty. It is taken as soon as something is in it.',
      'info: skipped inbox/large: The file has 2 KiB; the limit of its folder is 1000 B. Raise `maxFileSize` of the folder if the peer takes such large documents.',
      'info: skipped inbox/no.bin: Not text. None.',
      expect.stringMatching(/^warn: skipped inbox\/key: The file is a private key .* Move it out/),
    ]);
    await inbox.rescan();
    await inbox.start({ folder });
    await inbox.rescan();
    expect(inbox.said('skipped')).toBe(4);
  });

  it('is told again for another reason, and not where it only changed', async () => {
    const inbox = await new Inbox({ 'a.log': 'x'.repeat(2_000) }).start({ folder: { maxFileSize: 1_000 } });
    inbox.append('a.log', 'more');
    await until(() => inbox.get('a.log')?.version.size === 2_004, 'its size is known');
    expect(inbox.said('skipped inbox/a.log')).toBe(1);
    inbox.write('a.log', '');
    await until(() => inbox.get('a.log')?.version.size === 0, 'it is empty');
    expect(inbox.said('skipped inbox/a.log: The file is empty.')).toBe(1);
  });

  it('is not told where a pattern keeps it out that the peer was never sent', async () => {
    const inbox = new Inbox({
      'node_modules/a/b.js': 'x',
      'a.part': 'x',
      '.peersyncignore': '*.tmp',
      'a.tmp': '',
    });
    await inbox.start({ folder: { ignoreDefaults: true } });
    expect(inbox.said('skipped')).toBe(0);
  });

  it('is told where a new rule keeps it out and its document stays in the peer', async () => {
    const inbox = send(await new Inbox({ 'a.txt': 'x' }).start());
    await inbox.start({ folder: { ignore: ['*.txt'] } });
    await inbox.rescan();
    const line =
      'info: skipped inbox/a.txt: ignore pattern "*.txt" of folder inbox. The peer keeps what it was sent of it. `peersync forget inbox --remove` removes such documents from the peer.';
    expect(inbox.lines.filter((each) => each.includes('skipped'))).toEqual([line]);
  });

  it('is counted with others where very many are skipped at once', async () => {
    const clock = new FakeClock();
    const inbox = new Inbox(Array.from({ length: 300 }, (_, i) => `${i} of many.txt`));
    const daemonLog = new DaemonLog(inbox.log, clock);
    await inbox.start({ log: daemonLog, folder: { maxFileSize: 1 } });
    await clock.advance(10_000);
    const told = inbox.lines.filter((line) => line.startsWith('info: '));
    expect(told).toHaveLength(21);
    expect(told.at(-1)).toContain('280 more like this in the last 10s, the last one: skipped inbox/');
  });
});
