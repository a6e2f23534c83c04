import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { dirname } from 'node:path';
import type { Config } from '../config/config.js';
import { type Listen, parseListen } from '../config/url.js';
import { type ExitCode, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { runningStatus } from './daemon-access.js';

/** One thing that was checked. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly message: string;
  readonly hint?: string;
  /** The exit code that this finding alone would lead to. */
  readonly exitCode?: ExitCode;
}

export function works(check: string, message: string): Finding {
  return { check, ok: true, message };
}

export function fails(check: string, message: string, hint: string): Finding {
  return { check, ok: false, message, hint };
}

/** The finding that an error is. @throws the error where it is none that a person may read */
export function troubleOf(check: string, error: unknown): Finding {
  if (!(error instanceof PeersyncError)) throw error;
  const { message, hint, exitCode } = error;
  return { check, ok: false, message, hint, exitCode };
}

/**
 * Whether a directory, or the nearest one above where it is still to be made, can be written and has room.
 *
 * @param key of the configuration, which names it
 * @param freeBytes what is free on the disk of a path, for this user
 */
export async function checkWritable(
  check: string,
  directory: string,
  key: string,
  freeBytes: (path: string) => Promise<number> = freeOf,
): Promise<Finding> {
  for (let path = directory; ; path = dirname(path)) {
    try {
      await access(path, constants.W_OK | constants.X_OK);
      if ((await freeBytes(path)) === 0)
        return fails(
          check,
          `no space is left on the disk of ${directory}`,
          'Free some space there; nothing is lost, and a daemon goes on by itself.',
        );
      const message =
        path === directory ? `${directory} can be written` : `${directory} will be made when it is needed`;
      return works(check, message);
    } catch (error) {
      if (systemCode(error) === 'ENOENT' && path !== dirname(path)) continue;
      const message = `${path} cannot be written: ${messageOf(error)}`;
      return fails(check, message, `Let the user that peersync runs as write there, or mend \`${key}\`.`);
    }
  }
}

async function freeOf(path: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(path);
  // Some file systems do not tell how large they are.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/** Whether the daemon can listen where it is to, or does already; nothing where it is to listen nowhere. */
export async function* checkPorts({ peer, state, status }: Config): AsyncGenerator<Finding> {
  const running = await runningStatus(state.dir).catch((error: unknown) => {
    if (error instanceof PeersyncError) return 'unknown' as const;
    throw error;
  });
  const ours = running === 'unknown' ? undefined : running;
  const embedded = peer.url === 'embedded' ? { host: '127.0.0.1', port: peer.embedded.port } : undefined;
  const ports = [
    { check: 'embedded peer', key: 'peer.embedded.port', listen: embedded, served: ours?.peer.url },
    { check: 'status page', key: 'status.listen', listen: parseListen(status.listen), served: ours?.page },
  ];
  // Each is held until all were tried, so that two of the same do not pass one after the other.
  const held: Server[] = [];
  try {
    for (const { check, key, listen, served } of ports) {
      if (listen === undefined) continue;
      const at = addressOf(listen);
      try {
        held.push(await listenAt(listen));
        yield works(check, `it can listen at ${at}`);
      } catch (error) {
        // Our own daemon would make room for itself.
        const isOurs = served !== undefined && Number(new URL(served).port || 80) === listen.port;
        const another = `set another \`${key}\`.`;
        if (isOurs) yield works(check, `the running daemon serves it at ${served}`);
        else if (systemCode(error) === 'EADDRINUSE')
          yield fails(
            check,
            `${at} is in use`,
            running === 'unknown'
              ? `If that is the daemon of this configuration, which could not be asked, all is well; else stop what listens there, or ${another}`
              : `Stop what listens there, or ${another}`,
          );
        else if (systemCode(error) === 'EADDRNOTAVAIL')
          yield fails(
            check,
            `this machine has no address ${listen.host}`,
            `Set \`${key}\` to an address that it has; \`ip address\` names them.`,
          );
        else if (systemCode(error) === 'EACCES')
          yield fails(check, `this user may not listen at ${at}`, `Set \`${key}\` to a port from 1024 up.`);
        else
          yield fails(
            check,
            `nobody can listen at ${at}: ${messageOf(error)}`,
            `Mend what is wrong, or ${another}`,
          );
      }
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((closed) => server.close(closed))));
  }
}

function listenAt({ host, port }: Listen): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => resolve(server));
  });
}

function addressOf({ host, port }: Listen): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === 0 ? `any free port of ${name}` : `${name}:${port}`;
}
