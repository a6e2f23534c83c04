import { expect, it } from 'vitest';
import { PeerError, printable } from '../../src/peer/errors.js';

const errorOf = (answer: Uint8Array, url = 'http://p.example/') =>
  new PeerError('PEER_FAILED', {
    url,
    what: 'failed (500)',
    delivered: 'yes',
    status: 500,
    answer,
  });

it('a peer’s error names the URL without credentials, what came, and what to do', () => {
  const url = 'http://peer.example.org/api/push_p.html?x=1';
  const error = errorOf(Buffer.from('<h1>Oops\r\n</h1>'), url.replace('//', '//admin:secret@'));
  const firstBytes = '<h1>Oops\\r\\n</h1>';
  expect(error.message).toBe(`${url} failed (500); the answer begins with: ${firstBytes}`);
  expect(error).toMatchObject({ name: 'PeerError', code: 'PEER_FAILED', exitCode: 1 });
  expect(error.details).toEqual({ url, status: 500, delivered: 'yes', firstBytes });
  expect(error.hint).toMatch(/log/);
});

it.each([
  [
    'binary',
    Uint8Array.from({ length: 2_000 }, (_, i) => (i * 167) % 256),
    '; the answer is not text',
  ],
  ['a text', Buffer.from('Größe: 12 €\r\n\tüber'.repeat(40)), '; the answer begins with: Größe'],
  [
    'a text that is cut in a letter',
    Buffer.from(`${'a'.repeat(799)}ä`),
    '; the answer begins with: aa',
  ],
  ['nothing', Buffer.from(' \n'), ''],
])('an answer is shown only if it is text: %s', (_, answer, words) => {
  const { message } = errorOf(answer);
  expect(message.startsWith(`http://p.example/ failed (500)${words}`)).toBe(true);
  if (words === '') expect(message).toBe('http://p.example/ failed (500)');
});

it.each([
  ['🙂'.repeat(1_000), `${'🙂'.repeat(200)}…`],
  ['x'.repeat(200), 'x'.repeat(200)],
  [
    'a\x1b[31m\u202eb\u200b\x7f\u0085\0\t',
    'a\\u{1b}[31m\\u{202e}b\\u{200b}\\u{7f}\\u{85}\\u{0}\\t',
  ],
])(
  'bytes are shown in about 200 characters, without what a terminal obeys or hides: %#',
  (text, shown) => {
    expect(printable(Buffer.from(text))).toBe(shown);
  },
);
