import type { Clock, Timer } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { counted, escapeInvisible, numberText, quoted } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { RecentEvent } from '../report/live.js';

/** Limits of similar lines at `warn` and `error`. */
const FAILURE_LIMITS = {
  /** Number of similar lines that pass. */
  burst: 5,
  /** Period in which they count, in ms. */
  periodMs: 600_000,
  /** Lengths of the windows in which further lines are counted, in ms. The last one repeats. */
  windowsMs: [10_000, 600_000, 3_600_000],
  /** A window with fewer lines than this is the last. */
  quietBelow: 1,
};
type Limits = typeof FAILURE_LIMITS;
/** Limits of similar lines at `info`. */
const INFO_LIMITS: Limits = { burst: 20, periodMs: 10_000, windowsMs: [10_000], quietBelow: 20 };

/** Maximum number of kinds. All counts are logged and cleared before there are more. */
const MAX_KINDS = 500;
const MAX_SHAPE_LENGTH = 200;
/** Number of lines in `recents`. */
const MAX_RECENTS = 200;

/** Lines that are similar. */
interface Kind {
  readonly level: RecentEvent['level'];
  readonly limits: Limits;
  /** Number of lines that passed in the current period. */
  passed: number;
  /** Start of the current period. */
  since: number;
  /** Number of lines that were suppressed in the current window. */
  suppressed: number;
  last: { readonly fields: object; readonly message: string };
  /** Number of windows before the current one. */
  window: number;
  /** Ends the current window; undefined if lines pass. */
  timer: Timer | undefined;
}

/**
 * The log of a daemon. It rate-limits similar lines, and keeps the last lines from `info` up.
 *
 * Lines are of the same kind if they have the same level, folder, mirror and collection, and the
 * same code or, without a code, the same event and words apart from names and numbers. A kind is
 * in one of two modes:
 *
 * - *Passing*, the initial mode: lines are logged.
 * - *Counting*, entered when more than `burst` lines came in `periodMs`: lines go to debug. At the
 *   end of each window, one line reports their number. A quiet window leads back to *passing*.
 *
 * Windows take 10 s for `info`. For `warn` and `error` they take 10 s, then 10 min, then 1 h each.
 * `flush` reports the lines that were counted so far.
 */
export class DaemonLog implements Logger {
  /** The last lines that were logged, oldest first. */
  readonly recents: RecentEvent[] = [];
  readonly info = this.#limited('info', INFO_LIMITS);
  readonly warn = this.#limited('warn', FAILURE_LIMITS);
  readonly error = this.#limited('error', FAILURE_LIMITS);
  #lastId = 0;
  /** By the result of `repeatKey`. */
  readonly #kinds = new Map<string, Kind>();

  constructor(
    private readonly log: Logger,
    private readonly clock: Clock,
  ) {}

  debug(fields: object, message: string): void {
    this.log.debug(fields, message);
  }

  /** Reports the lines that were counted and not reported yet. */
  flush(): void {
    for (const kind of this.#kinds.values()) this.#endWindow(kind);
    this.#kinds.clear();
  }

  #limited(level: Kind['level'], limits: Limits): Logger['info'] {
    return (fields, message) => {
      const key = repeatKey(level, fields, message);
      const now = this.clock.now();
      const last = { fields, message };
      let kind = this.#kinds.get(key);
      if (kind === undefined) {
        if (this.#kinds.size === MAX_KINDS) this.flush();
        kind = {
          level,
          limits,
          passed: 0,
          since: now,
          suppressed: 0,
          last,
          window: 0,
          timer: undefined,
        };
        this.#kinds.set(key, kind);
      }
      if (now - kind.since >= limits.periodMs) {
        kind.since = now;
        kind.passed = 0;
      }
      if (kind.timer === undefined && kind.passed < limits.burst) {
        kind.passed += 1;
        this.#write(level, fields, message);
        return;
      }
      kind.suppressed += 1;
      kind.last = last;
      if (kind.timer === undefined) this.#beginWindow(key, kind);
      this.log.debug(fields, message);
    };
  }

  #write(level: Kind['level'], fields: object, message: string): void {
    const { event } = fields as { readonly event?: string };
    this.#lastId += 1;
    this.recents.push({ id: this.#lastId, at: this.clock.now(), level, message, event });
    if (this.recents.length > MAX_RECENTS) this.recents.shift();
    this.log[level](fields, message);
  }

  #beginWindow(key: string, kind: Kind): void {
    const onEnd = () => {
      const { suppressed } = kind;
      this.#endWindow(kind);
      kind.window += 1;
      if (suppressed < kind.limits.quietBelow) this.#kinds.delete(key);
      else this.#beginWindow(key, kind);
    };
    kind.timer = this.clock.after(windowMs(kind), onEnd, { background: true });
  }

  #endWindow(kind: Kind): void {
    const { suppressed, last, level } = kind;
    kind.timer?.cancel();
    kind.timer = undefined;
    kind.suppressed = 0;
    if (suppressed === 0) return;
    const { event, ...subjects } = subjectOf(last.fields);
    const time = `in the last ${durationText(windowMs(kind))}`;
    this.#write(
      level,
      { ...subjects, event: 'repeated', of: event, count: suppressed },
      event === 'confirmed'
        ? `confirmed ${counted(suppressed, 'more file')} of folder ${quoted(String(subjects.folder))} ${time}`
        : `${numberText(suppressed)} more like this ${time}, the last one: ${last.message}`,
    );
  }
}

function windowMs({ limits: { windowsMs }, window }: Kind): number {
  return windowsMs[window] ?? windowsMs.at(-1) ?? 0;
}

type Fields = Readonly<Record<string, unknown>>;

/** Returns the fields that distinguish lines with the same words. */
function subjectOf(fields: object) {
  const { event, folder, mirror, collection, table, kind, code } = fields as Fields;
  return { event, folder, mirror, collection, table, kind, code };
}

function repeatKey(level: string, fields: object, message: string): string {
  const subject = subjectOf(fields);
  const shape = subject.code === undefined ? shapeOf(fields as Fields, message) : '';
  return [level, ...Object.values(subject), shape].join(' ');
}

/** Returns the words of a line without its names and numbers. */
function shapeOf({ path, url, file, from }: Fields, message: string): string {
  let shape = message;
  for (const value of [path, url, file, from])
    if (typeof value === 'string' && value !== '')
      shape = shape.replaceAll(escapeInvisible(value), '*');
  return shape
    .slice(0, 4 * MAX_SHAPE_LENGTH)
    .replaceAll(/"[^"]*"|\S*\/\S*|\d[\w.,:-]*/g, '*')
    .slice(0, MAX_SHAPE_LENGTH);
}
