import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Tools } from './content/helpers/tools.js';
import { PageStore } from './content/page-store.js';
import type { PageProgress } from './content/readers/document-reader.js';
import { systemClock } from './lib/clock.js';
import { messageOf } from './lib/errors.js';
import { frame } from './lib/pipe-messages.js';
import { lowerPriority } from './lib/work-thread.js';
import {
  type DocumentRequest,
  LIMIT_SIGNALS,
  MAX_PROCESS_BYTES,
} from './uplink/document-answer.js';
import type { Extracted } from './uplink/documents.js';

/**
 * A process that reads documents (PDF, office, e-mail), one at a time. `DocumentProcesses` starts
 * it, writes an order as one line of JSON, and reads the answer as a frame.
 *
 * A damaged or hostile document may keep the main thread in a loop and may fill the memory. A
 * second thread therefore ends the process when it takes too much memory or processor time, and
 * when the daemon that started it is gone. It ends it by signals that nobody else sends, so that
 * the daemon knows why.
 */

/**
 * RSS after a document above which the process ends, in bytes. A new process then has all of the
 * memory for the next document.
 */
const RESTART_MEMORY = 176 * 2 ** 20;
/** Interval of the checks, in ms. A reader can allocate about 40 MB in it. */
const CHECK_MS = 20;
/**
 * Their interval while the main thread waits for a program or for the next document, in ms. Checks
 * cost: at the shorter interval, 2.5 % of a busy core.
 */
const WAITING_CHECK_MS = 100;
/** Shortest time between two reports of a page, in ms. */
const REPORT_MS = 250;

/** The words of the memory that the two threads share. The last one never changes. */
const [IS_WAITING, MAX_CPU_MS, UNUSED] = [0, 1, 2];
const MAX_INT32 = 2 ** 31 - 1;

/** The work of the main thread, for the watching thread, which has no events while it waits. */
class WorkState {
  /** @param words shared memory */
  constructor(readonly words = new Int32Array(new SharedArrayBuffer(12))) {
    if (isMainThread) Atomics.store(words, MAX_CPU_MS, MAX_INT32);
  }

  /** Sets how much more processor time the process may take, in ms. */
  allow(ms: number): void {
    Atomics.store(this.words, MAX_CPU_MS, Math.min(MAX_INT32, Math.ceil(cpuMs() + ms)));
  }

  get isBeyondLimit(): boolean {
    return cpuMs() > Atomics.load(this.words, MAX_CPU_MS);
  }

  /** Sets whether the main thread waits. If it goes on, the next check is at once. */
  setWaiting(isWaiting: boolean): void {
    Atomics.store(this.words, IS_WAITING, isWaiting ? 1 : 0);
    if (!isWaiting) Atomics.notify(this.words, IS_WAITING);
  }

  /** Blocks the watching thread until the next check. */
  untilNextCheck(): void {
    const isWaiting = Atomics.load(this.words, IS_WAITING) === 1;
    if (isWaiting) Atomics.wait(this.words, IS_WAITING, 1, WAITING_CHECK_MS);
    else Atomics.wait(this.words, UNUSED, 0, CHECK_MS);
  }
}

if (isMainThread) await serve(process.argv[2]);
else {
  const { parent, words } = workerData as WatcherData;
  watch(parent, new WorkState(words));
}

interface WatcherData {
  /** The process id of the daemon. */
  readonly parent: number;
  readonly words: Int32Array<SharedArrayBuffer>;
}

/** Ends the process at a limit, also while its main thread runs in a loop. Never returns. */
function watch(parent: number, state: WorkState): never {
  parentPort?.postMessage('watching');
  for (;;) {
    if (process.ppid !== parent) endAll();
    if (process.memoryUsage.rss() > MAX_PROCESS_BYTES)
      process.kill(process.pid, LIMIT_SIGNALS.memory);
    if (state.isBeyondLimit) process.kill(process.pid, LIMIT_SIGNALS.cpu);
    state.untilNextCheck();
  }
}

