const BARS = '▂▃▄▅▆▇█';
const NOTHING = '▁';

/** The last numbers as bars beside each other, the tallest for the largest; more than fit are left out at the begin. */
export function sparkline(numbers: readonly number[], width: number): string {
  const last = width <= 0 ? [] : numbers.slice(-width);
  const most = Math.max(...last, 0);
  return last
    .map((n) => (n <= 0 ? NOTHING : BARS[Math.min(BARS.length - 1, Math.floor((n / most) * BARS.length))]))
    .join('');
}
