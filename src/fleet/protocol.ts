import { hash } from 'node:crypto';
import { z } from 'zod';
import { ENCODINGS } from '../lib/file.js';
import { PEER_ERROR_CODES } from '../peer/errors.js';
import { RESULT } from '../uplink/document-answer.js';

/*
 * The records that owner and workers write to Redis. Each one is checked when it is read: another
 * version of this program, or a stranger, may have written it.
 */

/** The queues of BullMQ, below the prefix of the configuration. */
export const EXTRACT_QUEUE = 'extract';
export const PUSH_QUEUE = 'push';

/** The keys of Redis that are not of BullMQ. */
export class Keys {
  constructor(private readonly prefix: string) {}

  /** The owner: `OWNER`, and it expires. */
  get owner(): string {
    return `${this.prefix}:owner`;
  }

  /** The last `owner`, kept for longer, so that another run with the same state can continue. */
  earlier(instance: string): string {
    return `${this.prefix}:earlier:${instance}`;
  }

  /** The set of the ids of workers. */
  get workers(): string {
    return `${this.prefix}:workers`;
  }

  /** A worker: `WORKER`, and it expires. */
  worker(id: string): string {
    return `${this.prefix}:worker:${id}`;
  }

  /** A key that is written to try whether that works. It expires. */
  tried(id: string): string {
    return `${this.prefix}:tried:${id}`;
  }

  /** The batches and orders of pushes that a worker is to do, a list. It expires. */
  orders(worker: string): string {
    return `${this.prefix}:orders:${worker}`;
  }

  /** Exists as long as a worker may begin the order. */
  fence(order: string): string {
    return `${this.prefix}:fence:${order}`;
  }

  /** The answers to the orders of an owner, a list. It expires. */
  answers(epoch: string): string {
    return `${this.prefix}:answers:${epoch}`;
  }

  /** The earliest time of the next push, by the clock of Redis, in µs since the epoch. */
  get nextPush(): string {
    return `${this.prefix}:next-push`;
  }

  /** The text that a worker extracted, compressed. It expires. */
  text(job: string): string {
    return `${this.prefix}:text:${job}`;
  }
}

const count = z.number().int().nonnegative();
const short = z.string().max(1_000);
/** The most names in a list. */
const MOST_NAMES = 10_000;
/** The most jobs or batches of one worker at a time; that of `fleet.concurrency`. */
const MAX_SLOTS = 64;
/** The most workers that are looked at. */
export const MAX_WORKERS = 1_000;
/** The most earlier runs whose jobs an owner continues. */
export const MAX_CONTINUED = 10;
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const epoch = z.string().min(1).max(64);

/** The owner says that it lives. */
export const OWNER = z.object({
  /** Random for each start of the owner. Jobs of another epoch are dropped. */
  epoch,
  /** The epochs of its earlier runs whose documents workers read to the end, the latest first. */
  continues: z.array(epoch).max(MAX_CONTINUED).default([]),
  /** The state that it owns. One state has one owner at a time. */
  instance: short,
  host: short,
  pid: count,
  /** Version and commit of the program. Workers of another one take no jobs. */
  build: short,
  /** The folders in which the owner sees files. A worker that does not takes no jobs. */
  folders: z.array(short).max(MOST_NAMES),
  /** The abilities of its programs; see `abilitiesOf`. Workers have the same. */
  abilities: z.array(short).max(MOST_NAMES),
  /** Its peer; see `peerDigest`. Left out if pushes are not shared. Other workers do not push. */
  peer: sha256.optional(),
});
export type Owner = z.output<typeof OWNER>;

/**
 * A worker says that it lives, and what it does. Later versions of this program only add fields, so
 * that each version can name the workers of the others.
 */
export const WORKER = z.object({
  id: z.string().min(1).max(64),
  host: short,
  pid: count,
  version: short,
  build: short,
  /** Why it takes no jobs; undefined if it does. */
  idle: z
    .discriminatedUnion('reason', [
      z.object({ reason: z.literal('build') }),
      z.object({ reason: z.literal('folders'), folders: z.array(short).max(MOST_NAMES) }),
      /** Its programs read documents in another way: the abilities that only one of both has. */
      z.object({ reason: z.literal('programs'), abilities: z.array(short).max(MOST_NAMES) }),
      z.object({ reason: z.literal('stopping') }),
    ])
    .optional(),
  /** The most documents that it reads at a time. */
  slots: count.max(MAX_SLOTS),
  /** Jobs under way. */
  active: count,
  /** Documents that were read or pushed since its start. */
  done: count,
  /** Jobs that failed since its start. */
  failed: count,
  /** The most batches that it reads and pushes at a time. */
  pushSlots: count.max(MAX_SLOTS).default(0),
  /**
   * Why it does not push, or did not at its last attempt, as far as it knows: its `peer.url` or the
   * `url` of a folder is another one, the peer does not let it in, or it does not reach the peer.
   */
  noPush: z.enum(['peer', 'urls', 'denied', 'unreachable']).optional(),
  /** The ids of the orders that it has and has not answered. */
  orders: z.array(short).max(1_000).default([]),
  /** By the clock of Redis, in ms since the epoch. */
  seenAt: count,
});
export type WorkerReport = z.output<typeof WORKER>;
/** Why a worker does not push. */
export type NoPush = NonNullable<WorkerReport['noPush']>;

