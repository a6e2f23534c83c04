import { expect, it } from 'vitest';
import { checkCode } from '../../src/commands/status.js';
import type { StatusFacts } from '../../src/report/status-report.js';
import { counts, queue, report } from './report.js';

const failure = { code: 'X', message: 'It is so.', hint: 'Do this.' };
const peerInTrouble = (kind: 'unreachable' | 'denied') => ({
  url: 'http://127.0.0.1:8090',
  dialect: 'yacy' as const,
  queue: {
    ...queue,
    circuit: {
      ...queue.circuit,
      state: 'open' as const,
      held: ['push' as const],
      reason: { kind, message: 'It is so.' },
    },
  },
});
const quarantine = { items: { ...counts, quarantined: 1 } };
const condition = {
  mirrors: [
    {
      name: 'prices',
      kind: 'table' as const,
      path: 'prices.csv',
      condition: { ...failure, since: 0 },
    },
  ],
};

it.each<[string, number, Partial<StatusFacts>]>([
  ['all is well', 0, {}],
  ['a person paused it', 0, { paused: { since: 0 } }],
  ['no daemon runs', 1, { running: false }],
  ['the state cannot be written', 1, { stateFailure: failure }],
  ['the peer refuses the credentials', 1, { peer: peerInTrouble('denied') }],
  ['the peer does not answer', 4, { peer: peerInTrouble('unreachable') }],
  ['something is quarantined', 3, quarantine],
  ['a mirror needs you', 3, condition],
  [
    'the peer does not answer, and something is quarantined',
    4,
    { ...quarantine, peer: peerInTrouble('unreachable') },
  ],
])('status --check tells by its exit code that %s', (_, code, facts) => {
  expect(checkCode(report(facts))).toBe(code);
});
