import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { docx } from '../content/documents.js';
import { afterwards } from '../support/afterwards.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { memoryMb } from '../support/memory.js';
import { MemoryLimit } from '../support/memory-limit.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';
import { bombs } from './bombs.js';

/** PEERSYNC_BOMB_RUNS sets how often all of it is done. */
const RUNS = Number(process.env.PEERSYNC_BOMB_RUNS ?? 1);
/** Number of documents of each kind. Each kind takes minutes. */
const ROUNDS = RUNS > 1 ? 3 : 1;
/** A slow document may take a minute of processor time, which is more where other programs work. */
const REST_MS = 600_000;
/** Memory of the daemon and all its processes, in MB. */
const MOST_MEMORY_MB = 1_024;

/** Reads `MemoryMax=` of the unit, in bytes. */
function memoryOfUnit(): number {
  const unit = readFileSync(resolve(import.meta.dirname, '../../systemd/peersync.service'), 'utf8');
  return Number(/^MemoryMax=(\d+)G$/m.exec(unit)?.[1]) * 2 ** 30;
}

interface Listed {
  readonly path: string;
  readonly status: string;
  readonly code?: string;
  readonly message?: string;
}

it.each(Array.from({ length: RUNS }, (_, run) => [run + 1]))(
  'all bombs at once cost their own items: a note and a document beside them are confirmed, and memory is bounded (run %i)',
  async () => {
    const directory = temporaryDirectory();
    const config = writeConfig(directory, {
      peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    });
    const inbox = (name: string) => join(directory, 'inbox', name);
    const hostile: string[] = [];
    for (let round = 1; round <= ROUNDS; round += 1)
      for (const [name, bytes] of Object.entries(bombs(round))) {
        writeFileSync(inbox(name), bytes);
        hostile.push(name);
      }
    const list = async () => {
      const { stdout } = await peersync(['list', '--json', '-c', config]);
      return stdout
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Listed]));
    };
    const statusOf = async (path: string) =>
      (await list()).find((each) => each.path === path)?.status;

    const unit = MemoryLimit.of(memoryOfUnit());
    const daemon = new Running(['run', '-c', config]);
    const pid = daemon.child.pid ?? 0;
    unit?.take(pid);
    let most = 0;
    const sampling = setInterval(() => {
      most = Math.max(most, memoryMb(pid));
    }, 25);
    afterwards('test', () => clearInterval(sampling));
    await daemon.says(/search it at/);
    await until(
      async () => (await list()).some(({ status }) => status === 'quarantined'),
      'a bomb went off',
      REST_MS,
    );

    const droppedAt = performance.now();
    writeFileSync(inbox('note.md'), 'a note beside them');
    writeFileSync(inbox('innocent.docx'), docx('an innocent document'));
    await until(async () => (await statusOf('note.md')) === 'confirmed', 'the note is confirmed');
    const noteSeconds = (performance.now() - droppedAt) / 1000;

    let listed: Listed[] = [];
    await until(
      async () => {
        listed = await list();
        const waits = listed.some(({ status }) => status === 'pending' || status === 'accepted');
        return listed.length === hostile.length + 2 && !waits;
      },
      'each file has come to rest',
      REST_MS,
    );
    const seconds = (performance.now() - droppedAt) / 1000;
    const outcomes = new Map(listed.map(({ code, path, status }) => [path, code ?? status]));
    const of = (outcome: string) =>
      [...outcomes.values()].filter((each) => each === outcome).length;
    console.log(
      `${hostile.length} bombs: ${of('DOCUMENT_TOO_LARGE')} too large, ${of('DOCUMENT_BROKEN')} broken,`,
      `${of('NO_WORDS')} without words, ${of('confirmed') - 2} harmless; note after ${noteSeconds.toFixed(1)} s;`,
      `all after ${seconds.toFixed(0)} s; most memory ${Math.round(most)} MB;`,
      `within the memory of the unit: ${unit === undefined ? 'not tried, no control group can be made' : 'yes'}`,
    );
    expect(outcomes.get('innocent.docx')).toBe('confirmed');
    for (const { code, message, path, status } of listed)
      if (status === 'quarantined')
        expect([path, code, message]).toEqual([
          path,
          expect.stringMatching(/^DOCUMENT_(TOO_LARGE|BROKEN)$/),
          expect.stringMatching(/^No text can be read from the file: .+\.$/),
        ]);
    for (const name of [
      'declared.docx',
      'text.docx',
      'unclosed.docx',
      'page.pdf',
      'twice.pdf',
      'groups.rtf',
    ])
      for (let round = 1; round <= ROUNDS; round += 1)
        expect([name, outcomes.get(`${round}-${name}`)]).toEqual([name, 'DOCUMENT_TOO_LARGE']);
    expect(most).toBeGreaterThan(100);
    expect(most).toBeLessThan(MOST_MEMORY_MB);
    expect(unit?.killed ?? 0).toBe(0);
    // The figure is 5 s. A machine that is slow delays the others, too.
    expect(noteSeconds).toBeLessThan(RUNS > 1 ? 5 : Math.max(30, seconds / 2));
    expect((await daemon.kill('SIGTERM')).code).toBe(0);
    expect(daemon.stderr).not.toMatch(/Abort|FATAL|Error:/);
  },
  900_000,
);
