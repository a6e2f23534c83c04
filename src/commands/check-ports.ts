import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { Config } from '../config/config.js';
import { type Listen, parseListen } from '../config/url.js';
import { messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { runningStatus } from './ask.js';
import type { Finding } from './finding.js';
import { find, Wrong } from './finding.js';

/**
 * Checks whether the daemon can listen on its addresses, or already does. Yields nothing for an
 * address that is off.
 */
export async function* checkPorts({ peer, state, status }: Config): AsyncGenerator<Finding> {
  // If the daemon does not answer this user, only its port shows it.
  const ours = await runningStatus(state.dir).catch((error: unknown) => {
    if (!(error instanceof PeersyncError)) throw error;
  });
  const embedded =
    peer.url === 'embedded' ? { host: '127.0.0.1', port: peer.embedded.port } : undefined;
  const ports = [
    { check: 'embedded peer', key: 'peer.embedded.port', listen: embedded, served: ours?.peer.url },
    {
      check: 'status page',
      key: 'status.listen',
      listen: parseListen(status.listen),
      served: ours?.page,
    },
  ];
  // Each is held until all were tried, so that two of the same do not pass one after the other.
  const held: Server[] = [];
  try {
    for (const { check, key, listen, served } of ports) {
      if (listen === undefined) continue;
      yield await find(check, async () => {
        const server = createServer((socket) => socket.destroy());
        try {
          server.listen({ ...listen, exclusive: true });
          await once(server, 'listening');
          held.push(server);
          return `it can listen at ${addressOf(listen)}`;
        } catch (error) {
          // Our own daemon would make room for itself.
          const isOurs = served !== undefined && Number(new URL(served).port || 80) === listen.port;
          if (isOurs) return `the running daemon serves it at ${served}`;
          throw notListening(error, listen, key);
        }
      });
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((closed) => server.close(closed))));
  }
}

/** Returns the reason why a program cannot listen there. */
function notListening(error: unknown, listen: Listen, key: string): Wrong {
  const at = addressOf(listen);
  if (systemCode(error) !== 'EADDRINUSE')
    return new Wrong(`nobody can listen at ${at}: ${messageOf(error)}`, `Set another \`${key}\`.`);
  const hint = `Stop what listens there, unless it is the daemon of this configuration, or set another \`${key}\`.`;
  return new Wrong(`${at} is in use`, hint);
}

function addressOf({ host, port }: Listen): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === 0 ? `any free port of ${name}` : `${name}:${port}`;
}
