import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { dirname } from 'node:path';
import type { Config } from '../config/config.js';
import { type Listen, parseListen } from '../config/url.js';
import { type ExitCode, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import type { StatusReport } from '../report/status.js';
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

/** A directory that peersync writes to. */
interface Place {
  /** What it is called among the findings. */
  readonly check: string;
  readonly path: string;
  /** The key of the configuration that names it. */
  readonly key: string;
}

/**
 * Whether a directory, or the nearest one above where it is still to be made, can be written and has room.
 *
 * @param freeBytes what is free on the disk of a path, for this user
 */
export async function checkWritable(
  { check, path: directory, key }: Place,
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

/** A place to listen at that the configuration names. */
interface Port {
  readonly check: string;
  readonly key: string;
  readonly listen: Listen;
  /** The address at which the running daemon listens for the same purpose. */
  readonly ours: string | undefined;
}

/** What the running daemon of this configuration says: `unknown` where it cannot be asked, undefined where none runs. */
type Running = Pick<StatusReport, 'peer' | 'page'> | 'unknown' | undefined;

/** Whether the daemon can listen where it is to, or does already; nothing where it is to listen nowhere. */
export async function* checkPorts(config: Config): AsyncGenerator<Finding> {
  const running = await runningDaemon(config);
  // Each is held until all were tried, so that two of the same do not pass one after the other.
  const held: Server[] = [];
  try {
    for (const port of portsOf(config, running === 'unknown' ? undefined : running)) {
      try {
        held.push(await listenAt(port.listen));
        yield works(port.check, `it can listen at ${addressOf(port.listen)}`);
      } catch (error) {
        yield isOurs(port)
          ? works(port.check, `the running daemon serves it at ${port.ours}`)
          : troubleWith(port, error, running);
      }
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((closed) => server.close(closed))));
  }
}

/** Where the daemon is to listen. */
function portsOf({ peer, status }: Config, running: Exclude<Running, 'unknown'>): Port[] {
  const ports: Port[] = [];
  if (peer.url === 'embedded') {
    const listen = { host: '127.0.0.1', port: peer.embedded.port };
    ports.push({ check: 'embedded peer', key: 'peer.embedded.port', listen, ours: running?.peer.url });
  }
  const listen = parseListen(status.listen);
  if (listen !== undefined)
    ports.push({ check: 'status page', key: 'status.listen', listen, ours: running?.page });
  return ports;
}

/** Whether it is our own daemon that is in the way, which would make room for itself. */
function isOurs({ listen, ours }: Port): boolean {
  return ours !== undefined && Number(new URL(ours).port || 80) === listen.port;
}

async function runningDaemon({ state }: Config): Promise<Running> {
  try {
    return await runningStatus(state.dir);
  } catch (error) {
    if (!(error instanceof PeersyncError)) throw error;
    return 'unknown';
  }
}

function listenAt({ host, port }: Listen): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => resolve(server));
  });
}

function troubleWith({ check, key, listen }: Port, error: unknown, running: Running): Finding {
  const at = addressOf(listen);
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return fails(
        check,
        `${at} is in use`,
        running === 'unknown'
          ? `If that is the daemon of this configuration, which could not be asked, all is well; else stop what listens there, or set another \`${key}\`.`
          : `Stop what listens there, or set another \`${key}\`.`,
      );
    case 'EADDRNOTAVAIL':
      return fails(
        check,
        `this machine has no address ${listen.host}`,
        `Set \`${key}\` to an address that it has; \`ip address\` names them.`,
      );
    case 'EACCES':
      return fails(check, `this user may not listen at ${at}`, `Set \`${key}\` to a port from 1024 up.`);
    default:
      return fails(check, `nobody can listen at ${at}: ${messageOf(error)}`, `Set another \`${key}\`.`);
  }
}

function addressOf({ host, port }: Listen): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === 0 ? `any free port of ${name}` : `${name}:${port}`;
}
