import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Programs } from '../content/helpers/programs.js';
import { type Clock, type Timer, wallAheadMs } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { Abilities } from './abilities.js';
import { buildName } from './build-name.js';
import { EarlierJobs } from './earlier-jobs.js';
import { FolderCheck } from './folder-check.js';
import { type Backlog, JobQueue } from './job-queue.js';
import { OwnerClaim, ownedBy } from './owner-claim.js';
import {
  BEAT_MS,
  EXTRACT_QUEUE,
  type ExtractJob,
  Keys,
  MAX_WORKERS,
  type Owner,
  PUSH_QUEUE,
  peerDigest,
  readRecord,
  WORKER,
  type WorkerReport,
} from './protocol.js';
import { type FleetConfig, RedisConnections, type RedisTrouble } from './redis.js';
import type { FleetFailure, FleetStatus } from './status.js';
import { WorkerList } from './worker-list.js';

/** Time without a beat that succeeded until the jobs of workers count as lost, in ms. */
const AWAY_AFTER_MS = 15_000;
/**
 * The longest time until `looked` resolves, in ms. A beat has many commands, and each may take as
 * long as one may.
 */
const FIRST_LOOK_MS = 10_000;
/** How long a stop waits for Redis, in ms. */
const STOP_MS = 1_000;

export interface FleetOwnerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly folders: () => readonly { readonly name: string; readonly path: string }[];
  readonly programs: { readonly current: Programs };
  /** The URL of the peer. */
  readonly peerUrl: string;
  /** Called when the number of jobs that workers can do has changed. */
  readonly onChange: () => void;
}

/**
 * The owner's side of the fleet. The truth is in the state on disk. Jobs in Redis are a lease that
 * may be lost at any time: then the owner does the work itself.
 *
 * - *Away*, the initial mode: Redis does not answer as it should, or belongs to another owner. No
 *   job is added. Jobs that are out are lost after 15 s.
 * - *Alone*: Redis answers, and no worker takes jobs. Jobs that are out are lost.
 * - *Sharing*: at least one worker takes jobs. If none of these reads documents, the jobs of
 *   documents are lost.
 * - *Stopping*, entered by `stop`: no job is added, and those that are out are lost.
 *
 * A beat every 5 s decides between the first three: it claims the lease of the owner, reads what
 * the workers say of themselves, and looks for jobs that were lost. It also happens at once when a
 * worker can do more or less than before.
 *
 * The first claim *continues* earlier runs with the same state, if they ended within ten minutes
 * and read documents in the same way. Jobs of theirs that wait are removed. Workers go on with
 * those that they have, and `takeEarlier` finds these, and those that are done.
 */
export class FleetOwner {
  readonly epoch = randomUUID();
  /** The jobs of documents; undefined if their reading is not shared. */
  readonly extract: JobQueue | undefined;
  /** The jobs of pushes, and the connection for their answers; undefined if they are not shared. */
  readonly push: { readonly jobs: JobQueue; readonly waiting: Redis } | undefined;
  readonly keys: Keys;
  readonly redis: Redis;
  readonly abilities: Abilities;
  readonly #connections: RedisConnections;
  readonly #deps: FleetOwnerDeps;
  readonly #folderCheck: FolderCheck;
  readonly #claim: OwnerClaim;
  #isStarted = false;
  #mode: 'away' | 'alone' | 'sharing' | 'stopping' = 'away';
  #workers: readonly WorkerReport[] = [];
  readonly #list = new WorkerList();
  #backlog: Backlog = { waiting: 0 };
  #failure: FleetFailure | undefined;
  /** The messages that were logged since workers cannot be used. */
  readonly #logged = new Set<string>();
  /** When a whole beat succeeded last. */
  #answeredAt: number;
  #hasAnswered = false;
  /** Whether a claim succeeded, with all that follows it. */
  #hasClaimed = false;
  readonly #earlier = new EarlierJobs();
  /** Resolves after the first look at Redis, whatever it showed, or 10 s after `start`. */
  readonly looked: Promise<void>;
  #onLooked: () => void = () => {};
  #lookedTimer: Timer | undefined;
  #timer: Timer | undefined;
  #beat: Promise<void> = Promise.resolve();
  #refreshing: Promise<void> | undefined;

