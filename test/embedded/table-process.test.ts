import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

interface TableJson {
  readonly rows: readonly { readonly pk: string; readonly cells: Readonly<Record<string, string>> }[];
}

async function ask(peer: PeerProcess, parameters: Readonly<Record<string, string>>): Promise<TableJson> {
  const password = readFileSync(join(peer.data, 'admin-password'), 'utf8').trim();
  const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`;
  const response = await fetch(`${peer.url}/api/table_p.json`, {
    method: 'POST',
    headers: { authorization },
    body: new URLSearchParams(parameters),
  });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as TableJson;
}

describe('a table of a peer that is killed', () => {
  it('has every row that was answered for, whole, and no row that was deleted', {
    timeout: 120_000,
  }, async () => {
    const data = temporaryDirectory();
    const kept = new Map<string, string>();
    const deleted = new Set<string>();
    for (let round = 0; round < 2; round += 1) {
      const peer = await PeerProcess.start(data);
      const writers = Array.from({ length: 4 }, async (_, writer) => {
        for (let n = 0; ; n += 1) {
          const value = `${round}.${writer}.${n} ${'x'.repeat((n % 10) * 1_000)}`;
          const { rows } = await ask(peer, { table: 't', commitrow: '1', col_a: value, col_b: value });
          const pk = rows[0]?.pk ?? '';
          if (n % 3 > 0) {
            kept.set(pk, value);
          } else {
            await ask(peer, { table: 't', deleterows: '1', item_0: `pk_${pk}`, count: '0' });
            deleted.add(pk);
          }
        }
      });
      const ended = Promise.allSettled(writers);
      const aim = kept.size + 8;
      await until(() => kept.size > aim, 'some rows are there', 60_000);
      await peer.running.kill('SIGKILL');
      await ended;
    }
    const { rows } = await ask(await PeerProcess.start(data), { table: 't' });
    const found = new Map(rows.map(({ pk, cells }) => [pk, cells]));
    for (const [pk, value] of kept) expect(found.get(pk)).toEqual({ a: value, b: value });
    for (const pk of deleted) expect(found.has(pk)).toBe(false);
    for (const { cells } of rows) expect(cells.a).toBe(cells.b);
  });
});
