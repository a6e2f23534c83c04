import { hash } from 'node:crypto';
import { hostname } from 'node:os';
import type { Redis } from 'ioredis';
import { differenceOf } from './abilities.js';
import { buildName } from './build-name.js';
import {
  type Keys,
  LEASE_MS,
  MAX_CONTINUED,
  OWNER,
  type Owner,
  readRecord,
  TEXT_KEPT_MS,
} from './protocol.js';
import type { RedisTrouble } from './redis.js';

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

/** The parts of the record of an owner that may change. */
type Described = Pick<Owner, 'abilities' | 'folders' | 'peer'>;

/** The result of a claim. */
export type Claimed =
  /** Another owner has the prefix. */
  | { readonly kind: 'other'; readonly other: Owner | 'unknown' }
  /** It was nobody's, or of an earlier run with the same state. */
  | { readonly kind: 'taken' }
  /** It was this one's already. */
  | { readonly kind: 'kept' };

interface OwnerClaimDeps {
  readonly redis: Redis;
  readonly keys: Keys;
  readonly epoch: string;
  /** Its directory names the state that it owns, on this machine. */
  readonly stateDir: string;
  /** Whether the documents of earlier runs are continued. */
  readonly continuesDocuments: boolean;
}

/**
 * The claim of an owner on its prefix in Redis: a record that expires, and that each beat writes
 * anew. One state has one owner at a time, and one prefix has one state.
 *
 * The first claim *continues* earlier runs with the same state, if they ended within ten minutes
 * and read documents in the same way.
 */
export class OwnerClaim {
  readonly #deps: OwnerClaimDeps;
  readonly #host = hostname();
  /** The state that it owns. */
  readonly #instance: string;
  /** Whether this process has been the owner. */
  #hasClaimed = false;
  /** The epochs of earlier runs; undefined until Redis was asked. */
  #continues: readonly string[] | undefined;

  constructor(deps: OwnerClaimDeps) {
    this.#deps = deps;
    const state = JSON.stringify([this.#host, deps.stateDir]);
    this.#instance = hash('sha256', state, 'hex').slice(0, 16);
  }

  /** The epochs of earlier runs that it continues, the latest first. */
  get continues(): readonly string[] {
    return this.#continues ?? [];
  }

  /** Writes the record, unless it is of another owner. */
  async renew(described: Described): Promise<Claimed> {
    const { continuesDocuments, epoch, keys, redis } = this.#deps;
    this.#continues ??= continuesDocuments ? await this.#earlierEpochs(described.abilities) : [];
    const owner: Owner = {
      epoch,
      continues: [...this.#continues],
      instance: this.#instance,
      host: this.#host,
      pid: process.pid,
      build: buildName(),
      ...described,
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
    if (other !== undefined) return { kind: 'other', other: readRecord(OWNER, other) ?? 'unknown' };
    this.#hasClaimed = true;
    return { kind: result === 'taken' ? 'taken' : 'kept' };
  }

  /** Removes the record. Never rejects. */
  async release(): Promise<void> {
    const { epoch, keys, redis } = this.#deps;
    await redis.eval(RELEASE, 1, keys.owner, epoch).catch(() => {});
  }

  /** Returns the epochs of earlier runs that had this state and read documents as this one does. */
  async #earlierEpochs(abilities: readonly string[]): Promise<readonly string[]> {
    const { keys, redis } = this.#deps;
    const record = await redis.get(keys.earlier(this.#instance));
    const before = record === null ? undefined : readRecord(OWNER, record);
    if (before?.build !== buildName() || differenceOf(abilities, before.abilities).length > 0)
      return [];
    return [before.epoch, ...before.continues].slice(0, MAX_CONTINUED);
  }
}

/** Explains that another owner has the prefix. */
export function ownedBy(other: Owner | 'unknown'): RedisTrouble {
  const who = other === 'unknown' ? 'of another version' : `on ${other.host}, process ${other.pid}`;
  return {
    message: `Another peersync (${who}) uses the same \`fleet.prefix\` in this Redis.`,
    hint: 'Give each its own prefix, and its workers the same. If it was this one under another name of the machine, it is forgotten within 20 s.',
  };
}
