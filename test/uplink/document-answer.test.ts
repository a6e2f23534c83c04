import { expect, it } from 'vitest';
import type { Frame } from '../../src/lib/pipe-messages.js';
import { answerOf, type DocumentRequest } from '../../src/uplink/document-answer.js';

const REQUEST = { id: 7, order: { wanted: 'text' } } as DocumentRequest;
const PAGE = Buffer.from('<p>text');

/** Reads the answer of a process. */
const answered = (result: object) => {
  const frame: Frame = { header: { id: 7, isLast: false, result }, body: PAGE };
  return answerOf(frame, REQUEST).result;
};
const extracted = (found: object) =>
  answered({ kind: 'extracted', words: 2, extracted: { reader: 'PDF', words: 2, ...found } });

it('an answer carries how the text was found, and nothing else', () => {
  const found = { ms: 80, pages: 12, ocrPages: 3, confidence: 91.4, unreadPages: '3, 7-9' };
  expect(extracted({ ...found, leftOut: 'One.', secret: 'x' })).toEqual({
    kind: 'extracted',
    words: 2,
    page: { bytes: PAGE, extracted: { reader: 'PDF', words: 2, ...found, leftOut: 'One.' } },
  });
});

it('an answer carries why another reading may find more, within limits', () => {
  const answer = { kind: 'extracted', words: 2, lacks: ['.doc', 'time'] };
  expect(answered({ ...answer, extracted: { reader: 'zip', words: 2 } })).toMatchObject(answer);
  for (const lacks of ['.doc', ['x'.repeat(41)], Array(21).fill('.doc')])
    expect(() => answered({ ...answer, lacks })).toThrow('it answered in a wrong form');
});

it.each([{ pages: -1 }, { ms: 0.5 }, { confidence: 101 }, { leftOut: 'x'.repeat(501) }])(
  'an answer with %o is refused',
  (found) => {
    expect(() => extracted(found)).toThrow('it answered in a wrong form');
  },
);

it.each([
  ['DOCUMENT_BROKEN', true],
  ['NO_OCR', true],
  ['NO_HELPER', true],
  ['NO_HELPER_BY_CONTENT', true],
  ['PRIVATE_KEY', false],
])('a document may be refused with %s: %s', (code, isAllowed) => {
  const refusal = { kind: 'refused', failure: { code, message: 'No.', hint: 'Try.' } };
  if (isAllowed) expect(answered(refusal)).toEqual(refusal);
  else expect(() => answered(refusal)).toThrow('it answered in a wrong form');
});
