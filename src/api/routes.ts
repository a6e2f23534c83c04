import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NDJSON } from './protocol.js';
import type { AnyRequest, Lot } from './request.js';
import type { Answerer } from './requests.js';

/**
 * Adds a route below `/api/` for each request. The body of a `POST` is the question. A request that
 * only reads may also be asked by `GET`; the question is then the query of the URL.
 *
 * An answer is one JSON document, or one line after another if the client accepts NDJSON.
 *
 * An error before the first line of the answer is thrown, and the error handler of the application
 * gives it a status. A later error breaks the connection off.
 */
export function requestRoutes(
  app: FastifyInstance,
  requests: readonly AnyRequest<unknown, unknown>[],
  answer: Answerer,
): void {
  for (const request of requests) {
    const url = `/api/${request.path}`;
    app.post(url, async ({ body, headers }, reply) => {
      return await send(request, answer(request, body), headers.accept, reply);
    });
    if (request.needs === 'reading')
      app.get(url, async ({ headers, query }: FastifyRequest, reply) => {
        return await send(request, answer(request, query), headers.accept, reply);
      });
  }
}

async function send(
  request: AnyRequest<unknown, unknown>,
  lots: AsyncIterable<Lot<unknown>>,
  accept: string | undefined,
  reply: FastifyReply,
): Promise<unknown> {
  if (accept === NDJSON) return await sendLines(lots, reply);
  const lines: unknown[] = [];
  for await (const lot of lots) lines.push(...lot);
  const document = request.answers === 'once' ? lines[0] : lines;
  return request.field === undefined ? document : { [request.field]: document };
}

/** Sends the lines as fast as the client reads them. At most one lot is buffered. */
async function sendLines(
  lots: AsyncIterable<Lot<unknown>>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const rest = lots[Symbol.asyncIterator]();
  const first = await rest.next();
  const text = textOf(first, rest);
  return reply.type(NDJSON).send(Readable.from(text, { objectMode: false, highWaterMark: 1 }));
}

async function* textOf(
  first: IteratorResult<Lot<unknown>>,
  rest: AsyncIterator<Lot<unknown>>,
): AsyncGenerator<string, void> {
  try {
    for (let next = first; next.done !== true; next = await rest.next()) yield linesOf(next.value);
  } finally {
    await rest.return?.();
  }
}

function linesOf(lot: Lot<unknown>): string {
  return lot.map((line) => `${JSON.stringify(line)}\n`).join('');
}
