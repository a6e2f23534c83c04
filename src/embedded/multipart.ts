import type { IncomingMessage } from 'node:http';
import { Busboy, type BusboyConfig, type BusboyInstance } from '@fastify/busboy';
import { messageOf } from '../lib/errors.js';
import { Refusal } from './answer.js';

/** A parser for the multipart body of a request; what is said of a part is bounded. @throws Refusal 400 */
export function multipartParser(
  request: IncomingMessage,
  { limits, ...options }: Omit<BusboyConfig, 'headers'>,
): BusboyInstance {
  try {
    return new Busboy({
      headers: { ...request.headers, 'content-type': request.headers['content-type'] ?? '' },
      ...options,
      limits: { ...limits, headerPairs: 32, headerSize: 8_192 },
    });
  } catch (error) {
    throw unreadableMultipart(error);
  }
}

export function unreadableMultipart(error: unknown): Refusal {
  return new Refusal(400, `The multipart body cannot be read: ${messageOf(error)}.`);
}
