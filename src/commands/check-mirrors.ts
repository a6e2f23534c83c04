import type { MirrorConfig, ShareMirrorConfig, TableMirrorConfig } from '../config/config.js';
import { EXIT } from '../lib/errors.js';
import { isWildcard, wildcard } from '../lib/text.js';
import { isTooLarge } from '../mirror/errors.js';
import type { PeerClient } from '../peer/client.js';
import { checkWritable } from './check-writable.js';
import { type Finding, troubleOf } from './finding.js';
import { counted } from './text.js';

const ABSENT = 'Mend its name in `mirror` (upper and lower case count), or put it there.';

/** Whether the mirrored files can be written; nothing where nothing is mirrored. */
export async function* checkMirrorRoot({
  root,
  shares,
  tables,
  citations,
}: MirrorConfig): AsyncGenerator<Finding> {
  if (shares.length + tables.length + citations.length === 0) return;
  yield await checkWritable({ check: 'mirror root', path: root, key: 'mirror.root' });
}

/** Whether the peer has what is mirrored, each by itself. Nothing of it is read. Ends where the peer does not answer. */
export async function* checkMirrored(
  { shares, tables }: MirrorConfig,
  client: PeerClient,
): AsyncGenerator<Finding> {
  if (tables.length > 0) {
    try {
      const listed = await client.tables.list();
      for (const table of tables) yield checkTable(table, listed);
    } catch (error) {
      const trouble = troubleOf('mirrored tables', error);
      yield trouble;
      if (trouble.exitCode === EXIT.unreachable) return;
    }
  }
  for (const share of shares) {
    const finding = await checkShare(share, client);
    yield finding;
    if (finding.exitCode === EXIT.unreachable) return;
  }
}

function checkTable({ name, table }: TableMirrorConfig, listed: readonly string[]): Finding {
  const check = `mirror ${name}`;
  if (isWildcard(table)) {
    const pattern = wildcard(table);
    const matching = listed.filter((each) => pattern.test(each)).length;
    return { check, ok: true, message: `matches ${counted(matching, 'table')} of the peer` };
  }
  if (listed.includes(table)) return { check, ok: true, message: `the peer has the table "${table}"` };
  return { check, ok: false, message: `the peer has no table "${table}"`, hint: ABSENT };
}

async function checkShare(
  { name, data, c, maxSize }: ShareMirrorConfig,
  client: PeerClient,
): Promise<Finding> {
  const check = `mirror ${name}`;
  const query = c === undefined ? { data } : { data, c };
  try {
    const isThere = await client.share(query, async () => true, { maxBytes: maxSize });
    if (isThere) return { check, ok: true, message: 'the peer has the shared object' };
    return { check, ok: false, message: `the peer has no shared object "${data}"`, hint: ABSENT };
  } catch (error) {
    const trouble = troubleOf(check, error);
    return isTooLarge(error) ? { ...trouble, hint: 'Raise its `maxSize`.' } : trouble;
  }
}
