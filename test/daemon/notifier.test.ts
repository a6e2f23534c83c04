import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Notifier, type NotifierDeps } from '../../src/daemon/notifier.js';
import { silentLogger } from '../../src/lib/logger.js';
import { quoted, systemTool } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Returns a notifier whose calls end one by one when the test calls `next`. With a PATH, it calls
 * the program there.
 */
function setUp(env: NodeJS.ProcessEnv = {}) {
  const sent: (readonly string[])[] = [];
  const warnings: string[] = [];
  const waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const log = {
    ...silentLogger,
    warn: (_: object, message: string) => void warnings.push(message),
  };
  const send: NotifierDeps['send'] = (assignments) => {
    sent.push(assignments);
    return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  };
  const deps = env.PATH === undefined ? { log, send } : { log };
  const notifier = new Notifier({ NOTIFY_SOCKET: '/run/systemd/notify', ...env }, deps);
  const next = async (error?: Error): Promise<void> => {
    await nextTurn();
    const call = waiting.shift();
    if (error === undefined) call?.resolve();
    else call?.reject(error);
    await nextTurn();
  };
  return { notifier, sent, warnings, next, waiting };
}

describe('a notifier', () => {
  it('sends nothing if systemd did not ask for it', async () => {
    const { notifier, sent } = setUp({ NOTIFY_SOCKET: undefined, WATCHDOG_USEC: '1000000' });
    for (const say of [notifier.ready(), notifier.status(() => 'well'), notifier.watchdog()])
      await say;
    expect([sent, notifier.systemdWatchdogMs]).toEqual([[], undefined]);
  });

  it('sends one message after the other, in order, and never two at once', async () => {
    const { notifier, sent, next, waiting } = setUp();
    void notifier.ready();
    void notifier.reloading();
    void notifier.ready();
    const last = notifier.stopping();
    for (let count = 1; count <= 4; count += 1) {
      await nextTurn();
      expect([sent.length, waiting.length]).toEqual([count, 1]);
      await next();
    }
    await last;
    const reloading = ['RELOADING=1', expect.stringMatching(/^MONOTONIC_USEC=\d{6,}$/)];
    expect(sent).toEqual([['READY=1'], reloading, ['READY=1'], ['STOPPING=1']]);
  });

  it('sends the same sentence once, on one line', async () => {
    const { notifier, sent, next } = setUp();
    for (const sentence of ['one', 'two\nlines', 'two\nlines']) {
      void notifier.status(() => sentence);
      await next();
    }
    expect(sent).toEqual([['STATUS=one'], ['STATUS=two lines']]);
  });

  it('warns once if calls fail, continues to try, and warns again after a call succeeded', async () => {
    const { notifier, warnings, next, sent } = setUp();
    const failure = new Error('no such program');
    for (const outcome of [failure, failure, failure, undefined]) {
      void notifier.watchdog();
      await next(outcome);
    }
    expect(sent).toHaveLength(4);
    const warning: unknown = expect.stringMatching(
      /^the status could not be sent to systemd: .*no such program; check that /,
    );
    expect(warnings).toEqual([warning]);
    void notifier.watchdog();
    await next(failure);
    expect(warnings).toEqual([warning, warning]);
  });

  it.each([
    [{ WATCHDOG_USEC: '120000000' }, 120_000],
    [{ WATCHDOG_USEC: '120000000', WATCHDOG_PID: String(process.pid) }, 120_000],
    [{ WATCHDOG_USEC: '120000000', WATCHDOG_PID: '1' }, undefined],
    [{}, undefined],
    [{ WATCHDOG_USEC: 'soon' }, undefined],
  ])(
    'reads the time that systemd waits for a sign of life, unless it is meant for another process: %j',
    (env, ms) => {
      expect(setUp(env).notifier.systemdWatchdogMs).toBe(ms);
    },
  );

  it('calls the program systemd-notify with all assignments, and logs why it failed', async () => {
    const received = join(temporaryDirectory(), 'received');
    const script = `(printf '%s|' "$NOTIFY_SOCKET" "$@"; echo) >> ${quoted(received)}; echo "It is full" >&2; exit 1`;
    const { notifier, warnings } = setUp({
      NOTIFY_SOCKET: '/here',
      ...systemTool('systemd-notify', script),
    });
    await notifier.reloading();
    expect(readFileSync(received, 'utf8')).toMatch(
      /^\/here\|RELOADING=1\|MONOTONIC_USEC=\d{6,}\|\n$/,
    );
    expect(warnings).toEqual([expect.stringContaining('It is full; check')]);
  });
});
