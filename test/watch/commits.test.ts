import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { Commits } from '../../src/watch/commits.js';
import { FakeClock } from '../support/fake-clock.js';

describe('commits', () => {
  it('bring to the disk what changed during a commit that took longer than a group gathers', async () => {
    const clock = new FakeClock();
    let quiet = 0;
    let begun = 0;
    const commit = () => {
      begun += 1;
      return clock.sleep(200);
    };
    const onQuiet = () => {
      quiet += 1;
    };
    const commits = new Commits({ commit, clock, log: silentLogger, onQuiet });
    commits.changed();
    await clock.advance(60);
    expect(begun).toBe(1);
    commits.changed();
    await clock.advance(1_000);
    expect(begun).toBe(2);
    expect(commits.busy).toBe(false);
    expect(quiet).toBe(1);
  });
});
