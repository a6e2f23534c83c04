import { expect, test } from 'vitest';
import { Modes } from '../../src/lib/modes.js';

test('a machine enters the modes that may follow its current one, and no others', () => {
  const door = new Modes('open', { open: ['closed'], closed: ['open', 'locked'], locked: [] });
  expect(() => door.enter('locked')).toThrow('the mode open may not be followed by locked');
  door.enter('closed');
  expect([door.current, door.is('open', 'closed'), door.is('locked')]).toEqual([
    'closed',
    true,
    false,
  ]);
  expect(() => door.enter('closed')).toThrow();
  door.enter('locked');
  expect(() => door.enter('open')).toThrow();
});
