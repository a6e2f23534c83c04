import { hash, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Redis } from 'ioredis';
import type { Programs } from '../content/helpers/programs.js';
import { type Clock, type Timer, wallAheadMs } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { abilitiesOf, differenceOf, FolderCheck } from './abilities.js';
import { buildName } from './build-name.js';
import { type Backlog, JobQueue } from './job-queue.js';
import {
  BEAT_MS,
  EXTRACT_JOB,
  EXTRACT_QUEUE,
  EXTRACT_RESULT,
  type ExtractJob,
  Keys,
  LEASE_MS,
  MAX_CONTINUED,
  MAX_WORKERS,
  OWNER,
  type Owner,
  PUSH_QUEUE,
  peerDigest,
  readRecord,
  referenceOf,
  TEXT_KEPT_MS,
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

/**
 * Makes this process the owner, unless another one is. Returns the record that was there, if it is
 * of another owner.
 *
 * A record of the same instance is of an earlier life of this owner, unless this one has been the
 * owner before.
 *
 * KEYS: owner, what it was for the next run. ARGV: the record, its instance, its epoch, the time
 * until it expires in ms, whether this process has been the owner, the time for which it is kept
 * for the next run in ms.
 */
const CLAIM = `
local record = redis.call('GET', KEYS[1])
local known, other = pcall(cjson.decode, record or '{}')
if not known or type(other) ~= 'table' then other = {} end
local isOther = record and other.epoch ~= ARGV[3]
if isOther and (other.instance ~= ARGV[2] or ARGV[5] == '1') then return { 'other', record } end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[4])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[6])
return { (record and not isOther) and 'kept' or 'taken' }`;

/** Removes the record of the owner, if it is of this epoch. KEYS: owner. ARGV: the epoch. */
const RELEASE = `
local record = redis.call('GET', KEYS[1])
local known, owner = pcall(cjson.decode, record or '{}')
if known and type(owner) == 'table' and owner.epoch == ARGV[1] then redis.call('DEL', KEYS[1]) end`;

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
 * the workers say of themselves, and looks for jobs that were lost.
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
  readonly #connections: RedisConnections;
  readonly #deps: FleetOwnerDeps;
  readonly #folderCheck: FolderCheck;
  readonly #host = hostname();
  /** The state that it owns. */
  readonly #instance: string;
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
  #hasClaimed = false;
  /** The epochs of earlier runs; undefined until Redis was asked. */
  #continues: readonly string[] | undefined;
  /** The ids of their jobs, by what these read. */
  readonly #earlier = new Map<string, string>();
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
    this.#folderCheck = new FolderCheck(clock);
    this.looked = new Promise((resolve) => {
      this.#onLooked = resolve;
    });
    const { prefix, share } = config;
    this.keys = new Keys(prefix);
    this.redis = connections.forCommands();
    this.#instance = hash('sha256', JSON.stringify([this.#host, stateDir]), 'hex').slice(0, 16);
    const newQueue = (name: string) => new JobQueue(name, this.epoch, prefix, connections, deps);
    if (share.includes('extract')) this.extract = newQueue(EXTRACT_QUEUE);
    if (share.includes('push'))
      this.push = { jobs: newQueue(PUSH_QUEUE), waiting: connections.forWaiting() };
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
    this.#lookedTimer = this.#deps.clock.after(FIRST_LOOK_MS, () => this.#onLooked());
    this.#beatLater(0);
  }

  /**
   * Returns the id of a job of an earlier run that reads the same document in the same version, for
   * `JobQueue.resume`. Each one is returned once.
   */
  takeEarlier(job: Omit<ExtractJob, 'epoch'>): string | undefined {
    const reference = referenceOf(job);
    const id = this.#earlier.get(reference);
    this.#earlier.delete(reference);
    return id;
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
    const isAway = this.#failure?.kind === 'redis';
    const { prefix, redis: address } = this.config;
    return {
      address,
      prefix,
      build: buildName(),
      redis: isAway ? 'away' : this.#hasAnswered ? 'there' : 'connecting',
      failure: this.#failure,
      ...this.#backlog,
      ...this.#list.status(this.#deps.clock.now()),
    };
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
    const released = this.redis.eval(RELEASE, 1, this.keys.owner, this.epoch).catch(() => {});
    await Promise.race([released, this.#deps.clock.sleep(STOP_MS, limit.signal)]);
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
      const other = await this.#claim();
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
      this.#fail('redis', this.#connections.explain(error));
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
  async #claim(): Promise<Owner | 'unknown' | undefined> {
    const { epoch, keys, redis } = this;
    const { folders, peerUrl, programs } = this.#deps;
    const abilities = abilitiesOf(programs.current);
    // Pushes of an earlier run are not continued.
    this.#continues ??= this.extract === undefined ? [] : await this.#earlierEpochs(abilities);
    const owner: Owner = {
      epoch,
      continues: [...this.#continues],
      instance: this.#instance,
      host: this.#host,
      pid: process.pid,
      build: buildName(),
      folders: await this.#folderCheck.visible(folders()),
      abilities,
      ...(this.push && { peer: peerDigest(peerUrl) }),
    };
    const [result, other] = (await redis.eval(
      CLAIM,
      2,
      keys.owner,
      keys.earlier(this.#instance),
      JSON.stringify(owner),
      this.#instance,
      epoch,
      LEASE_MS,
      this.#hasClaimed ? 1 : 0,
      TEXT_KEPT_MS,
    )) as [string, string?];
    if (other !== undefined) return readRecord(OWNER, other) ?? 'unknown';
    // The jobs in the queue are of an earlier epoch: nobody waits for them.
    if (result === 'taken' || !this.#hasClaimed)
      for (const jobs of this.#queues) await jobs.drain();
    if (!this.#hasClaimed) await this.#findEarlier(this.#continues);
    this.#hasClaimed = true;
    return undefined;
  }

  /** Returns the epochs of earlier runs that had this state and read documents as this one does. */
  async #earlierEpochs(abilities: readonly string[]): Promise<readonly string[]> {
    const record = await this.redis.get(this.keys.earlier(this.#instance));
    const before = record === null ? undefined : readRecord(OWNER, record);
    if (before?.build !== buildName() || differenceOf(abilities, before.abilities).length > 0)
      return [];
    return [before.epoch, ...before.continues].slice(0, MAX_CONTINUED);
  }

  /**
   * Finds the jobs of earlier runs that workers do or have done. An earlier run may have taken the
   * end of one that is done. A text can be taken only once, but a refusal would answer the next
   * reading of the document as well, which somebody may have asked for because of the refusal.
   */
  async #findEarlier(epochs: readonly string[]): Promise<void> {
    if (this.extract === undefined || epochs.length === 0) return;
    for (const { data, id, result } of await this.extract.earlier(epochs)) {
      const { data: job } = EXTRACT_JOB.safeParse(data);
      if (job !== undefined && !hasNoText(result)) this.#earlier.set(referenceOf(job), id);
    }
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

/** Whether the result of a job is that there is nothing to send of the document. */
function hasNoText(result: unknown): boolean {
  const { data } = EXTRACT_RESULT.safeParse(result);
  return data?.kind === 'read' && ['refused', 'wordless'].includes(data.result.kind);
}

function ownedBy(other: Owner | 'unknown'): RedisTrouble {
  const who = other === 'unknown' ? 'of another version' : `on ${other.host}, process ${other.pid}`;
  return {
    message: `Another peersync (${who}) uses the same \`fleet.prefix\` in this Redis.`,
    hint: 'Give each its own prefix, and its workers the same. If it was this one under another name of the machine, it is forgotten within 20 s.',
  };
}
