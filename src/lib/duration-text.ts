const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** A duration for a person, in its two largest units: `2m 10s`, `1d 4h`, `350ms`. */
export function durationText(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1000) return `${whole}ms`;
  let rest = Math.round(ms / 1000) * 1000;
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    if (count > 0) parts.push(`${count}${unit}`);
    else if (parts.length > 0) break;
    rest -= count * size;
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

/** A moment as the clock on the wall has it: `2026-11-21 10:04:12`. @param at in ms since the epoch, of that clock */
export function wallClockText(at: number): string {
  return new Date(at).toLocaleString('sv-SE');
}
