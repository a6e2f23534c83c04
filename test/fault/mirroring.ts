// Mirrors a table and a share of a peer without end, as fast as it can. Arguments: the peer's URL,
// a directory.
import { openMirrors } from './open-mirrors.js';

console.log('loaded');
const [baseUrl = '', directory = ''] = process.argv.slice(2);
const { mirrors } = await openMirrors({
  baseUrl,
  directory,
  tables: [{ table: 't', path: 'table.csv', versions: 2 }],
  shares: [{ data: 's', path: 'share.bin' }],
});
mirrors.start((error) => {
  throw error;
});
console.log('ready');
for (;;) {
  for await (const { name, condition, failure, changed } of mirrors.run(undefined)) {
    const unexpected = condition ?? failure;
    if (unexpected !== undefined) throw new Error(`${name}: ${unexpected.message}`);
    if (changed) console.log(`changed ${name}`);
  }
}
