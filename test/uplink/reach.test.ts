import { expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import type { Dialect } from '../../src/peer/dialects/dialect.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import type { AcceptedItem, Entry } from '../../src/state/entry.js';
import { accepted } from '../../src/state/transitions.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { Reaches, unseenAddresses } from '../../src/uplink/reach.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';

const PUBLIC = 'https://files.example.org/a.txt';
const LOCAL = 'http://vault.local/a.txt';
const USUAL_MS = 20_000;

/** Reaches over a state in memory. `restarted` returns those of a later run. */
function setUp(dialect: Dialect = DIALECTS.yacy) {
  const clock = new FakeClock();
  const meta = new Map<string, unknown>();
  const items = new Map<string, Entry>();
  const warnings: string[] = [];
  const state = {
    get: (_: string, path: string) => items.get(path),
    put: (entry: Entry) => void items.set(entry.path, entry),
    meta: (name: string) => meta.get(name),
    setMeta: (name: string, value: unknown) => void meta.set(name, value),
  };
  const queue = { answeringForMs: Number.POSITIVE_INFINITY };
  const log = {
    ...silentLogger,
    warn: (_: object, message: string) => void warnings.push(message),
  };
  const deps = { clock, state, queue, log, dialect: { current: dialect } };
  const restarted = () => new Reaches(deps as unknown as UplinkDeps);
  /** Puts an accepted item into the state. */
  const take = (path: string, url: string): AcceptedItem => {
    const item = { ...pendingRecord(path), url };
    const taken = accepted(item, sentOf(item), clock.now());
    items.set(path, taken);
    return taken;
  };
  const unseen = () =>
    unseenAddresses(state as unknown as UplinkDeps['state']).map(({ code }) => code);
  return { clock, items, queue, reaches: restarted(), restarted, take, unseen, warnings };
}

it('a reach is unknown, gated once the other one is shown, and open once it is shown itself', () => {
  const { reaches, restarted } = setUp();
  const modes = () => [reaches.modeOf(PUBLIC), reaches.modeOf(LOCAL)];
  expect(modes()).toEqual(['unknown', 'unknown']);
  expect(reaches.dropped(LOCAL)).toBeUndefined();
  reaches.shown(PUBLIC);
  expect(modes()).toEqual(['open', 'gated']);
  expect(reaches.dropped(LOCAL)?.code).toBe('DOMAIN_GATE');
  expect(restarted().modeOf(LOCAL)).toBe('gated');
  reaches.shown('http://nas/b.txt');
  expect(modes()).toEqual(['open', 'open']);
  expect([reaches.dropped(LOCAL), reaches.unseen(LOCAL)]).toEqual([undefined, undefined]);
  expect(restarted().modeOf(LOCAL)).toBe('open');
});

it('every reach is open if the peer has no address policy', () => {
  const { reaches } = setUp(DIALECTS.standard);
  reaches.shown(PUBLIC);
  expect([reaches.modeOf(PUBLIC), reaches.modeOf(LOCAL)]).toEqual(['open', 'open']);
  expect([reaches.unseen(LOCAL), reaches.hint(LOCAL)]).toEqual([undefined, undefined]);
});

it('the user is warned once about a reach of which an item is late by twice the usual time', async () => {
  const { clock, items, queue, reaches, take, unseen, warnings } = setUp();
  const first = take('a.txt', LOCAL);
  const second = take('b.txt', LOCAL);
  await clock.advance(2 * USUAL_MS - 1);
  reaches.late(first, USUAL_MS);
  expect(warnings).toEqual([]);
  await clock.advance(1);
  queue.answeringForMs = USUAL_MS;
  reaches.late(first, USUAL_MS);
  expect(warnings).toEqual([]);
  queue.answeringForMs = 2 * USUAL_MS;
  for (const each of [first, second, first]) reaches.late(each, USUAL_MS);
  expect(warnings).toEqual([expect.stringContaining('network.unit.domain')]);
  expect(items.get('b.txt')?.failure?.code).toBe('ADDRESSES_UNSEEN');
  expect(unseen()).toEqual(['ADDRESSES_UNSEEN']);
  reaches.shown(LOCAL);
  expect(unseen()).toEqual([]);
});

it('a late item of a reach that the peer showed causes no warning', async () => {
  const { clock, reaches, take, warnings } = setUp();
  reaches.shown(LOCAL);
  const item = take('a.txt', 'http://nas/a.txt');
  await clock.advance(10 * USUAL_MS);
  reaches.late(item, USUAL_MS);
  expect(warnings).toEqual([]);
});
