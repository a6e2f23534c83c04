import { realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Job } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Config } from '../config/config.js';
import type { NewExtract } from '../content/extracts.js';
import type { Programs } from '../content/helpers/programs.js';
import type { PageProgress } from '../content/readers/document-reader.js';
import { type Clock, within } from '../lib/clock.js';
import { type FileStat, fileStat } from '../lib/file.js';
import { RESULT } from '../uplink/document-answer.js';
import type { DocumentOrder, Packers } from '../uplink/documents.js';
import {
  EXTRACT_JOB,
  type ExtractJob,
  type ExtractResult,
  type Keys,
  LOOK_MS,
  MAX_TEXT_BYTES,
  TEXT_KEPT_MS,
} from './protocol.js';

const zip = promisify(gzip);
/** Shortest time between two reports of the progress of a job, in ms. */
const PROGRESS_MS = 1_000;

/** The programs that read documents on a worker. */
export interface WorkerPrograms {
  readonly current: Programs;
  /** Looks for them again. */
  refresh(): Promise<unknown>;
  /** Whether none of them was updated or removed since they were found. */
  isCurrent(): Promise<boolean>;
}

/** The parts of a job that decide whether a worker does it. */
export type JobTerms = Pick<ExtractJob, 'abilities' | 'epoch'>;

interface ExtractionWorkDeps {
  readonly config: Pick<Config, 'folders'>;
  readonly clock: Clock;
  readonly programs: WorkerPrograms;
  readonly extractDocument: Packers['extractDocument'];
  readonly keys: Keys;
  readonly redis: Redis;
  /** Returns why the worker does not do a job; undefined if it does. */
  readonly refusal: (job: JobTerms) => Promise<'epoch' | 'idle' | 'stopping' | undefined>;
}

/** The jobs of the queue `extract`, as a worker does them. */
export class ExtractionWork {
  constructor(private readonly deps: ExtractionWorkDeps) {}

  /** @throws Error if the job is of another form */
  async run(job: Job): Promise<ExtractResult> {
    const { clock, config, extractDocument, programs, refusal } = this.deps;
    const terms = EXTRACT_JOB.parse(job.data);
    const { folder, path, readsTextAsHtml, version, wanted } = terms;
    const why = await refusal(terms);
    if (why !== undefined) return { kind: 'notHere', why };
    const found = config.folders.find(({ name }) => name === folder);
    const root = found && (await realpath(found.path).catch(() => undefined));
    if (found === undefined || root === undefined) return { kind: 'notHere', why: 'idle' };
    const order: DocumentOrder = {
      file: join(root, path),
      // The owner follows no links unless the folder says so. Here, none may lead out of it.
      linksWithin: root,
      version,
      // Only this rule decides how a document is read.
      rules: { ...NO_RULES, readsTextAsHtml },
      wanted,
      programs: programs.current,
    };
    const statHere = await statOf(order);
    if (statHere === undefined) return STALE_RESULT;
    const ownOrder = { ...order, version: { ...version, ...statHere } };
    const read = await extractDocument(ownOrder, this.#reporter(job));
    // The stop of the worker, or a new owner, may have ended the reading.
    const whyNow = read.kind === 'stale' ? await refusal(terms) : undefined;
    if (whyNow !== undefined) return { kind: 'notHere', why: whyNow };
    // A program may have been updated meanwhile, and a beat may have found it again since.
    const isSame = programs.current === order.programs;
    if (!isSame || !(await within(clock, LOOK_MS, programs.isCurrent(), false)))
      return { kind: 'notHere', why: 'idle' };
    if (read.kind === 'extracted') return await this.#answer(read, `${job.id}`);
    // Only a document that was read, or that every machine refuses, has a result of this form.
    const { data } = RESULT.safeParse(read);
    return data === undefined
      ? { kind: 'notHere', why: 'program' }
      : { kind: 'read', result: data };
  }

  /** @param text the name of the text in Redis */
  async #answer({ lacks, page, words }: NewExtract, text: string): Promise<ExtractResult> {
    const { keys, redis } = this.deps;
    const result = { kind: 'extracted' as const, words, ...(lacks && { lacks: [...lacks] }) };
    if (page === undefined) return { kind: 'read', result };
    const packed = await zip(page.bytes);
    if (packed.length > MAX_TEXT_BYTES) return { kind: 'notHere', why: 'too large' };
    try {
      await redis.set(keys.text(text), packed, 'PX', TEXT_KEPT_MS);
    } catch {
      // Redis was away for a moment, or is full. Another attempt may go well.
      return { kind: 'notHere', why: 'redis' };
    }
    const { extracted } = page;
    return { kind: 'read', result: { ...result, extracted }, text };
  }

  #reporter(job: Job): (progress: PageProgress) => void {
    const { clock } = this.deps;
    let reportedAt = Number.NEGATIVE_INFINITY;
    return (progress) => {
      if (clock.now() < reportedAt + PROGRESS_MS) return;
      reportedAt = clock.now();
      // The end of the job matters, not this.
      job.updateProgress(progress).catch(() => {});
    };
  }
}

const STALE_RESULT: ExtractResult = { kind: 'read', result: { kind: 'stale' } };

const NO_RULES: DocumentOrder['rules'] = {
  encoding: 'base64',
  takesBinary: true,
  readsTextAsHtml: false,
  convertHere: [],
  showsWords: false,
};

/**
 * Returns the size, the times and the inode of a file as this machine sees them; undefined if it is
 * not the file of the order. A file has other inodes on another kind of mount, so that its size and
 * its sha256 decide.
 */
export async function statOf({
  file,
  version,
}: Pick<DocumentOrder, 'file' | 'version'>): Promise<FileStat | undefined> {
  const found = await stat(file).catch(() => undefined);
  return found?.size === version.size ? fileStat(found) : undefined;
}
