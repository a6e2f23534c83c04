import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { Audit } from '../../src/uplink/audit.js';
import { until } from '../support/wait.js';
import { World } from '../support/world.js';

const DAY_MS = 86_400_000;

let w: World;
afterEach(() => w.stop());

describe('a clock that was set back by a day before the start', () => {
  it('leaves what was confirmed before to the audit', async () => {
    w = new World();
    await w.start();
    w.write('a.txt', 'one');
    await until(() => w.statusOf('a.txt') === 'confirmed', 'confirmed');
    w.state.setMeta('auditedUntil', w.clock.now() + DAY_MS);
    const before = w.peer.lookups;
    const audit = new Audit({
      state: w.state,
      commit: () => w.state.commit(),
      queue: {
        run: async (_, work) => work(new AbortController().signal),
        ready: async () => {},
        hasRoom: () => true,
        isBusy: () => false,
        answeringForMs: 0,
      },
      peer: w.peer,
      dialect: w.dialect,
      clock: w.clock,
      log: silentLogger,
    });
    audit.start(1_000, (error) => {
      w.failure = error;
    });
    await until(() => w.peer.lookups > before, 'looked up');
    await audit.stop();
    expect(w.peer.pushes).toHaveLength(1);
  });
});
