import { approveDeletes } from './approve-deletes.js';
import { forget } from './forget.js';
import { items, list } from './list.js';
import { live } from './live.js';
import { mirror, mirrorAccept } from './mirror.js';
import { pause, resume, tryNow } from './pause.js';
import { reload } from './reload.js';
import type { AnyRequest, Lot, Needs } from './request.js';
import { rescan } from './rescan.js';
import { retry } from './retry.js';
import { status } from './status.js';
import { verifyItems } from './verify.js';
import { why } from './why.js';
import '../report/why.js';
import '../uplink/verify.js';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NDJSON } from './protocol.js';

// The daemon loads this code with its own. Loaded at the first request, it could come from another
// version, if peersync was updated meanwhile.

/** Everything that can be asked of a running daemon. */
export const REQUESTS = [
  status,
  list,
  items,
  why,
  live,
  retry,
  tryNow,
  rescan,
  verifyItems,
  pause,
  resume,
  approveDeletes,
  forget,
  reload,
  mirror,
  mirrorAccept,
] as const;

/** Answers a request in lots of lines. @throws PeersyncError */
export type Answerer = (
  request: AnyRequest<unknown, unknown>,
  question: unknown,
) => AsyncIterable<Lot<unknown>>;

/** Returns what answers requests for a running daemon, to commands and to the page alike. */
export function answererOf(daemon: Needs['daemon']): Answerer {
  const { feed, live } = daemon;
  const { clock, current, log, parts } = live;
  const { state } = parts;
  return (request, question) => {
    const { config } = current;
    const deps = { clock, config, feed, live, log, state, view: state.committed };
    return request.run(deps, question);
  };
}

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
    for (let next = first; next.done !== true; next = await rest.next()) {
      const text = linesOf(next.value);
      if (text !== '') yield text;
    }
  } finally {
    await rest.return?.();
  }
}

function linesOf(lot: Lot<unknown>): string {
  let text = '';
  for (const line of lot) text += `${JSON.stringify(line)}\n`;
  return text;
}
