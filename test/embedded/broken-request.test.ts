import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { answerBrokenRequest, answerLate } from '../../src/embedded/server.js';

const failed = (code: string) => Object.assign(new Error(code), { code });

describe('what is no request, or not a whole one', () => {
  it.each([
    ['ERR_HTTP_REQUEST_TIMEOUT', 'HTTP/1.1 408 Request Timeout', /did not come in time/],
    ['HPE_HEADER_OVERFLOW', 'HTTP/1.1 431 Request Header Fields Too Large', /larger than 65536 bytes/],
    ['HPE_INVALID_METHOD', 'HTTP/1.1 400 Bad Request', /no HTTP request/],
  ])('is answered, whole, and its connection ends: %s', async (code, status, words) => {
    const socket = new PassThrough();
    answerBrokenRequest(failed(code), socket);
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n');
    const [first, ...fields] = head.split('\r\n');
    expect(first).toBe(status);
    expect(fields).toContain('Connection: close');
    expect(fields).toContain(`Content-Length: ${Buffer.byteLength(body)}`);
    expect(body).toMatch(words);
  });

  it('is not answered where nobody is there to hear it', async () => {
    const [reset, ended] = [new PassThrough(), new PassThrough()];
    ended.end();
    const failures: unknown[] = [];
    for (const socket of [reset, ended]) socket.on('error', (error) => void failures.push(error));
    answerBrokenRequest(failed('ECONNRESET'), reset);
    answerBrokenRequest(failed('HPE_INVALID_METHOD'), ended);
    expect([reset.destroyed, reset.read(), ended.destroyed, ended.read()]).toEqual([true, null, true, null]);
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(failures).toEqual([]);
  });

  it('is answered 408 where its body did not come', async () => {
    const socket = new PassThrough();
    answerLate(socket);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /);
  });
});
