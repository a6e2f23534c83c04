import type { Duplex } from 'node:stream';
import { systemCode } from '../lib/errors.js';

/** Bytes of the head of a request: a URL parameter as long as allowed, encoded once more, fits into the request line. */
export const LONGEST_HEAD = 65_536;

/** What is said to a request that is no request, or not a whole one. */
const REFUSALS = {
  late: ['408 Request Timeout', 'The request did not come in time.\n'],
  headTooLarge: ['431 Request Header Fields Too Large', `The head is larger than ${LONGEST_HEAD} bytes.\n`],
  unreadable: ['400 Bad Request', 'This is no HTTP request that can be read.\n'],
} as const;

/** Answers what is no request, or not a whole one, and ends the connection; one that is gone already is let go. */
export function answerBrokenRequest(error: Error, socket: Duplex): void {
  const code = systemCode(error);
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') answerLate(socket);
  else endWithRefusal(socket, code === 'HPE_HEADER_OVERFLOW' ? REFUSALS.headTooLarge : REFUSALS.unreadable);
}

/** Answers a request that did not come to its end in time, and ends the connection. */
export function answerLate(socket: Duplex): void {
  endWithRefusal(socket, REFUSALS.late);
}

function endWithRefusal(socket: Duplex, [status, body]: readonly [status: string, body: string]): void {
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  );
}
