/**
 * Makes files in the container of old office programs (OLE 2, MS-CFB): a file system in a file.
 * Streams from 4,096 bytes on lie in sectors of 512 bytes, shorter ones in sectors of 64 bytes
 * within one stream of their own.
 */

/** A stream by its bytes, or a directory by its entries. */
export type OleEntry = Uint8Array | OleDirectory;
export interface OleDirectory {
  readonly [name: string]: OleEntry;
}

const SECTOR = 512;
const SMALL_SECTOR = 64;
const SMALL_STREAM = 4_096;
const FREE = 0xffffffff;
const END = 0xfffffffe;
const OF_TABLE = 0xfffffffd;
const NONE = 0xffffffff;
const KIND = { directory: 1, stream: 2, root: 5 } as const;

interface Node {
  readonly name: string;
  readonly kind: number;
  readonly content: Uint8Array;
  right: number;
  child: number;
  start: number;
}

export function ole(root: OleDirectory): Buffer {
  const nodes: Node[] = [];
  addNode(nodes, 'Root Entry', KIND.root, new Uint8Array());
  addEntries(nodes, 0, root);

  const small = new Sectors(SMALL_SECTOR);
  for (const node of nodes)
    if (node.kind === KIND.stream && node.content.length < SMALL_STREAM)
      node.start = small.add(node.content);
  const large = new Sectors(SECTOR);
  for (const node of nodes)
    if (node.kind === KIND.stream && node.content.length >= SMALL_STREAM)
      node.start = large.add(node.content);
  const smallBytes = small.bytes();
  const smallStart = large.add(smallBytes);
  const smallTable = numbers(small.next);
  const smallTableStart = large.add(smallTable);
  const [first] = nodes;
  if (first !== undefined) first.start = smallStart;
  const directory = Buffer.concat(
    nodes.map((node) => directoryEntry(node, node === first ? smallBytes.length : undefined)),
  );
  const directoryStart = large.add(directory);

  // The table describes its own sectors, too.
  const perSector = SECTOR / 4;
  let tables = 1;
  while (tables * perSector < large.next.length + tables) tables += 1;
  const tableStart = large.next.length;
  const next = [...large.next, ...Array<number>(tables).fill(OF_TABLE)];
  while (next.length < tables * perSector) next.push(FREE);

  const header = Buffer.alloc(SECTOR, 0xff);
  header.fill(0, 0, 76);
  header.write('d0cf11e0a1b11ae1', 0, 'hex');
  header.writeUInt16LE(0x3e, 24);
  header.writeUInt16LE(3, 26);
  header.writeUInt16LE(0xfffe, 28);
  header.writeUInt16LE(9, 30);
  header.writeUInt16LE(6, 32);
  header.writeUInt32LE(tables, 44);
  header.writeUInt32LE(directoryStart, 48);
  header.writeUInt32LE(SMALL_STREAM, 56);
  header.writeUInt32LE(smallTableStart, 60);
  header.writeUInt32LE(Math.ceil(smallTable.length / SECTOR), 64);
  header.writeUInt32LE(END, 68);
  for (let i = 0; i < tables; i += 1) header.writeUInt32LE(tableStart + i, 76 + 4 * i);
  return Buffer.concat([header, large.bytes(), numbers(next)]);
}

function addNode(nodes: Node[], name: string, kind: number, content: Uint8Array): Node {
  const node = { name, kind, content, right: NONE, child: NONE, start: END };
  nodes.push(node);
  return node;
}

/** Adds the entries of a directory, which is a tree ordered by name: the next one is right. */
function addEntries(nodes: Node[], parent: number, directory: OleDirectory): void {
  const order = (a: string, b: string) =>
    a.length - b.length || (a.toUpperCase() < b.toUpperCase() ? -1 : 1);
  const names = Object.keys(directory).sort(order);
  let before: Node | undefined;
  for (const name of names) {
    const entry = directory[name];
    if (entry === undefined) continue;
    const at = nodes.length;
    const isStream = entry instanceof Uint8Array;
    const node = addNode(
      nodes,
      name,
      isStream ? KIND.stream : KIND.directory,
      isStream ? entry : new Uint8Array(),
    );
    if (before !== undefined) before.right = at;
    else {
      const above = nodes[parent];
      if (above !== undefined) above.child = at;
    }
    before = node;
    if (!isStream) addEntries(nodes, at, entry);
  }
}

function directoryEntry(node: Node, size = node.content.length): Buffer {
  const bytes = Buffer.alloc(128);
  bytes.write(node.name, 0, 'utf16le');
  bytes.writeUInt16LE(2 * (node.name.length + 1), 64);
  bytes.writeUInt8(node.kind, 66);
  // Black, as all entries of a tree without balance may be.
  bytes.writeUInt8(1, 67);
  bytes.writeUInt32LE(NONE, 68);
  bytes.writeUInt32LE(node.right, 72);
  bytes.writeUInt32LE(node.child, 76);
  bytes.writeUInt32LE(node.kind === KIND.directory ? 0 : node.start, 116);
  bytes.writeUInt32LE(size, 120);
  return bytes;
}

/** Sectors of one size, and the table with the next sector of each. */
class Sectors {
  readonly next: number[] = [];
  readonly #pieces: Buffer[] = [];

  constructor(private readonly size: number) {}

  /** Adds a stream. @returns its first sector */
  add(content: Uint8Array): number {
    if (content.length === 0) return END;
    const start = this.next.length;
    const count = Math.ceil(content.length / this.size);
    const padded = Buffer.alloc(count * this.size);
    padded.set(content);
    this.#pieces.push(padded);
    for (let i = 1; i < count; i += 1) this.next.push(start + i);
    this.next.push(END);
    return start;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }
}

/** Numbers of a table in whole sectors. */
function numbers(values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(Math.ceil((4 * values.length) / SECTOR) * SECTOR, 0xff);
  for (const [i, value] of values.entries()) bytes.writeUInt32LE(value, 4 * i);
  return bytes;
}
