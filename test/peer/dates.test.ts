import { expect, it } from 'vitest';
import { parseMoment } from '../../src/peer/peerdoc.js';

const MOMENT = Date.UTC(2026, 10, 21, 3, 26, 19);

it.each([
  'Sat Nov 21 03:26:19 UTC 2026',
  'Sat Nov 21 04:26:19 CET 2026',
  'Fri Nov 20 22:26:19 EST 2026',
  'Sat, 21 Nov 2026 03:26:19 GMT',
  'Sat, 21 Nov 2026 04:26:19 +0100',
  '2026-11-21T03:26:19Z',
  '2026-11-21T03:26:19.000Z',
  '2026-11-21T04:26:19+01:00',
  '2026-11-21T04:26:19+0100',
  '2026-11-21 03:26:19',
  '2026-11-21T03:26:19',
])('reads the moment %s', (text) => {
  expect(parseMoment(text)).toBe(MOMENT);
});

it.each([
  '',
  'today',
  '260',
  '2026',
  '2026-11-21',
  '21.11.2026',
  'Sat Nov 21 03:26:19 XYZ 2026',
  'Sat Foo 21 03:26:19 UTC 2026',
  '2026-13-41T00:00:00Z',
])('does not guess a moment from "%s"', (text) => {
  expect(parseMoment(text)).toBeUndefined();
});
