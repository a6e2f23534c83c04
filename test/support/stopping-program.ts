import { Progress } from '../../src/cli/progress.js';
import { onSignals } from '../../src/cli/signals.js';
import { systemClock } from '../../src/lib/clock.js';

// Draws a bar. The first signal ends the bar, and the program goes on until the second signal.
const progress = new Progress(process.stdout, systemClock);
progress.show({ done: 1, total: 2, parts: ['1/2 confirmed'] });
onSignals(() => {
  progress.end();
  console.log('stopping');
});
setInterval(() => {}, 1_000);
