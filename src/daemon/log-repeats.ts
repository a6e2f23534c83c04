import type { Clock, Timer } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { counted, escapeInvisible, numberText, quoted } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { RecentEvent } from '../report/live.js';

/** When lines that tell of trouble become too many. */
const TROUBLE = {
  /** So many alike pass. */
  first: 5,
  /** In this time, in ms. */
  withinMs: 600_000,
  /**
   * Then it is said how many more there were after each of these, the last again and again, in ms.
   */
  windowsMs: [10_000, 600_000, 3_600_000],
  /** A window with fewer than this was the last. */
  quietBelow: 1,
};
type Patience = typeof TROUBLE;
/** The same of lines that tell of what was done. */
const EVENTS: Patience = { first: 20, withinMs: 10_000, windowsMs: [10_000], quietBelow: 20 };

/** So many kinds of lines are told apart; before there are more, all are counted anew. */
const MOST_KINDS = 500;
const LONGEST_SHAPE = 200;
/** So many lines are remembered for who looks later. */
const RECENTS_KEPT = 200;

/** Lines that are alike. */
interface Kind {
  readonly level: RecentEvent['level'];
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
 * The log of a daemon: says repeated things once and counts them, and remembers the last lines from
 * `info` up.
 *
 * Lines are alike when they have the same level and code, or event and words without names and
 * numbers, and speak of the same folder, mirror or collection. The first few of a kind *pass*. Are
 * there more in a short time, the others are *held*: they go to debug, and one line says how many
 * there were: of news (`info`) every 10 s, of trouble after 10 s, then 10 min, then every hour.
 * Once a window was quiet, lines of the kind pass again. `flush` says what is still held.
 */
export class DaemonLog implements Logger {
  /** The last lines that were said, oldest first. */
  readonly recents: RecentEvent[] = [];
  readonly info = this.#counting('info', EVENTS);
  readonly warn = this.#counting('warn', TROUBLE);
  readonly error = this.#counting('error', TROUBLE);
  #said = 0;
  /** By level and what they are about. */
  readonly #kinds = new Map<string, Kind>();

  constructor(
    private readonly log: Logger,
    private readonly clock: Clock,
  ) {}

  debug(fields: object, message: string): void {
    this.log.debug(fields, message);
  }

  /** Says what was counted and not said yet. */
  flush(): void {
    for (const kind of this.#kinds.values()) this.#release(kind);
    this.#kinds.clear();
  }

  #counting(level: Kind['level'], patience: Patience): Logger['info'] {
    return (fields, message) => {
      const key = keyOf(level, fields, message);
      const now = this.clock.now();
      const last = { fields, message };
      let kind = this.#kinds.get(key);
      if (kind === undefined) {
        if (this.#kinds.size === MOST_KINDS) this.flush();
        kind = {
          level,
          patience,
          passed: 0,
          since: now,
          held: 0,
          last,
          window: 0,
          timer: undefined,
        };
        this.#kinds.set(key, kind);
      }
      if (now - kind.since >= patience.withinMs) [kind.since, kind.passed] = [now, 0];
      if (kind.timer === undefined && kind.passed < patience.first) {
        kind.passed += 1;
        this.#say(level, fields, message);
        return;
      }
      kind.held += 1;
      kind.last = last;
      if (kind.timer === undefined) this.#hold(key, kind);
      this.log.debug(fields, message);
    };
  }

  #say(level: Kind['level'], fields: object, message: string): void {
    const { event } = fields as { readonly event?: string };
    this.#said += 1;
    this.recents.push({ id: this.#said, at: this.clock.now(), level, message, event });
    if (this.recents.length > RECENTS_KEPT) this.recents.shift();
    this.log[level](fields, message);
  }

  #hold(key: string, kind: Kind): void {
    const windowEnds = () => {
      const { held } = kind;
      this.#release(kind);
      kind.window += 1;
      if (held < kind.patience.quietBelow) this.#kinds.delete(key);
      else this.#hold(key, kind);
    };
    kind.timer = this.clock.after(windowMs(kind), windowEnds, { background: true });
  }

  #release(kind: Kind): void {
    const { held, last, level } = kind;
    kind.timer?.cancel();
    kind.timer = undefined;
    kind.held = 0;
    if (held === 0) return;
    const { event, ...subjects } = aboutOf(last.fields);
    const time = `in the last ${durationText(windowMs(kind))}`;
    this.#say(
      level,
      { ...subjects, event: 'repeated', of: event, count: held },
      event === 'confirmed'
        ? `confirmed ${counted(held, 'more file')} of folder ${quoted(String(subjects.folder))} ${time}`
        : `${numberText(held)} more like this ${time}, the last one: ${last.message}`,
    );
  }
}

function windowMs({ patience: { windowsMs }, window }: Kind): number {
  return windowsMs[window] ?? windowsMs.at(-1) ?? 0;
}

type Fields = Readonly<Record<string, unknown>>;

/** What makes lines with the same words speak of different things. */
function aboutOf(fields: object) {
  const { event, folder, mirror, collection, table, kind, code } = fields as Fields;
  return { event, folder, mirror, collection, table, kind, code };
}

function keyOf(level: string, fields: object, message: string): string {
  const about = aboutOf(fields);
  const shape = about.code === undefined ? shapeOf(fields as Fields, message) : '';
  return [level, ...Object.values(about), shape].join(' ');
}

/** What is said, without what and how much it is said of. */
function shapeOf({ path, url, file, from }: Fields, message: string): string {
  let shape = message;
  for (const value of [path, url, file, from])
    if (typeof value === 'string' && value !== '')
      shape = shape.replaceAll(escapeInvisible(value), '*');
  return shape
    .slice(0, 4 * LONGEST_SHAPE)
    .replaceAll(/"[^"]*"|\S*\/\S*|\d[\w.,:-]*/g, '*')
    .slice(0, LONGEST_SHAPE);
}
