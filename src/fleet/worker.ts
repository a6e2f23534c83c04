import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Job, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Config } from '../config/config.js';
import { type Clock, type Timer, within } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { VERSION } from '../lib/process.js';
import type { Packers } from '../uplink/documents.js';
import { Abilities, differenceOf } from './abilities.js';
import { buildName } from './build-name.js';
import { ExtractionWork, type JobTerms, type WorkerPrograms } from './extraction-work.js';
import { FolderCheck } from './folder-check.js';
import {
  BEAT_MS,
  EVENTS_KEPT,
  EXTRACT_QUEUE,
  Keys,
  LEASE_MS,
  LOCK_MS,
  LOOK_MS,
  OWNER,
  type Owner,
  readRecord,
  STALLED_CHECK_MS,
  WORKER_EVENT,
  type WorkerReport,
} from './protocol.js';
import { PushWork, type PushWorkDeps } from './push-work.js';
import { type FleetConfig, RedisConnections } from './redis.js';

/** Delay after a command of BullMQ that failed, in ms. */
const RETRY_MS = 1_000;
/** How long a stop waits for Redis, in ms. */
const STOP_MS = 5_000;

/** The processes that read documents. */
interface Readers {
  readonly extractDocument: Packers['extractDocument'];
  /** Ends what is being read. Other documents can be read afterwards. */
  restart(): Promise<void>;
  /** Ends what is being read. Every document is reported as stale afterwards. */
  close(): Promise<void>;
}

export interface FleetWorkerDeps {
  readonly config: Config & { readonly fleet: FleetConfig };
  readonly clock: Clock;
  readonly log: Logger;
  /** The programs that read documents on this machine. */
  readonly programs: WorkerPrograms;
  readonly readers: Readers;
  readonly pack: Packers['pack'];
  /** Returns a client of the peer that speaks this dialect. */
  readonly peerOf: PushWorkDeps['peerOf'];
  /** The most documents that are read at the same time. */
  readonly slots: number;
}

/** How long a worker that stops waits for its pushes, in ms. */
const STOP_GRACE_MS = 10_000;

/** The difference that is shown while the programs of this machine cannot be looked at. */
const NO_ANSWER = 'worker: its programs do not answer';

/** Why a worker takes no jobs. */
type Idle = NonNullable<WorkerReport['idle']>;

/**
 * A worker: takes jobs from Redis, does them, and keeps nothing.
 *
 * - *Idle*, the initial mode: it takes no jobs, because no look at Redis and at the folders has
 *   shown yet that it can do them, or one has shown that it cannot: it does not see a folder in
 *   which the owner sees files, or reads from one that hangs, it has another build than the owner,
 *   or other programs.
 * - *Working*: it takes jobs.
 * - *Stopping*, entered by `stop`: it takes no jobs, and answers those that it has, so that the
 *   owner gives them to others at once.
 *
 * A beat every 5 s decides between the first two, and says in Redis what the worker does. The jobs
 * of another run of the owner are done only if the present one continues that run. Otherwise nobody
 * waits for them any more.
 */
export class FleetWorker {
  readonly id = randomUUID();
  readonly #deps: FleetWorkerDeps;
  readonly #connections: RedisConnections;
  readonly #keys: Keys;
  readonly #commands: Redis;
  /** The jobs of documents; undefined if their reading is not shared. */
  readonly #worker: Worker | undefined;
  /** Undefined if pushes are not shared. */
  readonly #pushes: PushWork | undefined;
  readonly #folderCheck: FolderCheck;
  readonly #abilities: Abilities;
  /** The look at the programs that has no end yet. Those that hang get one, not one a beat. */
  #programsLook: Promise<readonly string[]> | undefined;
  /** The jobs of the worker. The documents that it reads are in `#active`. */
  readonly #counts = { active: 0, done: 0, failed: 0 };
  /** The ids of the documents that it reads. */
  readonly #active = new Set<string | undefined>();
  /** The owner that was seen last. */
  #owner: Owner | undefined;
  /** The work that it could do when the owner was last told. */
  #announced = '';
  #mode: 'idle' | 'working' | 'stopping' = 'idle';
  /** Why it is idle; undefined until the first look. */
  #idle: Idle | undefined;
  /** The messages that were logged since Redis could not be used. */
  readonly #logged = new Set<string>();
  #timer: Timer | undefined;

