import { describe, expect, it } from 'vitest';
import { statusText } from '../../src/commands/status.js';
import { watchView } from '../../src/commands/watch-view.js';
import { concernsOf } from '../../src/page/browser/attention.js';
import { readyReasons } from '../../src/page/health.js';
import { ITEM_METRICS } from '../../src/page/metrics/items.js';
import type { Observed } from '../../src/page/metrics/metric.js';
import { statusSentence } from '../../src/report/status-sentence.js';
import { NOW, report } from '../commands/report.js';
import { temporaryDirectory } from '../support/temp.js';

describe('a condition', () => {
  it('is rendered by every face: one that nobody ever heard of, too', async () => {
    const unheard = {
      ...{ code: 'UNHEARD_OF', severity: 'critical' as const, subject: 'thing', since: NOW - 60_000 },
      ...{ message: 'A thing is odd.', hint: 'Look at the thing.' },
    };
    const status = { ...report(), conditions: [unheard] };
    expect(statusText(status, NOW).join('\n')).toContain('A thing is odd.');
    const model = { samples: [], events: [], status, heardAt: NOW };
    const rows = watchView(model, { columns: 200, rows: 40 }, NOW, '');
    expect(JSON.stringify(rows)).toContain('A thing is odd.');
    expect(concernsOf(status)).toMatchObject([
      { level: 'bad', about: 'thing', text: 'A thing is odd. Look at the thing.' },
    ]);
    expect(await readyReasons(status, temporaryDirectory())).toEqual([unheard]);
    expect(statusSentence(status)).toContain('; A thing is odd (since ');
    const metric = ITEM_METRICS.find(({ name }) => name === 'peersync_condition');
    const values = [...((metric?.read({ status } as unknown as Observed) ?? []) as Iterable<unknown>)];
    expect(values).toEqual([
      { labels: { code: 'UNHEARD_OF', severity: 'critical', subject: 'thing' }, value: 1 },
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