const VERSION_OF_FILE = z.object({
  size: count,
  mtimeMs: z.number(),
  ctimeMs: z.number(),
  // May be above 2^53, in network file systems for example.
  ino: z.number().nonnegative(),
  sha256,
  encoding: z.enum(ENCODINGS),
});

/** The file of a job. */
const FILE = z.object({
  /** The name of the folder. Each machine has its own path for it. */
  folder: short,
  /** Relative to the folder, without `.` and `..`. */
  path: z.string().min(1).max(8_192).refine(isBelow),
  version: VERSION_OF_FILE,
});

/** A job of the queue `extract`: a document whose text is wanted. */
export const EXTRACT_JOB = FILE.extend({
  epoch: short,
  wanted: z.enum(['text', 'words', 'textIfScanned']),
  /** See `ContentRules`. */
  readsTextAsHtml: z.boolean(),
  /** The programs of the owner, on its machine; see `programsDigest`. */
  programs: sha256,
  /** What programs must read alike on another machine; see `abilitiesDigest`. */
  abilities: sha256,
});
export type ExtractJob = z.output<typeof EXTRACT_JOB>;

/** Returns what a job reads, and how. Two jobs with the same reference have the same result. */
export function referenceOf(job: Omit<ExtractJob, 'abilities' | 'epoch'>): string {
  const { folder, path, programs, readsTextAsHtml, version, wanted } = job;
  const { ctimeMs, encoding, ino, mtimeMs, sha256: digest, size } = version;
  const file = [folder, path, size, mtimeMs, ctimeMs, ino, digest, encoding];
  return JSON.stringify([...file, wanted, readsTextAsHtml, programs]);
}

/** Whether a relative path leads nowhere else. */
function isBelow(path: string): boolean {
  return path.split('/').every((name) => !['', '.', '..'].includes(name)) && !path.includes('\0');
}

/** The result of an `ExtractJob`. */
export const EXTRACT_RESULT = z.discriminatedUnion('kind', [
  /** The document was read, or refused. */
  z.object({
    kind: z.literal('read'),
    result: RESULT,
    /** Its page, if it has one, is at `Keys.text` of this name. */
    text: z.string().min(1).max(200).optional(),
  }),
  /** The worker cannot do this job: the owner does it itself. */
  z.object({
    kind: z.literal('notHere'),
    why: z.enum(['epoch', 'idle', 'program', 'redis', 'stopping', 'too large']),
  }),
]);
export type ExtractResult = z.output<typeof EXTRACT_RESULT>;

/** How far a document is read. */
export const PROGRESS = z.object({ page: count, pages: count });

/** The most files of a batch. */
const MAX_FILES = 10_000;
const url = z.string().min(1).max(32_768);

/** A job of the queue `push`: a batch whose files are to be read. */
export const READ_JOB = z.object({
  epoch: short,
  /** The dialect for which they are encoded. */
  dialect: short,
  files: z.array(FILE).min(1).max(MAX_FILES),
});
export type ReadJob = z.output<typeof READ_JOB>;

/** Returns what an owner and a worker compare of their peers: `peer.url` without credentials. */
export function peerDigest(peerUrl: string): string {
  // The embedded peer has no URL.
  if (!URL.canParse(peerUrl)) return hash('sha256', peerUrl, 'hex');
  const url = new URL(peerUrl);
  url.username = '';
  url.password = '';
  return hash('sha256', url.href.replace(/\/+$/, ''), 'hex');
}

