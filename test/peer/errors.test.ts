import { describe, expect, it } from 'vitest';
import { PeerError, printable } from '../../src/peer/errors.js';

describe('a peer’s error', () => {
  it('names the URL without credentials, what came, and what to do', () => {
    const error = new PeerError('PEER_FAILED', {
      url: 'http://admin:secret@peer.example.org/api/push_p.html?x=1',
      what: 'failed (500)',
      delivered: 'yes',
      status: 500,
      answer: Buffer.from('<h1>Oops\r\n</h1>'),
    });
    expect(error.message).toBe(
      'http://peer.example.org/api/push_p.html?x=1 failed (500); the answer begins with: <h1>Oops\\r\\n</h1>',
    );
    expect(error).toMatchObject({
      name: 'PeerError',
      code: 'PEER_FAILED',
      exitCode: 1,
    });
    expect(error.details).toEqual({
      url: 'http://peer.example.org/api/push_p.html?x=1',
      status: 500,
      delivered: 'yes',
      firstBytes: '<h1>Oops\\r\\n</h1>',
    });
    expect(error.hint).toMatch(/log/);
  });
});

describe('an answer that is not text', () => {
  const messageFor = (answer: Uint8Array) =>
    new PeerError('PEER_ANSWER', {
      url: 'http://p.example/',
      what: 'gave something',
      delivered: 'yes',
      answer,
    }).message;

  it('is not shown, for it would tell a person nothing', () => {
    const binary = Uint8Array.from({ length: 2_000 }, (_, i) => (i * 167) % 256);
    expect(messageFor(binary)).toBe('http://p.example/ gave something; the answer is not text');
  });

  it.each([
    'Größe: 12 €\r\n\tüber'.repeat(40),
    `${'a'.repeat(799)}ä`,
    'ok \u001b[31m in red, which a log should not be',
  ])('is not said of a text: %j', (text) => {
    expect(messageFor(Buffer.from(text))).toContain('; the answer begins with: ');
  });

  it('is said of no empty answer', () => {
    expect(messageFor(Buffer.from(' \n'))).toBe('http://p.example/ gave something');
  });
});

describe('bytes of an answer', () => {
  it('are shown in about 200 characters, never in half a character', () => {
    expect(printable(Buffer.from('ä'.repeat(1_000)))).toBe(`${'ä'.repeat(200)}…`);
    expect(printable(Buffer.from('🙂'.repeat(1_000)))).toBe(`${'🙂'.repeat(200)}…`);
    expect(printable(Buffer.from('x'.repeat(200)))).toBe('x'.repeat(200));
  });

  it('are shown without what a terminal obeys or hides', () => {
    expect(printable(Buffer.from('a\x1b[31m\u202eb\u200b\x7f\u0085\0\t'))).toBe(
      'a\\u{1b}[31m\\u{202e}b\\u{200b}\\u{7f}\\u{85}\\u{0}\\t',
    );
    expect(printable(Buffer.from([0xff, 0xfe]))).toBe('��');
  });
});
