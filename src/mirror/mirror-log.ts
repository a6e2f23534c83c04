import type { Logger } from '../lib/logger.js';
import { sentence } from '../lib/text.js';
import type { MirrorRecord, MirrorTrouble } from './record.js';

/** Failures thin the queue tells once for everybody. */
const OF_THE_PEER = new Set(['PEER_UNREACHABLE', 'PEER_TIMEOUT', 'PEER_BUSY', 'PEER_AUTH']);

interface Ended {
  readonly changed: boolean;
  /** What somebody did to a file that was put right now. */
  readonly disturbance: 'changed' | 'removed' | undefined;
}

/** Says what is new about a mirror, once: troubles when they begin and when they are over, and what changed. */
export class MirrorLog {
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  tell(
    name: string,
    before: MirrorRecord | undefined,
    after: MirrorRecord | undefined,
    { changed, disturbance }: Ended,
  ): void {
    const fields = { event: 'mirror', mirror: name };
    const { alarm, failure } = after ?? {};
    if (alarm !== undefined && before?.alarm?.code !== alarm.code) {
      this.#log.warn({ ...fields, code: alarm.code }, `mirror ${name}: ${wordsOf(alarm)}`);
    }
    if (alarm === undefined && before?.alarm !== undefined) {
      this.#log.info({ ...fields, code: before.alarm.code }, `mirror ${name}: the alarm is over`);
    }
    if (failure !== undefined && before?.failure?.code !== failure.code) {
      const level = OF_THE_PEER.has(failure.code) ? 'debug' : 'warn';
      this.#log[level]({ ...fields, code: failure.code }, `mirror ${name}: ${wordsOf(failure)}`);
    }
    if (failure === undefined && before?.failure !== undefined) {
      const level = OF_THE_PEER.has(before.failure.code) ? 'debug' : 'info';
      this.#log[level]({ ...fields, code: before.failure.code }, `mirror ${name}: works again`);
    }
    for (const note of after?.notes ?? []) {
      if (before?.notes?.includes(note) !== true) this.#log.info(fields, `mirror ${name}: ${note}`);
    }
    if (disturbance !== undefined) {
      this.#log.info(
        { ...fields, path: after?.path },
        `mirror ${name}: somebody ${disturbance} ${after?.path}, which only follows the peer; it was put back`,
      );
    }
    if (changed) this.#log.info({ ...fields, ...figuresOf(after) }, changeOf(name, after));
  }
}

function wordsOf({ message, hint }: MirrorTrouble): string {
  return `${sentence(message)} ${hint}`;
}

function figuresOf(record: MirrorRecord | undefined) {
  const { rows, bytes } = record ?? {};
  return { ...(rows === undefined ? {} : { rows }), ...(bytes === undefined ? {} : { bytes }) };
}

function changeOf(name: string, record: MirrorRecord | undefined): string {
  if (record === undefined) return `mirror ${name}: removed, as a person accepted`;
  if (record.absentSince !== undefined) return `mirror ${name}: removed ${record.path}, as a person accepted`;
  return `mirror ${name}: ${record.path} changed`;
}