/** Ends the process, and the programs that it started, which belong to its group. */
function endAll(): void {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } catch {
    // It leads no group: it was started by hand.
  }
  process.kill(process.pid, 'SIGKILL');
}

/** Returns the processor time of the process, in ms. A busy machine does not make it longer. */
function cpuMs(): number {
  const { system, user } = process.cpuUsage();
  return (system + user) / 1000;
}

/**
 * Reads one document for each line of the standard input.
 *
 * @param starter the process id of the daemon, as the daemon wrote it
 */
async function serve(starter: string | undefined): Promise<void> {
  const parent = process.ppid;
  // The daemon may be gone before there is a thread to notice it.
  if (starter !== `${parent}`) process.exit(1);
  // A stop of the service, or Ctrl-C, reaches all its processes. The daemon ends this one, so that
  // it does not take the end for the fault of a document.
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.on(signal, () => {});
  lowerPriority();
  endFirst();
  const state = new WorkState();
  const watcher = new Worker(new URL(import.meta.url), {
    workerData: { parent, words: state.words } satisfies WatcherData,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 },
  });
  const watching = once(watcher, 'message');
  // Libraries write about damaged files to the console, and the standard output belongs to the
  // answers.
  console.log = console.info = console.debug = console.warn = console.error = () => {};
  // PDF.js leaves rejected promises of a damaged file without a handler. The promise that matters
  // rejects as well.
  process.on('unhandledRejection', () => {});
  const { extractDocument, unreadableDocument } = await import('./uplink/document-text.js');
  await import('./content/readers/registry.js');
  const write = (header: object, body?: Uint8Array) => {
    for (const piece of frame(header, body)) process.stdout.write(piece);
  };
  await watching;
  write({ ready: true });
  const refused = (...why: Parameters<typeof unreadableDocument>) => ({
    kind: 'refused' as const,
    failure: unreadableDocument(...why),
  });
  state.setWaiting(true);
  for await (const line of createInterface({ input: process.stdin })) {
    state.setWaiting(false);
    const { directory, id, mostBytes, mostCpuMs, order, pages } = JSON.parse(
      line,
    ) as DocumentRequest;
    // Each page of a document has the time anew: a manual of thousands of pages is no endless loop.
    state.allow(mostCpuMs);
    let reportedAt = systemClock.now();
    const onPage = (progress: PageProgress) => {
      state.allow(mostCpuMs);
      if (systemClock.now() < reportedAt + REPORT_MS) return;
      reportedAt = systemClock.now();
      write({ id, progress });
    };
    const onWaiting = (isWaiting: boolean) => state.setWaiting(isWaiting);
    const tools = new Tools(order.programs, directory, new PageStore(pages), onWaiting);
    let result = await extractDocument(order, onPage, tools).catch(
      (error: unknown): Extracted => ({
        ...refused('DOCUMENT_BROKEN', messageOf(error).slice(0, 300)),
        isMomentary: true,
      }),
    );
    // The daemon has the document read once more by another process.
    if (tools.wasEnded) process.kill(process.pid, 'SIGKILL');
    closeQuietly(tools);
    let { page = undefined } = result.kind === 'extracted' ? result : {};
    if (page !== undefined && page.bytes.length > mostBytes) {
      result = refused('DOCUMENT_TOO_LARGE', 'it has too much text');
      page = undefined;
    }
    const isLast = tools.needsRestart || process.memoryUsage.rss() > RESTART_MEMORY;
    const { extracted } = page ?? {};
    write({ id, result: { ...result, page: undefined, extracted }, isLast }, page?.bytes);
    // The watching thread keeps the process alive until the daemon ends it.
    if (isLast) return;
    state.setWaiting(true);
  }
  process.exit(0);
}

/**
 * Removes the private files of a document. A program that goes on writing may keep that from
 * working: the daemon removes the rest after the process.
 */
function closeQuietly(tools: Tools): void {
  try {
    tools.close();
  } catch {
    tools.needsRestart = true;
  }
}

/** Makes this the first process that the system ends if it runs out of memory. */
function endFirst(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // There is no such file on other systems than Linux.
  }
}
