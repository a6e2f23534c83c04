import { describe, expect, it } from 'vitest';
import { statusText } from '../../src/commands/status.js';
import { WatchModel, watchView } from '../../src/commands/watch.js';
import { concernsOf } from '../../src/page/browser/words.js';
import { valuesOf } from '../../src/page/metrics.js';
import { type Live, readyReasons, statusSentence } from '../../src/report/status.js';
import { NOW, report } from '../commands/report.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

describe('a condition', () => {
  it('is rendered by every face: one that nobody ever heard of, too', async () => {
    const unheard = {
      ...{ code: 'UNHEARD_OF', severity: 'critical' as const, subject: 'thing', since: NOW - 60_000 },
      ...{ message: 'A thing is odd.', hint: 'Look at the thing.' },
    };
    const status = { ...report(), conditions: [unheard] };
    expect(statusText(status, NOW).join('\n')).toContain('A thing is odd.');
    const model = Object.assign(new WatchModel(), { status, heardAt: NOW });
    const rows = watchView(model, 40, NOW, '');
    expect(JSON.stringify(rows)).toContain('A thing is odd.');
    expect(concernsOf(status)).toMatchObject([
      { level: 'bad', about: 'thing', text: 'A thing is odd. Look at the thing.' },
    ]);
    expect(await readyReasons(status, temporaryDirectory())).toEqual([unheard]);
    expect(statusSentence(status)).toContain('; A thing is odd (since ');
    const parts = {
      statistics: { totals: { accepted: 0, confirmed: 0, quarantined: 0 } },
      client: { requests: {}, pushedBytes: 0 },
      state: { figures: () => ({}) },
    };
    const live = { status: () => status, clock: new FakeClock(), parts };
    expect(valuesOf(live as unknown as Live).get('peersync_condition')).toEqual([
      [{ code: 'UNHEARD_OF', severity: 'critical', subject: 'thing' }, 1],
    ]);
  });

  it('comes before all that are less grave', () => {
    const trouble = { code: 'STATE_FULL', message: 'It is full.', hint: 'Free some.' };
    const { conditions } = report({
      paused: { since: 0 },
      restart: ['a'],
      repairs: ['b'],
      stateTrouble: trouble,
    });
    expect(conditions.map(({ code }) => code)).toEqual([
      'STATE_FULL',
      'STATE_REPAIRED',
      'RESTART_NEEDED',
      'PAUSED',
    ]);
  });
});
