import type { MirrorConfig } from '../config/config.js';
import { isTablePattern, tablePattern } from '../config/table-pattern.js';
import type { PeerClient } from '../peer/client.js';
import type { Finding } from './check.js';
import { checkWritable } from './check-writable.js';
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

/**
 * Whether the peer has what is mirrored. Nothing of it is read.
 *
 * @throws PeerError when the peer does not answer that
 */
export async function* checkMirrored(
  { shares, tables }: MirrorConfig,
  client: PeerClient,
): AsyncGenerator<Finding> {
  const listed = tables.length === 0 ? [] : await client.tables.list();
  for (const { name, table } of tables) {
    const check = `mirror ${name}`;
    if (isTablePattern(table)) {
      const pattern = tablePattern(table);
      const matching = listed.filter((each) => pattern.test(each)).length;
      yield { check, ok: true, message: `matches ${counted(matching, 'table')} of the peer` };
    } else if (listed.includes(table))
      yield { check, ok: true, message: `the peer has the table "${table}"` };
    else yield { check, ok: false, message: `the peer has no table "${table}"`, hint: ABSENT };
  }
  for (const { name, data, c, maxSize } of shares) {
    const check = `mirror ${name}`;
    const query = c === undefined ? { data } : { data, c };
    const isThere = await client.share(query, async () => true, { maxBytes: maxSize });
    if (isThere) yield { check, ok: true, message: 'the peer has the shared object' };
    else yield { check, ok: false, message: `the peer has no shared object "${data}"`, hint: ABSENT };
  }
}
