import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFailed } from 'vitest';
import { Running } from '../support/cli.js';
import { HttpPeer } from '../support/http-peer.js';
import { compiledProgram } from '../support/program.js';
import { Random } from '../support/random.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const KILLS = 40;
const COLUMNS = ['a', 'b'] as const;
type Cells = Record<string, string>;

/** A change of one cell, or, without a column, the removal of a row. */
interface Change {
  readonly by: 'mirror' | 'other';
  readonly pk: string;
  readonly column?: string;
  readonly value: string;
}

/** An edit of a person: a cell that was set, an added row without a key, or a removed row. */
interface Edit {
  readonly pk: string;
  readonly column?: string;
  readonly value: string;
}

/** The table of the peer, and everything that ever was written to it, in order. */
const rows = new Map<string, Cells>();
const history: Change[] = [];

function answer(asked: URLSearchParams): string {
  const pk = asked.get('pk');
  if (asked.has('commitrow')) {
    for (const [name, value] of asked)
      if (name.startsWith('col_'))
        change({ by: 'mirror', pk: pk ?? '', column: name.slice(4), value });
  } else if (asked.has('deleterows')) {
    for (const [name, value] of asked)
      if (name.startsWith('item_')) change({ by: 'mirror', pk: value.slice(3), value: '' });
  } else if (asked.has('table')) {
    const shown = sorted().filter(([key]) => pk === null || key === pk);
    const all = shown.map(([key, cells]) => ({ pk: key, cells }));
    return JSON.stringify({ table: 't', columns: COLUMNS, rows: all });
  }
  return JSON.stringify({ tables: ['t'] });
}

const sorted = () => [...rows].sort(([a], [b]) => (a < b ? -1 : 1));

function change(what: Change): void {
  const { pk, column, value } = what;
  history.push(what);
  if (column === undefined) rows.delete(pk);
  else rows.set(pk, { ...rows.get(pk), [column]: value });
}

it(`edits of a person and changes in the peer survive ${KILLS} kills of the mirror`, async () => {
  const random = Random.seeded();
  onTestFailed(() => console.error(`PEERSYNC_TEST_SEED=${random.seed} repeats this`));
  const program = await compiledProgram(resolve(import.meta.dirname, 'editing.ts'));
  const { url } = await HttpPeer.start(({ body }, response) => {
    const asked = new URLSearchParams(body);
    response.setHeader('content-type', 'application/json').end(answer(asked));
  });
  const directory = temporaryDirectory();
  const root = join(directory, 'mirror');
  const file = join(root, 't.csv');
  const lock = join(directory, 'lock');
  const edits: Edit[] = [];
  let number = 0;
  const unique = (letter: string): string => {
    number += 1;
    return `${letter}${String(number).padStart(5, '0')}`;
  };
  const pause = (ms: number) => sleep(random.next() * ms);
  const start = () => new Running([url, directory, lock], { program });

  /** The person: one edit of what the file says now. */
  const edit = (): void => {
    try {
      mkdirSync(lock);
    } catch {
      return;
    }
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    const keyed = lines.flatMap((line, i) => (i > 0 && !line.startsWith(',') ? [i] : []));
    const value = unique('m');
    const at = keyed[random.between(0, keyed.length - 1)];
    const [pk = '', ...cells] = (at === undefined ? undefined : lines[at]?.split(',')) ?? [];
    if (at === undefined || random.chance(0.2)) {
      appendFileSync(file, `,${value},\n`);
      edits.push({ pk: '', column: 'a', value });
    } else {
      const column = random.pick([0, 1]);
      const isRemoved = keyed.length > 5 && random.chance(0.15);
      lines.splice(at, 1, ...(isRemoved ? [] : [[pk, ...cells.with(column, value)].join(',')]));
      writeFileSync(`${file}~`, lines.map((line) => `${line}\n`).join(''));
      renameSync(`${file}~`, file);
      edits.push(isRemoved ? { pk, value: '' } : { pk, column: COLUMNS[column], value });
    }
    rmdirSync(lock);
  };

  /** Another client of the peer. */
  const others = (): void => {
    const keys = [...rows.keys()];
    const known = keys[random.between(0, keys.length - 1)];
    const value = unique('p');
    const pk = known === undefined || random.chance(0.1) ? `other-${value}` : known;
    change({ by: 'other', pk, column: random.pick(COLUMNS), value });
  };

  for (let row = 0; row < 6; row += 1)
    change({ by: 'other', pk: `k${row}`, column: 'a', value: unique('p') });
  let mirroring = start();
  await mirroring.says('round 1');
  let over = false;
  const busy = (async () => {
    while (!over) {
      if (random.chance(0.5)) edit();
      else others();
      await pause(80);
    }
  })();
  busy.catch(() => {});
  for (let round = 0; round < KILLS; round += 1) {
    await pause(300);
    expect(await mirroring.kill('SIGKILL')).toMatchObject({ stderr: '' });
    // A killed process may leave its lock. The person holds no lock at this point.
    rmSync(lock, { recursive: true, force: true });
    await pause(150);
    mirroring = start();
    await mirroring.says(random.pick(['ready', 'ready', 'round 1', 'round 3']));
  }
  over = true;
  await busy;

  const content = () =>
    sorted()
      .map(([pk, { a = '', b = '' }]) => `${pk},${a},${b}\n`)
      .join('');
  await until(() => readFileSync(file, 'utf8') === `pk,a,b\n${content()}`, 'both are equal');
  await mirroring.kill('SIGKILL');

  const conflicts = readdirSync(root)
    .filter((name) => name.includes('.conflict-'))
    .map((name) => readFileSync(join(root, name), 'utf8'));
  const lostEdits = edits.filter(({ pk, column, value }, i) => {
    if (column === undefined) return false;
    if (history.some((each) => each.by === 'mirror' && each.value === value)) return false;
    if (conflicts.some((text) => text.includes(value))) return false;
    const isLater = (each: Edit) => each.pk === pk && (each.column ?? column) === column;
    return pk === '' || !edits.slice(i + 1).some(isLater);
  });
  expect(lostEdits, 'edits that are nowhere').toEqual([]);
  const inPeer = content();
  const added = edits.filter(({ pk }) => pk === '').map(({ value }) => value);
  const twice = added.filter((value) => inPeer.split(`,${value},`).length > 2);
  expect(twice, 'rows that were added twice').toEqual([]);
  const changes = history.filter(({ by }) => by === 'mirror');
  const notHis = changes.filter(
    ({ column, value }) => column !== undefined && value !== '' && !value.startsWith('m'),
  );
  expect(notHis, 'what others wrote and was put back to something older').toEqual([]);
  const removed = new Set(edits.flatMap(({ pk, column }) => (column === undefined ? [pk] : [])));
  const notRemoved = changes.filter(({ pk, column }) => column === undefined && !removed.has(pk));
  expect(notRemoved, 'rows that were deleted and nobody removed').toEqual([]);
  // A busy machine makes more edits in a round, because a start takes longer.
  expect(changes.length, 'edits reached the peer').toBeGreaterThan(KILLS);
  expect(edits.length).toBeGreaterThan(KILLS);
}, 600_000);
