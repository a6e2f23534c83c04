import { readFile } from 'node:fs/promises';
import { fewOf } from '../cli/text.js';
import type { Config } from '../config/config.js';

/** People's accounts have ids from here; those below are of the system. */
const FIRST_PERSON = 1_000;
const NOBODY = 65_534;
const NO_LOGIN = /\/(nologin|false|true|sync)$/;

/**
 * Describes what other accounts of this machine reach on loopback, and how to close it. Returns
 * undefined if nothing is open, or no other account can log in. Accounts of a directory service are
 * not seen.
 *
 * @param passwd the accounts, as in /etc/passwd
 */
export async function openToOthers(
  { peer, status }: Config,
  passwd = '/etc/passwd',
): Promise<{ readonly accounts: string; readonly open: readonly string[] } | undefined> {
  const open: string[] = [];
  if (peer.url === 'embedded' && !peer.embedded.requireAuth)
    open.push('can search the embedded peer: set `peer.embedded.requireAuth` to true');
  if (status.listen !== 'off' && status.token === undefined)
    open.push('can use the status page, and pause or retry there: set `status.token`');
  if (open.length === 0) return undefined;
  const others = loginsIn(await readFile(passwd, 'utf8').catch(() => ''), process.getuid?.());
  return others.length === 0 ? undefined : { accounts: fewOf(others), open };
}

function loginsIn(passwd: string, own: number | undefined): string[] {
  return passwd.split('\n').flatMap((line) => {
    const [name = '', , id = '', , , , shell = ''] = line.split(':');
    const uid = Number(id);
    const isPerson = id !== '' && uid >= FIRST_PERSON && uid < NOBODY && uid !== own;
    return isPerson && shell !== '' && !NO_LOGIN.test(shell) ? [name] : [];
  });
}
