import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Running } from '../support/cli.js';
import { HttpPeer } from '../support/http-peer.js';
import { compiledProgram } from '../support/program.js';
import { Random } from '../support/random.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const KILLS = 200;
const rows = Array.from({ length: 400 }, (_, row) => String(row).padStart(12, '0'));
/** The share is large enough that it is written in many pieces. */
const SHARE_BYTES = 256 * 1024;

/**
 * The files as they are to be where everything in them is of one answer of the peer, which has a
 * number of its own.
 */
const FILES = {
  'table.csv': (number: string) =>
    `pk,number,text\n${rows.map((pk) => `${pk},${number},"a ""quoted"",\nbroken line"\n`).join('')}`,
  'share.bin': (number: string) =>
    Buffer.alloc(SHARE_BYTES, `${number} `.padStart(16, '0')).toString(),
};

/**
 * A file that readers look at again and again: each time it is whole, or not there before it was
 * there once.
 */
class Watched {
  readonly seen = new Set<string>();
  #last: Buffer = Buffer.alloc(0);

  constructor(
    readonly path: string,
    readonly content: (number: string) => string,
  ) {}

  /** @returns the number of the answer that it is of */
  look(): string | undefined {
    if (this.seen.size === 0 && !existsSync(this.path)) return undefined;
    const bytes = readFileSync(this.path);
    const [number = ''] = /(?<=\n0{12},)\d+|^\d+/.exec(bytes.toString('latin1', 0, 100)) ?? [];
    // Most looks are one comparison.
    if (!bytes.equals(this.#last) && bytes.toString() !== this.content(number))
      throw new Error(
        `a reader saw ${bytes.length} bytes: ${JSON.stringify(bytes.toString('utf8', 0, 200))}`,
      );
    this.#last = bytes;
    this.seen.add(number);
    return number;
  }
}

it(`a file is whole at every instant while its mirror is killed ${KILLS} times`, async () => {
  const program = await compiledProgram(resolve(import.meta.dirname, 'mirroring.ts'));
  let number = 0;
  /** Whether the peer goes on changing; if not, everything keeps its number. */
  let isChanging = true;
  const peer = await HttpPeer.start(({ url }, response) => {
    if (isChanging) number += 1;
    const isShare = url.includes('share');
    response.setHeader('content-type', isShare ? 'application/octet-stream' : 'application/json');
    const text = 'a "quoted",\nbroken line';
    const table = rows.map((pk) => JSON.stringify({ pk, cells: { number: `${number}`, text } }));
    response.end(
      isShare
        ? FILES['share.bin'](`${number}`)
        : `{"table":"t","columns":["number","text"],"rows":[\n${table.join(',\n')}\n]}`,
    );
  });
  const directory = temporaryDirectory();
  const root = join(directory, 'mirror');
  const random = Random.seeded();
  const files = Object.entries(FILES).map(
    ([name, content]) => new Watched(join(root, name), content),
  );
  const seen = () => files.reduce((sum, file) => sum + file.seen.size, 0);
  let looks = 0;
  let over = false;
  /**
   * No process is there that could touch a file: one is killed, or its program is only being
   * loaded.
   */
  let isStill = true;
  const look = () => {
    looks += 1;
    return files.map((file) => file.look());
  };
  const reading = (async () => {
    for (; !over; await sleep(isStill ? 25 : 2)) look();
  })();
  reading.catch(() => {});

  for (let round = 0; round < KILLS; round += 1) {
    const before = seen();
    const mirroring = new Running([peer.url, directory], { program });
    mirroring.child.stdout?.once('data', () => {
      isStill = false;
    });
    const wanted = random.between(0, 3);
    const changes = () => mirroring.stdout.match(/changed/g)?.length ?? 0;
    await until(
      () => mirroring.stderr !== '' || changes() >= wanted,
      `round ${round}: ${wanted} changes`,
    );
    expect(mirroring.stderr).toBe('');
    await sleep(random.next() * 25);
    await mirroring.kill('SIGKILL');
    isStill = true;
    look();
    if (wanted > 1) expect(seen()).toBeGreaterThan(before);
  }
  over = true;
  await reading;
  expect(looks).toBeGreaterThan(KILLS * 5);
  await new Running([peer.url, directory], { program }).says('loaded');
  const temporary = () => readdirSync(root).filter((name) => name.includes('tmp'));
  await until(() => temporary().length <= 2, 'temporary files are swept');
  // While a version is kept, the one before has no place for a moment.
  isChanging = false;
  const isLast = () => look().every((each) => Number(each) === number);
  await until(isLast, 'what the peer has is there, and nothing changes any more');
  const versions = ['table.csv.1', 'table.csv.2'];
  const names = readdirSync(root).filter((name) => !name.includes('tmp'));
  expect(names.sort()).toEqual(['.peersync-mirror.json', 'share.bin', 'table.csv', ...versions]);
  for (const version of versions) new Watched(join(root, version), FILES['table.csv']).look();
}, 900_000);
