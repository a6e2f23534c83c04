import type { Clock } from '../lib/clock.js';
import { durationText } from '../lib/duration-text.js';
import type { Counts } from '../state/entries.js';

const BAR_WIDTH = 24;
/** Between two plain lines, in ms. */
const LINE_INTERVAL_MS = 5_000;

/** How far a run has come: a bar that is redrawn on a terminal, a plain line now and then elsewhere. */
export class Progress {
  readonly #stream: NodeJS.WriteStream | undefined;
  readonly #clock: Clock;
  readonly #started: number;
  #confirmedBefore: number | undefined;
  #lastLineAt: number;
  #drawn = false;
  #lastText = '';

  /** @param stream where to show it; nowhere when undefined */
  constructor(stream: NodeJS.WriteStream | undefined, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
    this.#started = clock.monotonic();
    this.#lastLineAt = this.#started;
  }

  show(counts: Counts, scanned: boolean): void {
    if (this.#stream === undefined) return;
    this.#confirmedBefore ??= counts.confirmed;
    const text = this.#text(counts, scanned);
    if (text === this.#lastText) return;
    if (this.#stream.isTTY) {
      const width = this.#stream.columns ?? 80;
      this.#stream.write(`\r\x1b[K${text.slice(0, width - 1)}`);
      this.#drawn = true;
      this.#lastText = text;
    } else if (this.#clock.monotonic() - this.#lastLineAt >= LINE_INTERVAL_MS) {
      this.#lastLineAt = this.#clock.monotonic();
      this.#stream.write(`${text}\n`);
      this.#lastText = text;
    }
  }

  /** Clears the bar, so that the result stands alone. */
  end(): void {
    if (this.#drawn) this.#stream?.write('\r\x1b[K');
    this.#drawn = false;
  }

  #text(counts: Counts, scanned: boolean): string {
    const { pending, accepted, confirmed, quarantined } = counts;
    const total = pending + accepted + confirmed;
    const share = total === 0 ? 0 : confirmed / total;
    const filled = Math.floor(share * BAR_WIDTH);
    const bar = `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)}`;
    const seconds = (this.#clock.monotonic() - this.#started) / 1000;
    const rate = (confirmed - (this.#confirmedBefore ?? 0)) / Math.max(seconds, 0.001);
    const left = pending + accepted;
    const eta = scanned && rate > 0 && left > 0 ? `, ${durationText((left / rate) * 1000)} left` : '';
    const parts = [`${confirmed}/${total} confirmed`, `${pending} to push`, `${accepted} to confirm`];
    if (quarantined > 0) parts.push(`${quarantined} quarantined`);
    return `${bar} ${parts.join(', ')}, ${rate.toFixed(0)}/s${eta}${scanned ? '' : ', scanning'}`;
  }
}
