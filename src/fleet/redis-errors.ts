import { type ErrorTable, messageOf, systemCode, tableError } from '../lib/errors.js';

/** The reasons why a Redis is of no use, with the remedy. */
const ERRORS = {
  REDIS_NOT_RUNNING: {
    message: 'No Redis listens at {redis}.',
    hint: 'Start it, or correct `fleet.redis`.',
  },
  REDIS_NO_HOST: {
    message: 'The name of the host in {redis} cannot be resolved.',
    hint: 'Correct `fleet.redis`, or see whether the name server answers.',
  },
  REDIS_SOCKET: {
    message: 'The socket of Redis at {redis} may not be opened.',
    hint: 'Give the user of peersync access to it, for example by the group `redis`.',
  },
  REDIS_SILENT: {
    message: 'Redis at {redis} does not answer.',
    hint: 'See whether it runs, and whether this machine reaches it (firewall, `bind` of Redis).',
  },
  REDIS_LOST: {
    message: 'The connection to Redis at {redis} was lost.',
    hint: 'It is tried again by itself. If it is never there, Redis may want TLS at this port: write rediss:// in `fleet.redis`.',
  },
  REDIS_TLS: {
    message: 'The certificate of Redis at {redis} is not trusted: {why}',
    hint: 'Name its CA in `fleet.ca`, and its host in `fleet.redis` as it stands in the certificate.',
  },
  REDIS_NO_TLS: {
    message: 'Redis at {redis} does not answer in TLS.',
    hint: 'Write redis:// in `fleet.redis` if it has no TLS there, or name its port for TLS.',
  },
  REDIS_PASSWORD_MISSING: {
    message: 'Redis at {redis} wants a password.',
    hint: 'Name its place in `fleet.password`.',
  },
  REDIS_PASSWORD_WRONG: {
    message: 'Redis at {redis} refuses the password.',
    hint: 'Correct what `fleet.password` names, and set `fleet.username` if the user is not `default`.',
  },
  REDIS_PROTECTED: {
    message: 'Redis at {redis} has no password, and refuses other machines (`protected-mode`).',
    hint: 'Set `requirepass` in its redis.conf, and name the place of that password in `fleet.password`.',
  },
  REDIS_PERMISSION: {
    message: 'Redis at {redis} does not allow its user all that is needed: {why}',
    hint: 'Allow the user all commands on the keys that begin with `fleet.prefix` and a colon: `ACL SETUSER NAME ~PREFIX:* &* +@all -@dangerous +info`.',
  },
  REDIS_FULL: {
    message: 'The memory of Redis at {redis} is full.',
    hint: 'Raise its `maxmemory`, or use a Redis that serves nobody else.',
  },
  REDIS_REPLICA: {
    message: 'Redis at {redis} is a replica that cannot be written to.',
    hint: 'Name the primary in `fleet.redis`.',
  },
  REDIS_LOADING: {
    message: 'Redis at {redis} is loading its data; peersync waits for it.',
    hint: 'There is nothing to do: it is used as soon as it is ready.',
  },
  REDIS_DISK: {
    message: 'Redis at {redis} cannot write to its disk, and accepts nothing.',
    hint: 'Free some space there, or switch its snapshots off: `redis-cli config set save ""`.',
  },
  REDIS_OTHER: {
    message: 'Redis at {redis} does not answer as it should: {why}',
    hint: 'It is tried again by itself. The log of Redis may say more.',
  },
} as const satisfies ErrorTable;
type RedisErrorCode = keyof typeof ERRORS;

/** An error of Redis that a person may read. */
export class RedisError extends tableError(ERRORS) {}

/** The reasons by the beginning of the answer of Redis. */
const ANSWERS: readonly (readonly [begin: RegExp, code: RedisErrorCode])[] = [
  [/^NOAUTH/, 'REDIS_PASSWORD_MISSING'],
  [/^WRONGPASS|^ERR (invalid password|AUTH|Client sent AUTH)/, 'REDIS_PASSWORD_WRONG'],
  [/^DENIED/, 'REDIS_PROTECTED'],
  [/^NOPERM/, 'REDIS_PERMISSION'],
  [/^OOM/, 'REDIS_FULL'],
  [/^READONLY/, 'REDIS_REPLICA'],
  [/^LOADING/, 'REDIS_LOADING'],
  [/^MISCONF/, 'REDIS_DISK'],
];
/** The most characters of an error that a person reads. */
const MAX_WHY_LENGTH = 200;
/** Why there is no connection, by the code of the system. */
const CONNECTIONS: Readonly<Record<string, RedisErrorCode>> = {
  ENOTFOUND: 'REDIS_NO_HOST',
  EAI_AGAIN: 'REDIS_NO_HOST',
  ECONNREFUSED: 'REDIS_NOT_RUNNING',
  ENOENT: 'REDIS_NOT_RUNNING',
  EACCES: 'REDIS_SOCKET',
  ETIMEDOUT: 'REDIS_SILENT',
  EHOSTUNREACH: 'REDIS_SILENT',
  ENETUNREACH: 'REDIS_SILENT',
  ECONNRESET: 'REDIS_LOST',
  EPIPE: 'REDIS_LOST',
};
/** The message of a command that had no connection, or no answer. */
const SILENT = /timed out|Connection is closed|isn't writeable/;
/** Codes of certificates that are not trusted, and of a TLS that does not come about. */
const TLS_CODE = /CERT|SIGNATURE|ISSUER|^ERR_TLS|^ERR_SSL/;

/**
 * Returns why Redis is of no use, for people.
 *
 * @param redis its address in the configuration, which contains no password
 * @param error what the connection failed with; undefined if it ended without a reason
 */
export function redisError(redis: string, error: unknown): RedisError {
  const message = error === undefined ? 'the connection ends' : messageOf(error);
  const why = (message.split('\n')[0] ?? '').slice(0, MAX_WHY_LENGTH);
  return new RedisError(codeOf(redis, error), { redis, why }, { cause: error });
}

function codeOf(redis: string, error: unknown): RedisErrorCode {
  if (error === undefined) return 'REDIS_LOST';
  const isTls = redis.toLowerCase().startsWith('rediss:');
  const text = messageOf(error);
  const answered = ANSWERS.find(([begin]) => begin.test(text))?.[1];
  if (answered !== undefined) return answered;
  const code = systemCode(error) ?? '';
  if (/wrong version number|packet length too long/i.test(text)) return 'REDIS_NO_TLS';
  if (TLS_CODE.test(code)) return 'REDIS_TLS';
  // A Redis without TLS waits for the rest of a command.
  if (isTls && code === 'ETIMEDOUT') return 'REDIS_NO_TLS';
  return CONNECTIONS[code] ?? (SILENT.test(text) ? 'REDIS_SILENT' : 'REDIS_OTHER');
}
