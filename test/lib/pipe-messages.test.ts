import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FrameReader, frame } from '../../src/lib/pipe-messages.js';

it('messages are read as they were written, in whatever pieces they arrive', () => {
  const message = fc.record({ text: fc.string(), body: fc.uint8Array({ maxLength: 50 }) });
  fc.assert(
    fc.property(fc.array(message), fc.array(fc.nat(20)), (messages, cuts) => {
      const bytes = Buffer.concat(messages.flatMap(({ body, text }) => frame({ text }, body)));
      const reader = new FrameReader(50);
      const found: { text: unknown; body: number[] }[] = [];
      let at = 0;
      for (const length of [...cuts, bytes.length]) {
        for (const { body, header } of reader.take(bytes.subarray(at, at + length)))
          found.push({ text: (header as { text: unknown }).text, body: [...body] });
        at += length;
      }
      expect(found).toEqual(messages.map(({ body, text }) => ({ text, body: [...body] })));
    }),
  );
});

it.each([
  '{}\n',
  '{"bytes":-1}\n',
  '{"bytes":51}\n',
  '{"bytes":"1"}\n',
  'null\n',
  '{{\n',
  'x'.repeat(70_000),
])('bytes that are no message within the limits are refused (%#)', (text) => {
  expect(() => new FrameReader(50).take(Buffer.from(text))).toThrow();
});
