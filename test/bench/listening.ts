import type { Server } from 'node:http';

/** Listens, and prints the URL for the process that started this one. */
export function listen(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (typeof address === 'object' && address !== null)
      process.stdout.write(`http://127.0.0.1:${address.port}\n`);
  });
}
