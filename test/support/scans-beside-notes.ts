import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { oneColumn, pdfOfPages, pictureOf } from '../content/corpus/pages.js';
import { sentences } from '../content/corpus/sentences.js';
import { BuiltDaemon } from './built-daemon.js';
import { MarkedPrograms } from './marked-programs.js';
import { Random } from './random.js';

/** Scans and notes that are dropped together. */
export interface Load {
  readonly scans: number;
  readonly pagesEach: number;
  readonly notes: number;
  /** How often the daemon is killed while it reads the scans. */
  readonly kills: number;
  /** How many documents are read at the same time. */
  readonly concurrency: number;
  /** Maximum time for a page, in ms. */
  readonly msAPage: number;
}

export interface Outcome {
  /** Time until the notes were confirmed, in ms: alone, and dropped with the scans. */
  readonly aloneMs: number;
  readonly besideMs: number;
  /** How many pages had been begun by OCR when the notes beside them were confirmed. */
  readonly readingsBeside: number;
  readonly pages: number;
  /** How often a page was read by OCR. */
  readonly readings: number;
  /** Command lines of programs that were left after a daemon was killed, or at the end. */
  readonly left: readonly string[];
  /** Files that are confirmed at the end. */
  readonly confirmed: number;
  /** Time from the drop until all was confirmed, in ms. */
  readonly allMs: number;
}

/** Time in which no program may be left after the daemon was killed, in ms. */
const END_MS = 10_000;
const NOTES_MS = 300_000;

/**
 * Drops notes alone, and then scans and notes together into a new daemon, which is killed several
 * times while it reads the scans.
 *
 * @param root an existing directory
 * @param cli the path of the built `cli.js`
 */
export async function scansBesideNotes(root: string, cli: string, load: Load): Promise<Outcome> {
  const { kills, notes, scans } = load;
  const programs = new MarkedPrograms(root);
  for (const name of ['tesseract', 'pdftoppm']) programs.addCounted(name, pathOf(name));
  const daemonIn = async (name: string) => {
    const directory = join(root, name);
    mkdirSync(directory);
    return await BuiltDaemon.of({
      cli,
      directory,
      env: { PATH: `${programs.directory}:${process.env.PATH}` },
      parts: {
        folders: [{ name: 'notes' }, { name: 'scans' }],
        documents: { concurrency: load.concurrency, languages: ['eng'] },
      },
    });
  };

  const alone = await daemonIn('alone');
  await alone.start();
  writeNotes(join(root, 'alone', 'notes'), notes);
  const aloneMs = await alone.confirmed(notes, NOTES_MS, 'notes');
  await alone.kill();

  const pages = scans * load.pagesEach;
  writeScans(join(root, 'prepared'), load);
  const daemon = await daemonIn('together');
  const readings = () => programs.calls('tesseract').filter(isReading).length;
  const left: string[] = [];
  const noneLeft = async () => {
    const end = performance.now() + END_MS;
    while (programs.running().length > 0 && performance.now() < end)
      await new Promise((resolve) => setTimeout(resolve, 50));
    left.push(...programs.running());
  };
  await daemon.start();
  const droppedAt = performance.now();
  // All scans are there at once.
  renameSync(join(root, 'prepared'), join(root, 'together', 'scans', 'all'));
  writeNotes(join(root, 'together', 'notes'), notes);
  const besideMs = await daemon.confirmed(notes, NOTES_MS, 'notes');
  const readingsBeside = readings();
  try {
    for (let kill = 1; kill <= kills; kill += 1) {
      const enough = (pages * kill) / (kills + 1);
      const limitMs = pages * load.msAPage;
      await daemon.until(() => readings() >= enough, `${enough} pages are read`, limitMs);
      await daemon.kill('SIGKILL');
      await noneLeft();
      await daemon.start();
    }
    await daemon.confirmed(scans, pages * load.msAPage, 'scans');
    const allMs = performance.now() - droppedAt;
    const confirmed = await daemon.count('confirmed');
    await daemon.kill();
    await noneLeft();
    return {
      aloneMs,
      besideMs,
      readingsBeside,
      pages,
      readings: readings(),
      left,
      confirmed,
      allMs,
    };
  } finally {
    await daemon.kill('SIGKILL');
  }
}

/** Whether a call of tesseract read a page, and did not ask for its languages or a rotation. */
function isReading(args: string): boolean {
  return !/--list-langs|--version|--psm 0\b/.test(args);
}

function writeNotes(directory: string, notes: number): void {
  const random = new Random(notes);
  for (let n = 0; n < notes; n += 1)
    writeFileSync(
      join(directory, `${n}.md`),
      `# Note ${n}\n\n${sentences('en', random, 40).join(' ')}\n`,
    );
}

function writeScans(directory: string, { pagesEach, scans }: Load): void {
  mkdirSync(directory);
  const random = new Random(scans);
  for (let n = 0; n < scans; n += 1) {
    const texts = Array.from({ length: pagesEach }, () => sentences('en', random).join(' '));
    const pages = texts.map((text) => ({ picture: pictureOf(oneColumn(text)) }));
    writeFileSync(join(directory, `${n}.pdf`), pdfOfPages(pages));
  }
}

/** The absolute path of an installed program. */
export function pathOf(program: string): string {
  const { stdout } = spawnSync('sh', ['-c', 'command -v "$1"', 'sh', program], {
    encoding: 'utf8',
  });
  if (stdout.trim() === '') throw new Error(`${program} is not installed`);
  return stdout.trim();
}
