/** One member of a tar file; a file unless `type` says otherwise. */
export interface TarMember {
  readonly name: string | Uint8Array;
  readonly content?: string | Uint8Array;
  /** @default '0' */
  readonly type?: string;
  readonly link?: string;
  /** Another size than that of the content. */
  readonly size?: number;
  /** The first part of a long name, in the format ustar. */
  readonly prefix?: string;
  /** @default `ustar` of POSIX */
  readonly magic?: string;
}

/** Makes a tar file. */
export function tar(...members: readonly TarMember[]): Buffer {
  return Buffer.concat([...members.flatMap(tarMember), Buffer.alloc(1_024)]);
}

/** Makes the header of a member, and its content with its padding. */
export function tarMember({
  content = '',
  link = '',
  magic = 'ustar\x0000',
  name,
  prefix = '',
  size,
  type = '0',
}: TarMember): readonly Buffer[] {
  const bytes = Buffer.from(content as Uint8Array);
  const header = Buffer.alloc(512);
  Buffer.from(name as Uint8Array).copy(header, 0, 0, 100);
  header.write('0000644\0', 100, 'latin1');
  header.write((size ?? bytes.length).toString(8).padStart(11, '0'), 124, 'latin1');
  header.write('00000000000\0        ', 136, 'latin1');
  header.write(type, 156, 'latin1');
  header.write(link, 157);
  header.write(magic, 257, 'latin1');
  header.write(prefix, 345);
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
}

/** Makes the header of pax records for the next member. */
export function pax(records: Readonly<Record<string, string>>): TarMember {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = Buffer.byteLength(` ${key}=${value}\n`);
    let length = rest + 1;
    while (`${length}`.length + rest !== length) length = `${length}`.length + rest;
    return `${length} ${key}=${value}\n`;
  });
  return { name: 'PaxHeaders/1', type: 'x', content: lines.join('') };
}
