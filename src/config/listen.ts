import { isIP } from 'node:net';

/** Where a server listens. */
export interface Listen {
  /** An IP address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** @returns the place that `"HOST:PORT"` names; undefined for what is none. `localhost` is 127.0.0.1 */
export function parseListen(text: string): Listen | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^[\]:]+)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const named = match[1] ?? match[2] ?? '';
  const host = named === 'localhost' ? '127.0.0.1' : named;
  const port = Number(match[3]);
  if (port > 65_535 || isIP(host) !== (match[1] === undefined ? 4 : 6)) return undefined;
  return { host, port };
}

/** Whether only this machine can reach it. */
export function isLoopback({ host }: Listen): boolean {
  return host.startsWith('127.') || host === '::1';
}
