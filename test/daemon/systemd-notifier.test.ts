import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Notifier } from '../../src/daemon/watchdog.js';
import { quoted } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

/** A notifier whose words a test brings to systemd itself, one by one; or, without `isPlayed`, a program. */
function notifierOf(env: NodeJS.ProcessEnv = {}, isPlayed = true) {
  const sent: string[][] = [];
  const warnings: string[] = [];
  const waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const send = (assignments: readonly string[]): Promise<void> => {
    sent.push([...assignments]);
    return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  };
  const notifier = new Notifier(
    { NOTIFY_SOCKET: '/run/systemd/notify', ...env },
    {
      log: { debug() {}, info() {}, warn: (_, message) => void warnings.push(message), error() {} },
      ...(isPlayed ? { send } : {}),
    },
  );
  const next = async (error?: Error): Promise<void> => {
    const call = waiting.shift();
    if (error === undefined) call?.resolve();
    else call?.reject(error);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { notifier, sent, warnings, next, waiting };
}

describe('a notifier', () => {
  it('says nothing where systemd did not ask', async () => {
    const { notifier, sent } = notifierOf({ NOTIFY_SOCKET: undefined, WATCHDOG_USEC: '1000000' });
    await notifier.ready();
    await notifier.status(() => expect.fail('nobody reads it'));
    await notifier.watchdog();
    expect(sent).toEqual([]);
    expect(notifier.watchdogMs).toBeUndefined();
  });

  it('says one thing after the other, in order, and never two at once', async () => {
    const { notifier, sent, next, waiting } = notifierOf();
    void notifier.ready();
    void notifier.reloading();
    void notifier.ready();
    const last = notifier.stopping();
    await Promise.resolve();
    for (let said = 1; said <= 4; said += 1) {
      expect(sent).toHaveLength(said);
      expect(waiting).toHaveLength(1);
      await next();
    }
    await last;
    const reloading = ['RELOADING=1', expect.stringMatching(/^MONOTONIC_USEC=\d{6,}$/)];
    expect(sent).toEqual([['READY=1'], reloading, ['READY=1'], ['STOPPING=1']]);
  });

  it('says the same sentence once, on one line', async () => {
    const { notifier, sent, next } = notifierOf();
    for (const sentence of ['one', 'two\nlines', 'two\nlines']) void notifier.status(() => sentence);
    await Promise.resolve();
    for (let i = 0; i < 2; i += 1) await next();
    expect(sent).toEqual([['STATUS=one'], ['STATUS=two lines']]);
  });

  it('warns once where it cannot, goes on trying, and warns anew after it could', async () => {
    const { notifier, warnings, next, sent } = notifierOf();
    for (let i = 0; i < 3; i += 1) {
      void notifier.watchdog();
      await Promise.resolve();
      await next(new Error('no such program'));
    }
    expect(sent).toHaveLength(3);
    expect(warnings).toEqual([
      expect.stringMatching(/^systemd could not be told .*: no such program; see that /),
    ]);
    void notifier.watchdog();
    await Promise.resolve();
    await next();
    void notifier.watchdog();
    await Promise.resolve();
    await next(new Error('no such program'));
    expect(warnings).toHaveLength(2);
  });

  it('knows for how long systemd bears silence, unless that is meant for another process', () => {
    const pid = String(process.pid);
    const grants = (env: NodeJS.ProcessEnv) => notifierOf(env).notifier.watchdogMs;
    expect(grants({ WATCHDOG_USEC: '120000000' })).toBe(120_000);
    expect(grants({ WATCHDOG_USEC: '120000000', WATCHDOG_PID: pid })).toBe(120_000);
    expect(grants({ WATCHDOG_USEC: '120000000', WATCHDOG_PID: '1' })).toBeUndefined();
    expect(grants({})).toBeUndefined();
    expect(grants({ WATCHDOG_USEC: 'soon' })).toBeUndefined();
  });

  it('calls the program systemd-notify with the words and where they go', async () => {
    const directory = temporaryDirectory();
    const heard = join(directory, 'heard');
    const program = join(directory, 'systemd-notify');
    writeFileSync(
      program,
      `#!/bin/sh\nprintf '%s|' "$NOTIFY_SOCKET" "$@" >> ${quoted(heard)}\necho >> ${quoted(heard)}\n`,
    );
    chmodSync(program, 0o755);
    const env = { NOTIFY_SOCKET: '/here', PATH: `${directory}:${process.env.PATH}` };
    const { notifier, warnings } = notifierOf(env, false);
    void notifier.reloading();
    await notifier.status(() => 'all is well; "really"');
    const [reloading, status] = readFileSync(heard, 'utf8').split('\n');
    expect(reloading).toMatch(/^\/here\|RELOADING=1\|MONOTONIC_USEC=\d{6,}\|$/);
    expect(status).toBe('/here|STATUS=all is well; "really"|');
    expect(warnings).toEqual([]);
    writeFileSync(program, '#!/bin/sh\necho "Failed to notify" >&2\nexit 1\n');
    void notifier.ready();
    await until(() => warnings.length === 1, 'warned');
    expect(warnings[0]).toMatch(/Failed to notify; see/);
  });
});
