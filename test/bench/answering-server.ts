// A server that only answers: it reads a push's body to its end and says that every item is taken. Its own process,
// so that its work is not counted as ours. Prints its port.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  let head = '';
  request.on('data', (chunk: Buffer) => {
    if (head === '') head = chunk.toString('latin1', 0, 16);
  });
  request.on('end', () => {
    const count = /^count=(\d+)/.exec(head)?.[1] ?? '0';
    const body =
      request.url === '/api/peerdoc.html'
        ? '{"error":"not found"}'
        : `{"count":"${count}","successall":"true","countsuccess":${count},"countfail":0}`;
    response.writeHead(request.url === '/api/peerdoc.html' ? 404 : 200, {
      'content-type': 'application/json',
      'content-length': body.length,
    });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.stdout.write(`${address.port}\n`);
});