/** The result of a `ReadJob`. */
export const READ_RESULT = z.discriminatedUnion('kind', [
  /** The files were read. The worker has their contents under the name of the batch. */
  z.object({
    kind: z.literal('read'),
    worker: z.string().min(1).max(64),
    batch: z.string().min(1).max(200),
    files: z
      .array(
        z.discriminatedUnion('kind', [
          z.object({
            kind: z.literal('content'),
            size: count,
            digest: sha256,
            type: short,
            words: count.optional(),
          }),
          z.object({ kind: z.literal('wordless') }),
          z.object({ kind: z.literal('tooLarge') }),
        ]),
      )
      .max(MAX_FILES),
  }),
  /** The worker cannot do this job: the owner does it itself. */
  z.object({
    kind: z.literal('notHere'),
    why: z.enum(['epoch', 'folder', 'dialect', 'peer', 'version', 'full', 'stopping']),
  }),
]);
export type ReadResult = z.output<typeof READ_RESULT>;

/** An order of the owner about a batch that a worker has read. */
export const ORDER = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('push'),
    id: short,
    batch: short,
    targets: z
      .array(z.object({ n: count, url, collection: z.string().max(4_096) }))
      .min(1)
      .max(MAX_FILES),
    synchronous: z.boolean(),
    commit: z.boolean(),
    /** The rate of all machines together. Left out for no limit. */
    requestsPerSecond: z.number().positive().optional(),
  }),
  z.object({ kind: z.literal('release'), batch: short }),
]);
export type Order = z.output<typeof ORDER>;

/** The end of an order to push. */
export const ANSWER = z.object({
  order: short,
  outcome: z.discriminatedUnion('kind', [
    z.object({
      kind: z.literal('answered'),
      peerTime: z.number().optional(),
      results: z
        .array(
          z.discriminatedUnion('ok', [
            z.object({ ok: z.literal(true) }),
            z.object({ ok: z.literal(false), message: short }),
          ]),
        )
        .max(MAX_FILES),
    }),
    /** The request failed. The fields are those of `PeerError`. */
    z.object({
      kind: z.literal('failed'),
      code: z.enum(PEER_ERROR_CODES),
      url: z.url().max(4_096),
      what: short,
      hint: short,
      delivered: z.enum(['no', 'maybe', 'yes']),
      status: count.optional(),
      retryAfterMs: z.number().nonnegative().optional(),
      item: count.optional(),
      /** The code of the system error that caused it. */
      cause: short.optional(),
    }),
    /** Nothing was sent: the order came too late, or the batch is not there any more. */
    z.object({ kind: z.literal('notSent'), why: short }),
  ]),
});
export type Answer = z.output<typeof ANSWER>;

/**
 * The event by which a worker lets the owner know that it can do more or less work than before. It
 * is in the stream of events that BullMQ has for each queue.
 */
export const WORKER_EVENT = 'worker';
/** The number of events that Redis keeps. Events that are missed are made up for by `check`. */
export const EVENTS_KEPT = 2_000;

/** The most bytes of a compressed text that travels through Redis. */
export const MAX_TEXT_BYTES = 2 ** 20;
/** How long a text, and the end of its job, wait in Redis for the owner, in ms. */
export const TEXT_KEPT_MS = 10 * 60_000;
/** Interval at which owner and workers say that they live, in ms. */
export const BEAT_MS = 5_000;
/**
 * Longest time that a beat waits for folders, and for programs, in ms. A network file system may
 * hang. With the interval, it is shorter than every lease.
 */
export const LOOK_MS = 3_000;
/** How long an owner or a worker counts as living without a beat, in ms. */
export const LEASE_MS = 20_000;
/**
 * BullMQ's lock of a job: a worker that does not renew it for this long has lost the job. Another
 * one takes it after the next check for stalled jobs. In ms.
 */
export const LOCK_MS = 15_000;
export const STALLED_CHECK_MS = 5_000;
/**
 * How long a worker may push after Redis has shown it the owner, and an order may be begun after it
 * was given. In ms.
 */
export const PUSH_LEASE_MS = 10_000;
export const FENCE_MS = 18_000;
/**
 * An order whose worker was not seen with it for this long counts as lost, in ms. Its worker cannot
 * begin it any more, because the fence is over. It does not go on with one that it began right
 * before: a lease that it got then is over as well.
 */
export const ORDER_LOST_MS = FENCE_MS + PUSH_LEASE_MS + 2_000;
/** How long lists of orders and answers are kept without a change, in ms. */
export const LISTS_KEPT_MS = 10 * 60_000;

/** Returns a record of Redis; undefined if another version, or a stranger, has written it. */
export function readRecord<T>(schema: z.ZodType<T>, record: string): T | undefined {
  try {
    return schema.parse(JSON.parse(record));
  } catch {
    return undefined;
  }
}
