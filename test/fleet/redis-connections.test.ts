import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { connectionsTo, fleetAt } from './fleet.js';

it('waits no longer for a connection that was accepted and closed without an error', async () => {
  let accepted = 0;
  const server = createServer((socket) => {
    accepted += 1;
    socket.on('error', () => {});
    socket.end();
  });
  afterwards('test', () => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const connections = await connectionsTo(fleetAt(`redis://127.0.0.1:${port}`));
  await connections.ready();
  expect(accepted).toBe(1);
});