  private constructor(
    connections: RedisConnections,
    private readonly config: FleetConfig,
    stateDir: string,
    deps: FleetOwnerDeps,
  ) {
    const { clock } = deps;
    this.#connections = connections;
    this.#deps = deps;
    this.#answeredAt = clock.now();
    this.abilities = new Abilities(clock);
    this.#folderCheck = new FolderCheck(clock);
    this.looked = new Promise((resolve) => {
      this.#onLooked = resolve;
    });
    const { prefix, share } = config;
    this.keys = new Keys(prefix);
    this.redis = connections.forCommands();
    const onWorker = () => {
      if (this.#isStarted) void this.refresh();
    };
    const newQueue = (name: string) =>
      new JobQueue(name, this.epoch, prefix, connections, { ...deps, onWorker });
    if (share.includes('extract')) this.extract = newQueue(EXTRACT_QUEUE);
    if (share.includes('push'))
      this.push = { jobs: newQueue(PUSH_QUEUE), waiting: connections.forWaiting() };
    const { epoch, keys, redis } = this;
    // Pushes of an earlier run are not continued.
    const continuesDocuments = this.extract !== undefined;
    this.#claim = new OwnerClaim({ redis, keys, epoch, stateDir, continuesDocuments });
  }

  /**
   * Opens the connections. No beat happens until `start`.
   *
   * @throws PeersyncError if the password or the CA file cannot be read
   */
  static async open(
    config: FleetConfig,
    stateDir: string,
    deps: FleetOwnerDeps,
  ): Promise<FleetOwner> {
    const connections = await RedisConnections.of(config, deps.log);
    return new FleetOwner(connections, config, stateDir, deps);
  }

  /**
   * Begins to look for Redis and workers. Does not wait for them. Must be called when everything is
   * there that the callbacks use.
   */
  start(): void {
    this.#isStarted = true;
    this.#lookedTimer = this.#deps.clock.after(FIRST_LOOK_MS, () => this.#onLooked());
    this.#beatLater(0);
  }

  /**
   * Returns the id of a job of an earlier run that reads the same document in the same version, for
   * `JobQueue.resume`. Each one is returned once.
   */
  takeEarlier(job: Omit<ExtractJob, 'abilities' | 'epoch'>): string | undefined {
    return this.#earlier.take(job);
  }

  /** The number of jobs that workers can do at the same time. */
  get slots(): number {
    if (this.extract === undefined) return 0;
    if (this.#mode !== 'sharing') return 0;
    return this.#workers.filter(takesJobs).reduce((sum, { slots }) => sum + slots, 0);
  }

  /** The number of batches that workers can push at the same time. */
  get pushSlots(): number {
    if (this.#mode !== 'sharing') return 0;
    return this.#workers.filter(takesJobs).reduce((sum, { pushSlots }) => sum + pushSlots, 0);
  }

  /** Called after each beat in which Redis answered, with the workers that were seen. */
  onBeat: ((workers: readonly WorkerReport[]) => Promise<void>) | undefined;
  /** Called after each beat, whether Redis answered or not. */
  afterBeat: (() => void) | undefined;

  status(): FleetStatus {
    const { prefix, redis: address } = this.config;
    return {
      address,
      prefix,
      build: buildName(),
      redis: this.#redisState,
      failure: this.#failure,
      ...this.#backlog,
      ...this.#list.status(this.#deps.clock.now()),
    };
  }

  get #redisState(): FleetStatus['redis'] {
    if (this.#failure?.kind === 'redis') return 'away';
    if (this.#failure?.kind === 'loading') return 'loading';
    return this.#hasAnswered ? 'there' : 'connecting';
  }

  /** Reads anew what the workers say of themselves. Never rejects. */
  async refresh(): Promise<void> {
    this.#refreshing ??= (async () => {
      await this.#beat;
      this.#refreshing = undefined;
      if (this.#mode !== 'stopping') await this.#beatNow();
    })();
    await this.#refreshing;
  }

  /** Adds no job any more. Those that are out are lost. */
  stop(): void {
    this.#mode = 'stopping';
    this.#timer?.cancel();
    this.#lookedTimer?.cancel();
    this.#loseAll();
    this.#onLooked();
  }

  async close(): Promise<void> {
    this.stop();
    for (const jobs of this.#queues) jobs.close();
    const limit = new AbortController();
    await Promise.race([this.#claim.release(), this.#deps.clock.sleep(STOP_MS, limit.signal)]);
    limit.abort();
    this.#connections.close();
  }

  #loseAll(): void {
    this.#earlier.clear();
    for (const jobs of this.#queues) jobs.loseAll();
  }

  get #queues(): readonly JobQueue[] {
    return [this.extract, this.push?.jobs].filter((jobs) => jobs !== undefined);
  }

  #beatLater(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.after(ms, () => void this.#beatNow());
  }

  async #beatNow(): Promise<void> {
    this.#timer?.cancel();
    this.#beat = this.#look();
    await this.#beat;
  }

  /** Decides the mode, and has the next beat happen. Never rejects. */
  async #look(): Promise<void> {
    const { clock, onChange } = this.#deps;
    const before = `${this.#mode} ${this.slots} ${this.pushSlots}`;
    let mode: 'away' | 'alone' | 'sharing' = 'away';
    try {
      await this.#connections.ready();
      const other = await this.#renewClaim();
      this.#hasAnswered = true;
      if (other !== undefined) this.#fail('owned', ownedBy(other));
      else {
        this.#workers = await this.#readWorkers();
        this.#list.update(this.#workers, clock.now());
        this.#backlog = await this.#readBacklog();
        await this.onBeat?.(this.#workers);
        for (const jobs of this.#queues) await jobs.check();
        mode = this.#workers.some(takesJobs) ? 'sharing' : 'alone';
        this.#recovered();
      }
      this.#answeredAt = clock.now();
    } catch (error) {
      const { code, ...trouble } = this.#connections.explain(error);
      this.#fail(code === 'REDIS_LOADING' ? 'loading' : 'redis', trouble);
    }
    if (this.#mode === 'stopping') return this.#loseAll();
    this.#mode = mode;
    const isLost = clock.now() - this.#answeredAt > AWAY_AFTER_MS;
    if (mode === 'alone' || isLost || this.#failure?.kind === 'owned') this.#loseAll();
    else if (mode === 'sharing' && this.slots === 0) this.extract?.loseAll();
    this.afterBeat?.();
    this.#lookedTimer?.cancel();
    this.#onLooked();
    if (before !== `${this.#mode} ${this.slots} ${this.pushSlots}`) onChange();
    this.#beatLater(BEAT_MS);
  }

  /** @returns the other owner, if there is one */
  async #renewClaim(): Promise<Owner | 'unknown' | undefined> {
    const { folders, peerUrl, programs } = this.#deps;
    const [visible, abilities] = await Promise.all([
      this.#folderCheck.visible(folders()),
      this.abilities.of(programs.current),
    ]);
    const claimed = await this.#claim.renew({
      folders: visible,
      abilities: [...abilities],
      ...(this.push && { peer: peerDigest(peerUrl) }),
    });
    if (claimed.kind === 'other') return claimed.other;
    // The jobs in the queue are of an earlier epoch: nobody waits for them.
    if (claimed.kind === 'taken' || !this.#hasClaimed)
      for (const jobs of this.#queues) await jobs.drain();
    if (!this.#hasClaimed && this.extract !== undefined)
      await this.#earlier.find(this.extract, this.#claim.continues);
    this.#hasClaimed = true;
    return undefined;
  }

  /** Returns the jobs of all queues that no worker has taken yet. */
  async #readBacklog(): Promise<Backlog> {
    const aheadMs = wallAheadMs(this.#deps.clock);
    const backlogs: Backlog[] = [];
    for (const jobs of this.#queues) backlogs.push(await jobs.backlog(aheadMs));
    const waiting = backlogs.reduce((sum, each) => sum + each.waiting, 0);
    const since = backlogs.flatMap(({ oldestSince }) => oldestSince ?? []);
    return since.length === 0 ? { waiting } : { waiting, oldestSince: Math.min(...since) };
  }

  /** Returns the workers that have said lately that they live, and forgets the others. */
  async #readWorkers(): Promise<WorkerReport[]> {
    const { keys, redis } = this;
    // All of them, unless somebody has written more than there can be.
    const ids = await redis.srandmember(keys.workers, MAX_WORKERS);
    if (ids.length === 0) return [];
    const records = await redis.mget(ids.map((id) => keys.worker(id)));
    const gone = ids.filter((_, i) => records[i] === null);
    if (gone.length > 0) await redis.srem(keys.workers, gone);
    return records
      .flatMap((record) => (record === null ? [] : (readRecord(WORKER, record) ?? [])))
      .sort((a, b) => (a.host === b.host ? a.pid - b.pid : a.host < b.host ? -1 : 1));
  }

  #fail(kind: FleetFailure['kind'], trouble: RedisTrouble): void {
    const { clock, log } = this.#deps;
    const isNew = this.#failure?.kind !== kind;
    const since = (isNew ? undefined : this.#failure?.since) ?? clock.now();
    this.#failure = { kind, since, ...trouble };
    const { hint, message } = trouble;
    if (!this.#logged.has(message))
      log.warn({ event: 'fleet-away' }, `${message} This machine goes on without workers. ${hint}`);
    this.#logged.add(message);
  }

  #recovered(): void {
    if (this.#failure !== undefined)
      this.#deps.log.info({ event: 'fleet-back' }, 'Redis answers: workers are used again');
    this.#failure = undefined;
    this.#logged.clear();
  }
}

/** Whether a worker takes jobs. One of another build takes none as soon as it knows this owner. */
function takesJobs({ build, idle }: WorkerReport): boolean {
  return idle === undefined && build === buildName();
}
