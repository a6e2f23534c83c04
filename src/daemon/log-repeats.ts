import type { Clock, Timer } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { numberText } from '../lib/text.js';
import { durationText } from '../lib/units.js';

type Level = 'info' | 'warn' | 'error';

/** When lines of a level become too many. */
interface Patience {
  /** So many alike pass. */
  readonly first: number;
  /** In this time, in ms. */
  readonly withinMs: number;
  /** Then it is said how many more there were after each of these, the last again and again, in ms. */
  readonly windowsMs: readonly [number, ...number[]];
  /** A window with fewer than this was the last. */
  readonly quietBelow: number;
}

const EVENTS: Patience = { first: 20, withinMs: 10_000, windowsMs: [10_000], quietBelow: 20 };
const TROUBLE: Patience = {
  first: 5,
  withinMs: 600_000,
  windowsMs: [10_000, 600_000, 3_600_000],
  quietBelow: 1,
};
const PATIENCE: Readonly<Record<Level, Patience>> = { info: EVENTS, warn: TROUBLE, error: TROUBLE };

/** So many kinds of lines are told apart. */
const MOST_KINDS = 500;
const LONGEST_SHAPE = 200;
/** Fields that make two lines with the same code speak of different things. */
const SUBJECTS = ['folder', 'mirror', 'collection', 'table', 'kind'] as const;

/** Lines that are alike. */
interface Kind {
  readonly level: Level;
  passed: number;
  /** When the first of those that passed was said. */
  since: number;
  /** Those that were not said, while they are counted. */
  held: { count: number; window: number; fields: object; message: string; readonly timer: Timer } | undefined;
}

/**
 * A logger that says repeated things once and counts them.
 *
 * Lines are alike when they have the same level and code, or event and words without names and numbers, and speak of the
 * same folder, mirror or collection. The first few of a kind *pass*. Are there more in a short time, the others are
 * *held*: they go to debug, and one line says how many there were: of news (`info`) every 10 s, of trouble after 10 s,
 * then 10 min, then every hour. Once a window was quiet, lines of the kind pass again. `flush` says what is still held.
 */
export class Repeats implements Logger {
  readonly #log: Logger;
  readonly #clock: Clock;
  /** By level and what they are about, the longest known first. */
  readonly #kinds = new Map<string, Kind>();

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  debug(fields: object, message: string): void {
    this.#log.debug(fields, message);
  }

  info(fields: object, message: string): void {
    this.#say('info', fields, message);
  }

  warn(fields: object, message: string): void {
    this.#say('warn', fields, message);
  }

  error(fields: object, message: string): void {
    this.#say('error', fields, message);
  }

  /** Says what was counted and not said yet. */
  flush(): void {
    for (const kind of this.#kinds.values()) this.#release(kind);
    this.#kinds.clear();
  }

  #say(level: Level, fields: object, message: string): void {
    const { first, withinMs } = PATIENCE[level];
    const key = keyOf(level, fields, message);
    const kind = this.#kinds.get(key) ?? this.#newKind(key, level);
    const now = this.#clock.now();
    if (kind.held === undefined) {
      if (now - kind.since >= withinMs) {
        kind.since = now;
        kind.passed = 0;
      }
      if (kind.passed < first) {
        kind.passed += 1;
        this.#log[level](fields, message);
        return;
      }
      this.#hold(key, kind, 0, fields, message);
    } else {
      kind.held.count += 1;
      kind.held.fields = fields;
      kind.held.message = message;
    }
    this.#log.debug(fields, message);
  }

  #newKind(key: string, level: Level): Kind {
    const [oldest] = this.#kinds;
    if (this.#kinds.size >= MOST_KINDS && oldest !== undefined) {
      this.#release(oldest[1]);
      this.#kinds.delete(oldest[0]);
    }
    const kind: Kind = { level, passed: 0, since: this.#clock.now(), held: undefined };
    this.#kinds.set(key, kind);
    return kind;
  }

  #hold(key: string, kind: Kind, window: number, fields: object, message: string, count = 1): void {
    const timer = this.#clock.after(windowMs(kind.level, window), () => this.#windowEnds(key, kind), {
      background: true,
    });
    kind.held = { count, window, fields, message, timer };
  }

  #windowEnds(key: string, kind: Kind): void {
    const { held, level } = kind;
    if (held === undefined) return;
    this.#release(kind);
    if (held.count < PATIENCE[level].quietBelow) this.#kinds.delete(key);
    else this.#hold(key, kind, held.window + 1, held.fields, held.message, 0);
  }

  #release(kind: Kind): void {
    const { held, level } = kind;
    kind.held = undefined;
    if (held === undefined) return;
    held.timer.cancel();
    if (held.count === 0) return;
    const { count, fields, message } = held;
    const time = durationText(windowMs(level, held.window));
    this.#log[level](
      { ...subjectsOf(fields), event: 'repeated', of: textOf(fields, 'event'), count },
      textOf(fields, 'event') === 'confirmed'
        ? `confirmed ${numberText(count)} more ${count === 1 ? 'file' : 'files'} of ${textOf(fields, 'folder')} in the last ${time}`
        : `${numberText(count)} more like this in the last ${time}, the last one: ${message}`,
    );
  }
}

function windowMs(level: Level, window: number): number {
  const { windowsMs } = PATIENCE[level];
  return windowsMs[Math.min(window, windowsMs.length - 1)] ?? windowsMs[0];
}

function keyOf(level: Level, fields: object, message: string): string {
  const code = textOf(fields, 'code');
  const about = code === undefined ? shapeOf(fields, message) : '';
  const subjects = Object.values(subjectsOf(fields));
  return [level, textOf(fields, 'event'), ...subjects, about].join(' ');
}

function subjectsOf(fields: object): Record<string, string> {
  const subjects: Record<string, string> = {};
  for (const name of [...SUBJECTS, 'code']) {
    const value = textOf(fields, name);
    if (value !== undefined) subjects[name] = value;
  }
  return subjects;
}

/** What is said, without what and how much it is said of. */
function shapeOf(fields: object, message: string): string {
  let shape = message;
  for (const name of ['path', 'url', 'file']) {
    const value = textOf(fields, name);
    if (value) shape = shape.replaceAll(value, '*');
  }
  return shape
    .slice(0, 4 * LONGEST_SHAPE)
    .replaceAll(/"[^"]*"|\S*\/\S*|\d[\w.,:-]*/g, '*')
    .slice(0, LONGEST_SHAPE);
}

function textOf(fields: object, name: string): string | undefined {
  const value: unknown = Object.getOwnPropertyDescriptor(fields, name)?.value;
  return typeof value === 'string' ? value : undefined;
}
