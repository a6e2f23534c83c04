import { expect, it } from 'vitest';
import { pause } from '../../src/api/pause.js';
import { askLines } from '../../src/commands/ask.js';
import { lastingFailure } from '../../src/commands/patience.js';
import { loadConfig } from '../../src/config/load.js';
import { openControl } from '../../src/daemon/control.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { lockState } from '../../src/state/directory.js';
import { afterwards } from '../support/afterwards.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';

const NOW = Date.UTC(2026, 0, 1);

it.each([
  ['unreachable', 14, 14, false],
  ['unreachable', 16, 16, true],
  ['failing', 59, 59, false],
  ['failing', 61, 61, true],
  ['denied', 7, 7, false],
  ['denied', 9, 9, true],
  // A refusal has its other try, however long the peer was away before.
  ['denied', 1, 14, false],
  // Trouble that turns from one kind into another without end.
  ['failing', 1, 120, true],
] as const)(
  'a command at a peer that is %s for %i s, and in trouble for %i s, gives up: %s',
  (kind, s, downS, isGivenUp) => {
    const reason = { kind, message: 'no' };
    const circuit = {
      reason,
      state: 'open',
      since: NOW - s * 1_000,
      downSince: NOW - downS * 1_000,
    } as const;
    expect(lastingFailure({ ...circuit, held: [], tries: 1 }, NOW)).toBe(
      isGivenUp ? reason : undefined,
    );
  },
);

it('a command gives up on no peer that is not in trouble', () => {
  const circuit = { state: 'closed', since: NOW - 3_600_000, held: [], tries: 0 } as const;
  expect(lastingFailure(circuit, NOW)).toBeUndefined();
});

/** Asks for a pause where a daemon has the state, and does not listen yet. */
async function askOneThatStarts(patienceMs: number) {
  const path = writeConfig(temporaryDirectory(), { peer: { url: 'http://peer.example/' } });
  const { config } = await loadConfig(path);
  const lock = await lockState(config.state.dir, { clock: systemClock });
  afterwards('test', () => lock.release());
  const options = { config: path, json: false, logLevel: undefined };
  const asking = { patienceMs, log: silentLogger };
  const answer = askLines(options, config, pause, {}, asking).next();
  return { answer, dir: config.state.dir };
}

async function* once(): AsyncGenerator<readonly unknown[]> {
  yield [{ since: 1 }];
}

it('a command waits for a daemon that starts', async () => {
  const { answer, dir } = await askOneThatStarts(10_000);
  afterwards('test', await openControl(dir, once, silentLogger));
  expect(await answer).toMatchObject({ value: { since: 1 } });
});

it('a command says that a daemon is starting, where that takes long', async () => {
  const { answer } = await askOneThatStarts(1);
  await expect(answer).rejects.toMatchObject({
    code: 'STATE_LOCKED',
    message: expect.stringMatching(
      /^Another peersync \(pid .* It does not answer yet: it is starting, or /,
    ),
    hint: 'Ask again in a moment; `peersync status` says when it runs.',
  });
});
