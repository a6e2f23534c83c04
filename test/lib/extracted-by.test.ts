import { expect, it } from 'vitest';
import { bounded, extractedBy } from '../../src/lib/extracted-by.js';

const READ = { reader: 'PDF', words: 2 };

it('all that a reader says about its document is kept', () => {
  const found = {
    pages: 12,
    ocrPages: 3,
    confidence: 91.4,
    unreadPages: '3, 7-9',
    leftOut: 'Two members are left out.',
  };
  expect(bounded(found)).toEqual({ ...found, confidence: 91 });
  expect(extractedBy.parse({ ...READ, ms: 80, ...bounded(found) })).toEqual({
    ...READ,
    ms: 80,
    ...found,
    confidence: 91,
  });
});

it('texts that are too long are cut, and what a reader does not know is left out', () => {
  const found = {
    confidence: Number.NaN,
    unreadPages: '',
    leftOut: 'x'.repeat(10_000),
  };
  const kept = bounded(found);
  expect(Object.keys(kept)).toEqual(['leftOut']);
  expect(kept.leftOut).toMatch(/^x+…$/);
  expect(extractedBy.safeParse({ ...READ, ...kept }).success).toBe(true);
  expect(extractedBy.safeParse({ ...READ, ...found }).success).toBe(false);
  expect(bounded()).toEqual({});
});
