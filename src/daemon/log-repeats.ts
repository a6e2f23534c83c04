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
  ...{ first: 5, withinMs: 600_000, quietBelow: 1 },
  windowsMs: [10_000, 600_000, 3_600_000],
};

/** So many kinds of lines are told apart. */
const MOST_KINDS = 500;
const LONGEST_SHAPE = 200;
/** Fields that make two lines with the same code speak of different things. */
const SUBJECTS = ['folder', 'mirror', 'collection', 'table', 'kind', 'code'] as const;

/** Lines that are alike. */
interface Kind {
  readonly level: Level;
  readonly patience: Patience;
  /** The number of those that passed, and when the first of them was said. */
  passed: number;
  since: number;
  /** Those that were not said in the window that ends with the timer, and the last of them. */
  held: number;
  last: { readonly fields: object; readonly message: string };
  window: number;
  timer: Timer | undefined;
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
    const key = keyOf(level, fields, message);
    const kind = this.#kinds.get(key) ?? this.#newKind(key, level);
    const { first, withinMs } = kind.patience;
    const now = this.#clock.now();
    if (now - kind.since >= withinMs) [kind.since, kind.passed] = [now, 0];
    if (kind.timer === undefined && kind.passed < first) {
      kind.passed += 1;
      this.#log[level](fields, message);
      return;
    }
    kind.held += 1;
    kind.last = { fields, message };
    if (kind.timer === undefined) this.#hold(key, kind, 0);
    this.#log.debug(fields, message);
  }

  #newKind(key: string, level: Level): Kind {
    const [oldest] = this.#kinds;
    if (this.#kinds.size >= MOST_KINDS && oldest !== undefined) {
      this.#release(oldest[1]);
      this.#kinds.delete(oldest[0]);
    }
    const patience = level === 'info' ? EVENTS : TROUBLE;
    const last = { fields: {}, message: '' };
    const since = this.#clock.now();
    const kind: Kind = { level, patience, passed: 0, since, held: 0, last, window: 0, timer: undefined };
    this.#kinds.set(key, kind);
    return kind;
  }

  #hold(key: string, kind: Kind, window: number): void {
    kind.window = window;
    const windowEnds = () => {
      const { held } = kind;
      this.#release(kind);
      if (held < kind.patience.quietBelow) this.#kinds.delete(key);
      else this.#hold(key, kind, window + 1);
    };
    kind.timer = this.#clock.after(windowMs(kind), windowEnds, { background: true });
  }

  #release(kind: Kind): void {
    const { held, last, level } = kind;
    kind.timer?.cancel();
    kind.timer = undefined;
    kind.held = 0;
    if (held === 0) return;
    const { event, ...subjects } = textsOf(last.fields, ['event', ...SUBJECTS]);
    const count = numberText(held);
    const time = `in the last ${durationText(windowMs(kind))}`;
    this.#log[level](
      { ...subjects, event: 'repeated', of: event, count: held },
      event === 'confirmed'
        ? `confirmed ${count} more ${held === 1 ? 'file' : 'files'} of ${subjects.folder} ${time}`
        : `${count} more like this ${time}, the last one: ${last.message}`,
    );
  }
}

function windowMs({ patience: { windowsMs }, window }: Kind): number {
  return windowsMs[Math.min(window, windowsMs.length - 1)] ?? windowsMs[0];
}

function keyOf(level: Level, fields: object, message: string): string {
  const { event, ...subjects } = textsOf(fields, ['event', ...SUBJECTS]);
  const about = subjects.code === undefined ? shapeOf(fields, message) : '';
  return [level, event, ...Object.values(subjects), about].join(' ');
}

/** What is said, without what and how much it is said of. */
function shapeOf(fields: object, message: string): string {
  let shape = message;
  for (const value of Object.values(textsOf(fields, ['path', 'url', 'file'])))
    if (value) shape = shape.replaceAll(value, '*');
  return shape
    .slice(0, 4 * LONGEST_SHAPE)
    .replaceAll(/"[^"]*"|\S*\/\S*|\d[\w.,:-]*/g, '*')
    .slice(0, LONGEST_SHAPE);
}

/** Those of the named fields that are texts. */
function textsOf<Name extends string>(fields: object, names: readonly Name[]): Partial<Record<Name, string>> {
  const values = fields as Partial<Record<Name, string>>;
  const texts: Partial<Record<Name, string>> = {};
  for (const name of names) if (typeof values[name] === 'string') texts[name] = values[name];
  return texts;
}
