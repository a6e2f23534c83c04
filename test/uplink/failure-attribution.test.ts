import { expect, it } from 'vitest';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { IsolationSetup } from './isolation-setup.js';

const PUBLIC = 'https://files.example.org/a.txt';
const LOCAL = 'http://vault.local/a.txt';

it.each([
  ['once is pushed again in isolation', [PUBLIC], PUBLIC, 1, 'pending: LOST_FROM_INDEX'],
  ['alone is pushed once more', [PUBLIC], PUBLIC, 2, 'pending: LOST_FROM_INDEX'],
  ['alone twice is quarantined', [PUBLIC], PUBLIC, 3, 'quarantined: REFUSED_BY_INDEX'],
  [
    'once at an address that the peer never showed is pushed again',
    [PUBLIC],
    LOCAL,
    1,
    'pending: LOST_FROM_INDEX',
  ],
  [
    'twice at an address that the peer never showed is quarantined as gated',
    [PUBLIC],
    LOCAL,
    2,
    'quarantined: DOMAIN_GATE, see its network',
  ],
  [
    'twice is pushed again if the peer showed such an address',
    [PUBLIC, 'http://nas/b'],
    LOCAL,
    2,
    'pending: LOST_FROM_INDEX',
  ],
])('an item that is lost %s, also in a later run', (_, shown, url, times, outcome) => {
  const setup = new IsolationSetup();
  setup.shows(shown);
  expect(setup.loses(url, times)).toBe(outcome);
  setup.restart();
  expect(setup.loses(url, times)).toBe(outcome);
});

it.each([
  [
    'is gated if its reach is never shown and the other one is',
    DIALECTS.yacy,
    PUBLIC,
    2,
    'quarantined: DOMAIN_GATE, see its network',
  ],
  [
    'is not gated if its reach was shown, but the hint names the network',
    DIALECTS.yacy,
    LOCAL,
    3,
    'quarantined: NOT_SHOWN, see its network',
  ],
  [
    'is not gated if the dialect has no network',
    DIALECTS.standard,
    PUBLIC,
    3,
    'quarantined: NOT_SHOWN',
  ],
])('an item that is not shown %s', (_, dialect, shown, attempts, outcome) => {
  const setup = new IsolationSetup();
  setup.dialect.current = dialect;
  expect(setup.shows([shown], LOCAL, attempts)).toBe(outcome);
});
