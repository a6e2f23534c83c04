/**
 * Makes a ZIP whose directory has very many members, all without content and with the same local
 * header.
 */
export function memberless(members: number): Buffer {
  const local = Buffer.alloc(30 + 1);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(20, 4);
  local.writeUInt16LE(1, 26);
  local.write('m', 30);
  const entry = Buffer.alloc(46 + 1);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt16LE(20, 4);
  entry.writeUInt16LE(20, 6);
  entry.writeUInt16LE(1, 28);
  entry.write('m', 46);
  const directory = Buffer.alloc(entry.length * members, entry);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  // More members than fit into the two bytes of their number.
  end.writeUInt16LE(0xffff, 8);
  end.writeUInt16LE(0xffff, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, directory, end]);
}
