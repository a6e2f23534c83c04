import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { whyText } from '../../src/commands/items.js';
import { loadConfig } from '../../src/config/load.js';
import { silentLogger } from '../../src/lib/logger.js';
import { type QueueStatus, RequestQueue } from '../../src/queue/request-queue.js';
import type { Live } from '../../src/report/status.js';
import { explain } from '../../src/report/why.js';
import { accepted, gone, read } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/batch-sender.js';
import type { NextLook } from '../../src/uplink/confirm-loop.js';
import type { PathProblem } from '../../src/watch/watcher.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { writeConfig } from '../support/config.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

/** What of a daemon tells how a path goes on. */
function liveWith(parts: {
  readonly client?: { readonly dialect: 'standard' | undefined };
  readonly status: () => QueueStatus;
  readonly problems?: () => readonly PathProblem[];
  readonly nextLook?: () => NextLook | undefined;
}): Live {
  const { client = { dialect: 'standard' }, nextLook = () => undefined, problems = () => [], status } = parts;
  const uplink = { isInFlight: () => false, nextLook };
  const watcher = { status: () => [], problems };
  return { parts: { client, queue: { status }, uplink, watcher } } as unknown as Live;
}

/** The way to a peer that nothing was asked yet. */
function queue(clock: FakeClock): RequestQueue {
  const lane = { requestsPerSecond: 1, concurrency: 1 };
  const lanes = { interactive: lane, confirm: lane, push: lane, mirror: lane, audit: lane };
  return new RequestQueue({
    lanes,
    classify,
    clock,
    log: silentLogger,
    peerName: 'the peer',
  });
}

it('what happens next to a file is told: pushed, looked up, or looked up and pushed if it is not there', async () => {
  const directory = temporaryDirectory();
  const { config } = await loadConfig(writeConfig(directory, { peer: { url: 'http://127.0.0.1:1' } }));
  const clock = new FakeClock();
  const state = await State.open(config.state.dir, { clock, log: silentLogger });
  const live = liveWith({
    status: () => queue(clock).status(),
    nextLook: () => ({ at: clock.now() + 200, lastAnswer: 'the peer shows it in [blue], not in red' }),
  });
  const next = async () => (await explain(join(directory, 'inbox', 'a'), config, state, live)).next;
  writeFileSync(join(directory, 'inbox', 'a'), 'a');
  const item = pendingRecord('a');
  const taken = accepted(item, sentOf(item), clock.now());
  state.put(item);
  expect(await next()).toBe('It is pushed.');
  state.put(taken);
  expect(await next()).toBe('It is looked up in the peer (so far: the peer shows it in [blue], not in red).');
  state.put(read(gone(taken, clock.now()), taken, taken.version, clock.now()));
  expect(await next()).toBe(
    'The peer was sent this before: it is looked up (so far: the peer shows it in [blue], not in red), and pushed if it is not there.',
  );
  await state.close();
});

it('a file waits for a peer that is in trouble before its dialect is known, whatever asked for that', async () => {
  const directory = temporaryDirectory();
  const { config } = await loadConfig(writeConfig(directory, { peer: { url: 'http://127.0.0.1:1' } }));
  const clock = new FakeClock();
  const state = await State.open(config.state.dir, { clock, log: silentLogger });
  const reason = { kind: 'denied' as const, message: 'it asks for a password', hint: 'Check peer.auth.' };
  let dialect: 'standard' | undefined;
  const live = liveWith({
    client: {
      get dialect() {
        return dialect;
      },
    },
    status: () => ({
      ...queue(clock).status(),
      circuit: {
        state: 'open',
        since: clock.now(),
        reason,
        held: ['confirm'],
        tries: 2,
        nextProbeAt: clock.now() + 6_000,
      },
    }),
  });
  writeFileSync(join(directory, 'inbox', 'a'), 'a');
  state.put(pendingRecord('a'));
  const next = async () => (await explain(join(directory, 'inbox', 'a'), config, state, live)).next;
  expect(await next()).toBe('It waits for the peer, which refuses the credentials: it asks for a password.');
  dialect = 'standard';
  expect(await next()).toBe('It is pushed.');
  await state.close();
});

it('a directory, a link and a pipe are told as what they are, with what holds for what is in them', async () => {
  const directory = temporaryDirectory();
  const folders = [{ name: 'inbox', include: ['*.md'], ignore: ['old'] }];
  const { config } = await loadConfig(
    writeConfig(directory, { peer: { url: 'http://127.0.0.1:1' }, folders }),
  );
  const state = await State.open(config.state.dir, { clock: new FakeClock(), log: silentLogger });
  const at = (name: string) => join(directory, 'inbox', name);
  const why = async (name: string) => {
    const report = await explain(at(name), config, state, undefined);
    const row = (is: string) => whyText(report, 0).find((line) => line.startsWith(is));
    return [report.kind, row('status'), row('rule'), row('next')].join('\n');
  };
  for (const name of ['sub', 'old', 'old/sub']) mkdirSync(at(name));
  symlinkSync(at('sub'), at('link.md'));
  execFileSync('mkfifo', [at('pipe.md')]);
  expect(await why('sub')).toMatch(
    /^directory\nstatus +a directory: .*\nrule +No rule keeps it out: .* rules of folder inbox\.\nnext .*peersync list/,
  );
  for (const name of ['old', 'old/sub'])
    expect(await why(name)).toMatch(
      /^directory\nstatus +a directory: .*\nrule +A rule keeps it out with everything in it: ignore pattern "old" of folder inbox\.\n/,
    );
  expect(await why('link.md')).toMatch(
    /^link\nstatus +a symbolic link, .*\nrule .*followSymlinks of folder inbox is false\.\nnext .*set to true/,
  );
  expect(await why('pipe.md')).toMatch(/^other\nstatus +no regular file, .*\nrule +Only regular files /);
  await state.close();
});

it('a file whose name has no URL is not said to be absent, nor to become a document', async () => {
  const directory = temporaryDirectory();
  const { config } = await loadConfig(writeConfig(directory, { peer: { url: 'http://127.0.0.1:1' } }));
  const clock = new FakeClock();
  const state = await State.open(config.state.dir, { clock, log: silentLogger });
  const file = join(directory, 'inbox', 'bad\ufffd.txt');
  const trouble = { code: 'NAME_NOT_UTF8', message: 'The name is not valid UTF-8.', hint: 'Rename it.' };
  const live = liveWith({
    status: () => queue(clock).status(),
    problems: () => [{ folder: 'inbox', path: file, trouble, since: clock.now() }],
  });
  const report = await explain(file, config, state, live);
  expect(report).toMatchObject({ verdict: 'unknown', trouble });
  expect(report.next).toBe('It is taken up by the next scan after that is mended.');
  expect(report.url).toBeUndefined();
  await state.close();
});