  private constructor(connections: RedisConnections, deps: FleetWorkerDeps) {
    const { prefix } = deps.config.fleet;
    this.#deps = deps;
    this.#connections = connections;
    this.#keys = new Keys(prefix);
    this.#commands = connections.forCommands();
    this.#folderCheck = new FolderCheck(deps.clock);
    this.#abilities = new Abilities(deps.clock);
    if (this.#readsDocuments) this.#worker = this.#newWorker();
    if (deps.config.fleet.share.includes('push'))
      this.#pushes = new PushWork({
        ...deps,
        prefix,
        id: this.id,
        counts: this.#counts,
        keys: this.#keys,
        redis: this.#commands,
        jobs: connections.forWaiting(),
        waiting: connections.forWaiting(),
      });
  }

  /** @throws PeersyncError if the password or the CA file cannot be read */
  static async open(deps: FleetWorkerDeps): Promise<FleetWorker> {
    return new FleetWorker(await RedisConnections.of(deps.config.fleet, deps.log), deps);
  }

  #newWorker(): Worker {
    const { config, readers, slots } = this.#deps;
    const extraction = new ExtractionWork({
      ...this.#deps,
      extractDocument: readers.extractDocument,
      keys: this.#keys,
      redis: this.#commands,
      refusal: (job) => this.#refusal(job),
    });
    const worker = new Worker(EXTRACT_QUEUE, (job) => this.#work(job, extraction), {
      prefix: config.fleet.prefix,
      connection: this.#connections.forWaiting(),
      autorun: false,
      concurrency: slots,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: 1,
      runRetryDelay: RETRY_MS,
      skipVersionCheck: true,
    });
    // A command that fails is tried again, and the beat tells whether Redis answers.
    worker.on('error', () => {});
    return worker;
  }

  get #readsDocuments(): boolean {
    return this.#deps.config.fleet.share.includes('extract');
  }

  start(): void {
    void this.#beat();
  }

  /** Ends what is being read, and lets the owner know. Takes a few seconds at most. */
  async stop(): Promise<void> {
    const { clock, readers } = this.#deps;
    this.#mode = 'stopping';
    this.#timer?.cancel();
    void this.#worker?.pause(true);
    const limit = new AbortController();
    const isLate = clock.sleep(STOP_MS, limit.signal);
    // The owner reads this when the first of the jobs comes back.
    await Promise.race([this.#report().catch(() => {}), isLate]);
    const ended = this.#jobsEnded();
    await readers.close();
    await this.#pushes?.stop(STOP_GRACE_MS);
    await Promise.race([ended, isLate]);
    // Without force, BullMQ would wait for a Redis that is away.
    await this.#worker?.close(true).catch(() => {});
    // Its record stays for a moment, so that the owner sees that it stopped by itself.
    await Promise.race([this.#report().catch(() => {}), isLate]);
    limit.abort();
    this.#connections.close();
  }

  /** Resolves when Redis knows the end of every job that this worker has. */
  async #jobsEnded(): Promise<void> {
    const open = new Set(this.#active);
    await new Promise<void>((resolve) => {
      const end = (job?: Job) => {
        open.delete(job?.id);
        if (open.size === 0) resolve();
      };
      this.#worker?.on('completed', end);
      this.#worker?.on('failed', end);
      end();
    });
  }

  async #work(job: Job, extraction: ExtractionWork): Promise<unknown> {
    this.#active.add(job.id);
    try {
      const result = await extraction.run(job);
      // Many stale ones show that this machine sees other files than the owner.
      if (result.kind === 'read')
        this.#counts[result.result.kind === 'stale' ? 'failed' : 'done'] += 1;
      return result;
    } catch (error) {
      this.#counts.failed += 1;
      this.#deps.log.warn({ event: 'job-failed' }, `a job failed: ${messageOf(error)}`);
      throw error;
    } finally {
      this.#active.delete(job.id);
    }
  }

  /** Returns why a job is not done. Never rejects. */
  async #refusal({
    abilities,
    epoch,
  }: JobTerms): Promise<'epoch' | 'idle' | 'stopping' | undefined> {
    const readsAlike = async () =>
      (await this.#abilities.digestOf(this.#deps.programs.current)) === abilities;
    // The owner may have been started since the last beat, or found other programs.
    if (this.#mode === 'working' && !(isAwaited(epoch, this.#owner) && (await readsAlike())))
      await this.#look().catch(() => {});
    if (this.#mode !== 'working') return this.#mode;
    if (!isAwaited(epoch, this.#owner)) return 'epoch';
    return (await readsAlike()) ? undefined : 'idle';
  }

  /** Never rejects. */
  async #beat(): Promise<void> {
    const { clock, log } = this.#deps;
    try {
      await this.#connections.ready();
      await this.#look();
      const reportedAt = clock.now();
      await this.#report();
      await this.#pushes?.beat(reportedAt, this.#mode !== 'working');
      // Pushes begin and end after the report that renews their lease.
      if (this.#ready !== this.#announced) await this.#report();
      if (this.#logged.size > 0) log.info({ event: 'redis-back' }, 'Redis answers again');
      this.#logged.clear();
    } catch (error) {
      const { hint, message } = this.#connections.explain(error);
      if (!this.#logged.has(message)) log.warn({ event: 'redis-away' }, `${message} ${hint}`);
      this.#logged.add(message);
    }
    if (this.#mode !== 'stopping') this.#timer = clock.after(BEAT_MS, () => void this.#beat());
  }

  /** Reads who the owner is, and decides whether this worker takes jobs. */
  async #look(): Promise<void> {
    const record = await this.#commands.get(this.#keys.owner);
    const owner = record === null ? undefined : readRecord(OWNER, record);
    const before = this.#owner?.epoch;
    // An owner that says nothing for a while may come back in the same epoch.
    if (owner !== undefined) this.#owner = owner;
    if (owner !== undefined && owner.epoch !== before)
      this.#deps.log.info({ event: 'owner' }, `helps ${owner.host}, process ${owner.pid}`);
    if (before !== undefined && !isAwaited(before, this.#owner)) await this.#deps.readers.restart();
    const isUnknown = record !== null && owner === undefined;
    this.#setIdle(isUnknown ? { reason: 'build' } : await this.#reasonToBeIdle());
  }

  async #reasonToBeIdle(): Promise<Idle | undefined> {
    const owner = this.#owner;
    if (owner === undefined) return undefined;
    if (owner.build !== buildName()) return { reason: 'build' };
    const [abilities, seen] = await Promise.all([
      this.#readsDocuments ? this.#programsDifference() : [],
      this.#folderCheck.visible(this.#deps.config.folders),
    ]);
    if (abilities.length > 0) return { reason: 'programs', abilities: [...abilities] };
    const visible = new Set(seen);
    const hung = new Set(this.#pushes?.hungFolders);
    const folders = owner.folders.filter((name) => !visible.has(name) || hung.has(name));
    return folders.length > 0 ? { reason: 'folders', folders } : undefined;
  }

  /** Returns what differs between the programs of both machines. Takes 3 s at most. */
  async #programsDifference(): Promise<readonly string[]> {
    this.#programsLook ??= this.#lookAtPrograms().finally(() => {
      this.#programsLook = undefined;
    });
    return await within(this.#deps.clock, LOOK_MS, this.#programsLook, [NO_ANSWER]);
  }

  async #lookAtPrograms(): Promise<readonly string[]> {
    const { programs } = this.#deps;
    const difference = async () => {
      const here = await this.#abilities.of(programs.current);
      return differenceOf(here, this.#owner?.abilities ?? []);
    };
    // They may have been installed, updated or removed since the last look.
    if ((await difference()).length > 0 || !(await programs.isCurrent())) await programs.refresh();
    return await difference();
  }

  #setIdle(idle: Idle | undefined): void {
    if (this.#mode === 'stopping') return;
    const mode = idle === undefined ? 'working' : 'idle';
    if (mode !== this.#mode || idle?.reason !== this.#idle?.reason)
      this.#deps.log[idle === undefined ? 'info' : 'warn']({ event: 'worker' }, sentenceOf(idle));
    this.#mode = mode;
    this.#idle = idle;
    if (this.#worker === undefined) return;
    if (mode === 'idle') void this.#worker.pause(true);
    else if (this.#worker.isPaused()) void this.#worker.resume();
    else if (!this.#worker.isRunning()) void this.#worker.run().catch(() => {});
  }

  /** The work that it can do, as text. */
  get #ready(): string {
    const slots = this.#mode === 'working' && this.#readsDocuments ? this.#deps.slots : 0;
    return `${slots} documents, ${this.#pushes?.report.pushSlots ?? 0} batches`;
  }

  /** Says in Redis what this worker does. If it can do other work than before, the owner looks. */
  async #report(): Promise<void> {
    const ready = this.#ready;
    const slots = this.#readsDocuments ? this.#deps.slots : 0;
    const [seconds, micros] = await this.#commands.time();
    const report: WorkerReport = {
      id: this.id,
      host: hostname(),
      pid: process.pid,
      version: VERSION,
      build: buildName(),
      idle: this.#mode === 'stopping' ? { reason: 'stopping' } : this.#idle,
      slots,
      ...this.#counts,
      active: this.#active.size + this.#counts.active,
      ...(this.#pushes?.report ?? { pushSlots: 0, orders: [] }),
      seenAt: Number(seconds) * 1000 + Math.floor(Number(micros) / 1000),
    };
    await this.#commands.set(this.#keys.worker(this.id), JSON.stringify(report), 'PX', LEASE_MS);
    await this.#commands.sadd(this.#keys.workers, this.id);
    if (ready === this.#announced) return;
    const { prefix, share } = this.#deps.config.fleet;
    const [queue = EXTRACT_QUEUE] = share;
    const events = `${prefix}:${queue}:events`;
    await this.#commands.xadd(events, 'MAXLEN', '~', EVENTS_KEPT, '*', 'event', WORKER_EVENT);
    this.#announced = ready;
  }
}

/** Whether an owner waits for jobs of an epoch. */
function isAwaited(epoch: string, owner: Owner | undefined): boolean {
  return owner !== undefined && [owner.epoch, ...owner.continues].includes(epoch);
}

/** The most names that a sentence lists. */
const MOST_LISTED = 5;

function sentenceOf(idle: Idle | undefined): string {
  const listed = (names: readonly string[]) =>
    `${names.slice(0, MOST_LISTED).join(', ')}${names.length > MOST_LISTED ? ', …' : ''}`;
  switch (idle?.reason) {
    case undefined:
      return 'takes jobs';
    case 'build':
      return 'takes no jobs: the owner has another version of peersync. Install the same one here.';
    case 'programs':
      return `takes no jobs: other programs read documents here than on the machine of the owner (${listed(idle.abilities)}). Install the same versions, with the same languages, and use the same section \`documents\`.`;
    case 'folders':
      return `takes no jobs: it sees nothing in ${listed(idle.folders)}. Mount what is missing, and see the paths in the configuration.`;
    case 'stopping':
      return 'stops: its jobs go to others';
  }
}
