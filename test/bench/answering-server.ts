// A peer that only answers: it reads a push's body to its end and accepts every item. Its own
// process, so that its work is not counted as ours. It shows no document; given a size in bytes, it
// shows every document that is asked for, with that size. Prints its URL; a message from the
// process that started it is answered with what it counted.
import { createServer } from 'node:http';
import { listen } from './listening.js';

/** Counts since the previous message. */
export interface Answered {
  readonly pushed: number;
  readonly lookUps: number;
  /**
   * When the first request came and the last look-up was answered, in ms; by a clock that all
   * processes share.
   */
  readonly firstAt: number;
  readonly lastAt: number;
}

const size = process.argv[2];
const nothing: Answered = { pushed: 0, lookUps: 0, firstAt: 0, lastAt: 0 };
let answered = { ...nothing };

const server = createServer((request, response) => {
  if (answered.firstAt === 0) answered.firstAt = now();
  const isLookUp = request.url === '/api/peerdoc.html';
  let text = '';
  request.on('data', (chunk: Buffer) => {
    if (isLookUp) text += chunk.toString('latin1');
    else if (text === '') text = chunk.toString('latin1', 0, 16);
  });
  request.on('end', () => {
    if (isLookUp) {
      const shown = size !== undefined;
      answered.lookUps += 1;
      answered.lastAt = now();
      answer(shown ? 200 : 404, shown ? documentOf(text) : '{"error":"not found"}');
      return;
    }
    const count = /^count=(\d+)/.exec(text)?.[1] ?? '0';
    answered.pushed += Number(count);
    answer(200, `{"count":"${count}","successall":"true","countsuccess":${count},"countfail":0}`);
  });

  function answer(status: number, body: string): void {
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': body.length,
    });
    response.end(body);
  }
});
listen(server);
process.on('message', (question) => {
  process.send?.(answered);
  if (question === 'reset') answered = { ...nothing };
});
process.on('disconnect', () => process.exit());

/** The document whose URL a form has, which is ASCII. */
function documentOf(form: string): string {
  return `{"url":"${decodeURIComponent(form.slice('url='.length))}","size":${size},"collection":"bench"}`;
}

function now(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
