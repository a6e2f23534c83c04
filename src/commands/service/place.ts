import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Argv } from 'yargs';
import { EXIT, PeersyncError } from '../../lib/errors.js';
import { UsageError } from '../context.js';
import { isThere, type Site, siteOf } from './installation.js';

/** Which service a command is about. */
export interface PlaceOptions {
  readonly user: boolean;
  readonly name: string | undefined;
}

export function placeOptions<T>(yargs: Argv<T>): Argv<T & PlaceOptions> {
  return yargs
    .option('user', {
      type: 'boolean',
      default: false,
      describe: 'A service of your own, which needs no root and sees what you see',
    })
    .option('name', {
      type: 'string',
      describe: 'One of several services on this machine: letters, digits and any of - _ .',
      requiresArg: true,
    }) as unknown as Argv<T & PlaceOptions>;
}

/** @throws UsageError for a name that systemd would read as something else */
export function siteOfOptions({ user, name }: PlaceOptions): Site {
  if (name !== undefined && !/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/.test(name))
    throw new UsageError(
      `--name: received ${JSON.stringify(name)}; expected a name of letters, digits and any of - _ .`,
      'Name it like peersync service install --name docs.',
    );
  return siteOf({ scope: user ? 'user' : 'system', name, configHome: configHome() });
}

/** Where this user's configurations stand. */
export function configHome(): string {
  return process.env.XDG_CONFIG_HOME || join(homedir(), '.config');
}

/** @throws PeersyncError SERVICE_NOT_ROOT where a service of the system is to be changed by somebody who may not */
export function assertMayChange({ scope }: Site): void {
  if (scope === 'user' || process.getuid?.() === 0) return;
  throw new PeersyncError({
    code: 'SERVICE_NOT_ROOT',
    message: 'Only root may change the services of the system.',
    hint: 'Say it again with sudo, or with --user for a service of your own.',
    exitCode: EXIT.usage,
  });
}

export function systemctl({ scope }: Site, ...words: readonly string[]): readonly string[] {
  return ['systemctl', ...(scope === 'user' ? ['--user'] : []), ...words];
}

/** What a person types to look at it. */
export function lookWords({ scope, unit }: Site): readonly string[] {
  const user = scope === 'user' ? '--user ' : '';
  return [
    `systemctl ${user}status ${unit}    how it stands`,
    `journalctl ${user}-u ${unit} -f    what it says, as it says it`,
    `systemctl ${user}reload ${unit}    takes a changed configuration up`,
  ];
}

/** @throws PeersyncError SERVICE_NO_SYSTEMD where another program started the system */
export async function assertSystemd(): Promise<void> {
  if (await isThere('/run/systemd/system')) return;
  throw new PeersyncError({
    code: 'SERVICE_NO_SYSTEMD',
    message: 'This system was not started by systemd.',
    hint: 'Start `peersync run` by what starts services here; `--dry-run` shows the units.',
  });
}
