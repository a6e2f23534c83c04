import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isInstalled, type Need } from '../content/corpus/corpus.js';
import { doc } from '../content/corpus/old-documents.js';
import { oneColumn, pdfOfPages, pictureOf } from '../content/corpus/pages.js';
import { cropped, png } from '../content/corpus/pictures.js';
import { sentences } from '../content/corpus/sentences.js';
import { docx, pdfOf } from '../content/documents.js';
import { BuiltDaemon } from '../support/built-daemon.js';
import { Random } from '../support/random.js';
import { type BenchRow, below, promised, row } from './rows.js';

const CLI = resolve(import.meta.dirname, '../../../dist/cli.js');
const LIMIT_MS = 1_200_000;
/** Words of a page, about as many as a letter has. */
const WORDS = 450;
/** The lines of a picture that have text. */
const WRITTEN_LINES = 3_000;
/** How long the daemon is left alone before its memory is taken for that at rest, in ms. */
const REST_MS = 10_000;
const MOST_MORE_MB = 150;

/** A type of document, and a program that reads one, as people would call it in a loop. */
interface Measured {
  readonly name: string;
  readonly unit: 'pages/s' | 'documents/s';
  readonly number: number;
  readonly extension: string;
  readonly make: (text: readonly string[]) => Uint8Array;
  readonly needs: readonly Need[];
  /** A line of shell, in which `$1` is the file. */
  readonly bare?: string;
  /** Whether the program does the same as the daemon, so that the two can be compared. */
  readonly isJudged: boolean;
}

const TYPES: readonly Measured[] = [
  {
    name: 'scans (PDF of one page)',
    unit: 'pages/s',
    number: 24,
    extension: 'pdf',
    make: (text) => pdfOfPages([{ picture: pictureOf(oneColumn(text.join(' '))) }]),
    needs: ['tesseract', 'pdftoppm'],
    bare: 'pdftoppm -gray -r 300 "$1" | tesseract stdin stdout -l eng',
    isJudged: true,
  },
  {
    name: 'pictures (PNG)',
    unit: 'pages/s',
    number: 24,
    extension: 'png',
    make: (text) => png(cropped(pictureOf(oneColumn(text.join(' '))), WRITTEN_LINES)),
    needs: ['tesseract', 'pdftoppm'],
    bare: 'tesseract "$1" stdout -l eng',
    isJudged: true,
  },
  {
    name: 'old Word documents (.doc)',
    unit: 'documents/s',
    number: 400,
    extension: 'doc',
    make: (text) => doc(...text),
    needs: ['catdoc'],
    bare: 'catdoc -dutf-8 -w "$1"',
    isJudged: true,
  },
  {
    name: 'PDF with text, beside pdftotext',
    unit: 'documents/s',
    number: 400,
    extension: 'pdf',
    make: (text) => pdfOf(Buffer.from(oneColumn(text.join(' ')), 'latin1'), ''),
    needs: ['pdftoppm'],
    bare: 'pdftotext "$1" -',
    // It is written in C++ and loads in 5 ms; PDF.js is neither.
    isJudged: false,
  },
  {
    name: 'Word documents (.docx)',
    unit: 'documents/s',
    number: 400,
    extension: 'docx',
    make: (text) => docx(...text),
    needs: [],
    isJudged: false,
  },
];

/**
 * Documents of each type from dropped to confirmed, with one process and with one for each core,
 * beside the bare program in as many loops; and the memory of the daemon itself.
 *
 * @param only the extension of the one type to measure; undefined for all
 */
export async function extractBench(only?: string): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  const rows: BenchRow[] = [];
  try {
    for (const type of TYPES) {
      if (only !== undefined && only !== type.extension) continue;
      const missing = type.needs.filter((need) => !isInstalled(need));
      if (missing.length > 0) {
        process.stderr.write(`  ${type.name}: not measured without ${missing.join(', ')}\n`);
        continue;
      }
      for (const cores of new Set([1, availableParallelism()]))
        rows.push(...(await measured(join(root, `${type.extension}-${rows.length}`), type, cores)));
    }
    return rows;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function measured(root: string, type: Measured, cores: number): Promise<BenchRow[]> {
  const prepared = join(root, 'prepared');
  mkdirSync(prepared, { recursive: true });
  const random = new Random(type.number);
  for (let n = 0; n < type.number; n += 1)
    writeFileSync(
      join(prepared, `${n}.${type.extension}`),
      type.make(sentences('en', random, WORDS)),
    );
  const rate = (ms: number) => type.number / (ms / 1_000);
  const bare =
    type.bare === undefined ? Number.NaN : rate(await loopMs(prepared, type.bare, cores));
  const daemon = await BuiltDaemon.of({
    cli: CLI,
    directory: root,
    parts: {
      folders: [{ name: 'bench', settle: '0s' }],
      // The usual one. With that of the tests, each document is a push of its own.
      push: { linger: '250ms' },
      documents: { concurrency: cores, languages: ['eng'] },
    },
  });
  await daemon.start();
  try {
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
    const restMb = daemon.memoryMb();
    renameSync(prepared, join(root, 'bench', 'all'));
    const ours = rate(await daemon.confirmed(type.number, LIMIT_MS));
    const what = `extract: ${type.name}, ${cores} at a time`;
    const result = row(what, ours, bare, type.unit);
    const moreMb = daemon.mostMb - restMb;
    process.stderr.write(`  ${type.name}, ${cores} at a time: ${ours.toFixed(2)} ${type.unit}\n`);
    return [
      type.isJudged ? promised(result, 'at 0.9 of it', result.ratio >= 0.9) : result,
      below(`${what}: memory of the daemon above that at rest`, moreMb, MOST_MORE_MB, 'MB'),
    ];
  } finally {
    await daemon.kill();
  }
}

/** Runs a program for each file of a directory, so many at a time. @returns the time, in ms */
async function loopMs(directory: string, line: string, cores: number): Promise<number> {
  const began = performance.now();
  const loop = `find . -type f -print0 | xargs -0 -n 1 -P ${cores} sh -c '${line} > /dev/null 2>&1' sh`;
  const child = spawn('sh', ['-c', loop], {
    cwd: directory,
    stdio: 'inherit',
    // One thread for each: more make it slower.
    env: { ...process.env, OMP_THREAD_LIMIT: '1' },
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`\`${loop}\` ended with ${code}`);
  return performance.now() - began;
}
