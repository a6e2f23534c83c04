// Sets the wall clock of a program from outside; loaded by NODE_OPTIONS=--import. The file
// WALL_CLOCK says by how many ms the clock is ahead. It shifts every date, and no timer.
import { readFileSync } from 'node:fs';

const RealDate = Date;
let aheadMs = 0;

function read() {
  const ms = Number(readFileSync(process.env.WALL_CLOCK, 'utf8'));
  if (Number.isFinite(ms)) aheadMs = ms;
}

globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [RealDate.now() + aheadMs] : args));
  }

  static now() {
    return RealDate.now() + aheadMs;
  }
};

read();
setInterval(read, 20).unref();
