import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { Running } from '../support/cli.js';
import { compiledProgram } from '../support/program.js';
import { Random } from '../support/random.js';
import { serve } from '../support/server.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const KILLS = 200;
const ROWS = 400;
/** Large enough that it is written in many pieces. */
const SHARE_BYTES = 256 * 1024;

let program: string;
let url: string;
/** Every answer has a number of its own, and everything in it is of this number. */
let number = 0;
/** Whether the peer goes on changing; if not, everything keeps its number. */
let isChanging = true;

beforeAll(async () => {
  program = await compiledProgram(resolve(import.meta.dirname, 'mirroring.ts'));
});

beforeEach(async () => {
  url = await serve((request, response) => {
    request.resume().on('end', () => {
      if (isChanging) number += 1;
      if (request.url?.includes('share')) {
        response.setHeader('content-type', 'application/octet-stream');
        response.end(Buffer.alloc(SHARE_BYTES, `${number} `.padStart(16, '0')));
        return;
      }
      const rows = Array.from({ length: ROWS }, (_, row) => {
        const pk = String(row).padStart(12, '0');
        return `{"pk":"${pk}","cells":{"number":"${number}","text":"a \\"quoted\\",\\nbroken line"}}`;
      });
      response.setHeader('content-type', 'application/json');
      response.end(`{"table":"t","columns":["number","text"],"rows":[\n${rows.join(',\n')}\n]}`);
    });
  });
});

it(`a file is whole at every instant while its mirror is killed ${KILLS} times`, async () => {
  const directory = temporaryDirectory();
  const table = join(directory, 'mirror', 'table.csv');
  const share = join(directory, 'mirror', 'share.bin');
  const random = Random.seeded();
  const seen = { table: new Set<string>(), share: new Set<string>(), looks: 0 };
  let over = false;
  /** No process is there that could touch a file: one is killed, or its program is only being loaded. */
  let isStill = true;

  const look = (): void => {
    if (seen.table.size > 0 || existsSync(table)) seen.table.add(wholeTable(readFileSync(table)));
    if (seen.share.size > 0 || existsSync(share)) seen.share.add(wholeShare(readFileSync(share)));
    seen.looks += 1;
  };
  const reading = (async () => {
    while (!over) {
      look();
      await new Promise((resolve) => setTimeout(resolve, isStill ? 25 : 2));
    }
  })();
  reading.catch(() => {});

  for (let round = 0; round < KILLS; round += 1) {
    const before = seen.table.size + seen.share.size;
    const mirroring = new Running([url, directory], { program });
    mirroring.child.stdout?.once('data', () => {
      isStill = false;
    });
    const wanted = random.between(0, 3);
    await until(
      () => mirroring.stderr !== '' || (mirroring.stdout.match(/changed/g) ?? []).length >= wanted,
      `round ${round}: ${wanted} changes are written`,
      120_000,
    );
    expect(mirroring.stderr).toBe('');
    await new Promise((resolve) => setTimeout(resolve, random.next() * 25));
    await mirroring.kill('SIGKILL');
    isStill = true;
    look();
    if (wanted > 1) expect(seen.table.size + seen.share.size).toBeGreaterThan(before);
  }
  over = true;
  await reading;
  expect(seen.looks).toBeGreaterThan(KILLS * 5);
  expect(seen.table.size).toBeGreaterThan(KILLS / 4);
  expect(seen.share.size).toBeGreaterThan(KILLS / 4);

  // What the killed ones left behind is swept by the next start.
  await new Running([url, directory], { program }).says('loaded');
  await until(
    () => readdirSync(join(directory, 'mirror')).filter((name) => name.includes('tmp')).length <= 2,
    'temporary files are swept',
    120_000,
  );
  // While a version is kept, the one before has no place for a moment.
  isChanging = false;
  const isLast = () =>
    wholeTable(readFileSync(table)) === String(number) && Number(wholeShare(readFileSync(share))) === number;
  await until(isLast, 'what the peer has is there, and nothing changes any more', 120_000);
  expect(
    readdirSync(join(directory, 'mirror'))
      .filter((name) => !name.includes('tmp'))
      .sort(),
  ).toEqual(['share.bin', 'table.csv', 'table.csv.1', 'table.csv.2']);
  for (const version of ['table.csv.1', 'table.csv.2'])
    wholeTable(readFileSync(join(directory, 'mirror', version)));
  expect(statSync(share).size).toBe(SHARE_BYTES);
}, 900_000);

/** The number of a table that is whole; throws otherwise. */
function wholeTable(bytes: Buffer): string {
  const number = /\n0{12},(\d+),/.exec(bytes.toString('utf8', 0, 100))?.[1] ?? '';
  return whole(bytes, number, () => {
    let text = 'pk,number,text\n';
    for (let row = 0; row < ROWS; row += 1)
      text += `${String(row).padStart(12, '0')},${number},"a ""quoted"",\nbroken line"\n`;
    return Buffer.from(text);
  });
}

/** The number of a share that is whole; throws otherwise. */
function wholeShare(bytes: Buffer): string {
  const number = bytes.toString('latin1', 0, 16);
  return whole(bytes, number, () => Buffer.alloc(SHARE_BYTES, number));
}

/** What was last seen whole, so that most looks are one comparison. */
const known = new Map<string, Buffer>();

function whole(bytes: Buffer, number: string, content: () => Buffer): string {
  let expected = known.get(number);
  if (expected === undefined && number !== '') {
    expected = content();
    if (known.size > 10) known.clear();
    known.set(number, expected);
  }
  if (expected === undefined || !bytes.equals(expected))
    throw new Error(`a reader saw ${bytes.length} bytes: ${JSON.stringify(bytes.toString('utf8', 0, 200))}`);
  return number;
}
