import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterwards } from './afterwards.js';

/** A server of a test's own, until the test ends. @returns its URL, without a slash at the end */
export async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  afterwards('test', () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
