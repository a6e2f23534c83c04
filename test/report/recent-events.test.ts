import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { RecentEvents } from '../../src/report/answers.js';
import { FakeClock } from '../support/fake-clock.js';

describe('recent events', () => {
  it('are the last 200 lines from info up, and are logged as they were', () => {
    const clock = new FakeClock();
    const logged: string[] = [];
    const log = { ...silentLogger, info: (_: object, message: string) => void logged.push(message) };
    const recents = new RecentEvents(log, clock);
    recents.debug({}, 'a detail');
    for (let i = 1; i <= 300; i += 1) recents.info({ event: 'confirmed' }, `file ${i}`);
    expect(logged).toHaveLength(300);
    expect(recents.list()).toHaveLength(200);
    expect(recents.list()[0]).toEqual({
      ...{ id: 101, at: clock.now(), level: 'info', message: 'file 101', event: 'confirmed' },
    });
  });
});
