import { Progress } from '../../src/cli/progress.js';
import { systemClock } from '../../src/lib/clock.js';

// Draws on its standard output as on a terminal; then it throws.
const stream = {
  isTTY: true,
  columns: 80,
  write: (text: string) => process.stdout.write(text),
  on() {},
  off() {},
};
new Progress(stream, systemClock, {}).show({ done: 1, total: 2, parts: ['1/2 confirmed'] });
setTimeout(() => {
  throw new Error('nobody catches this');
}, 10);
