import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { Commits } from '../../src/watch/commits.js';
import { FakeClock } from '../support/fake-clock.js';

function setUp() {
  const clock = new FakeClock();
  const running: { resolve: () => void; reject: (error: Error) => void }[] = [];
  let quiet = 0;
  const said: string[] = [];
  const commits = new Commits({
    commit: () => new Promise((resolve, reject) => running.push({ resolve, reject })),
    clock,
    log: {
      ...silentLogger,
      error: (_, message) => said.push(message),
      info: (_, message) => said.push(message),
    },
    onQuiet: () => {
      quiet += 1;
    },
  });
  return { clock, commits, running, said, quiet: () => quiet };
}

describe('commits', () => {
  it('take the changes of 50 ms together', async () => {
    const { clock, commits, running, quiet } = setUp();
    for (let i = 0; i < 10; i += 1) commits.changed();
    await clock.advance(49);
    expect(running).toHaveLength(0);
    await clock.advance(1);
    expect(running).toHaveLength(1);
    expect(commits.busy).toBe(true);
    running[0]?.resolve();
    await clock.advance(0);
    expect(commits.busy).toBe(false);
    expect(quiet()).toBe(1);
  });

  it('do not wait for 50 ms when 200 changes are there', async () => {
    const { commits, running } = setUp();
    for (let i = 0; i < 200; i += 1) commits.changed();
    expect(running).toHaveLength(1);
  });

  it('forget no change that comes while one is running', async () => {
    const { clock, commits, running } = setUp();
    commits.changed();
    await clock.advance(50);
    for (let i = 0; i < 450; i += 1) commits.changed();
    await clock.advance(1_000);
    expect(running).toHaveLength(1);
    running[0]?.resolve();
    await clock.advance(50);
    expect(running).toHaveLength(2);
    running[1]?.resolve();
    await clock.advance(1_000);
    expect(running).toHaveLength(2);
    expect(commits.busy).toBe(false);
  });

  it('that failed are tried again every five seconds, said once when it begins and once when it ends', async () => {
    const { clock, commits, running, said } = setUp();
    commits.changed();
    await clock.advance(50);
    running[0]?.reject(new Error('disk full'));
    await clock.advance(0);
    expect(commits.busy).toBe(false);
    expect(commits.failure).toMatchObject({ message: 'disk full' });
    commits.changed();
    await clock.advance(5_000);
    running[1]?.reject(new Error('disk full'));
    await clock.advance(5_000);
    running[2]?.resolve();
    await clock.advance(0);
    expect(commits.failure).toBeUndefined();
    expect(said).toEqual([
      'What changed on disk cannot be recorded: disk full',
      'The state can be written again.',
    ]);
    expect(clock.waiting).toBe(0);
  });

  it('at the end are one more for what is left', async () => {
    const { clock, commits, running } = setUp();
    commits.changed();
    const stopped = commits.stop();
    await clock.advance(0);
    running[0]?.resolve();
    await stopped;
    expect(running).toHaveLength(1);
    expect(clock.waiting).toBe(0);
  });
});
