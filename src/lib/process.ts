import { readFileSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { measureMemory } from 'node:vm';
import type { Clock, Timer } from './clock.js';

/**
 * The directory of the package. It is two levels above this file, in the source and in the build.
 */
export const PACKAGE_ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The version in package.json. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  }
).version;

/**
 * The response header by which the embedded peer identifies itself, with its version. No other peer
 * sends it.
 */
export const EMBEDDED_HEADER = 'peersync-peer';

/** The source of a build; empty outside the repository. */
export interface Build {
  /** The abbreviated commit of the repository. */
  readonly commit?: string;
  /** The date of that commit, as `2026-11-21`. The same source gives the same build. */
  readonly date?: string;
  /** Whether the source was changed since that commit. */
  readonly modified?: boolean;
}

/** Returns the source of this build; empty if the source runs without a build. */
export function readBuild(): Build {
  try {
    return JSON.parse(readFileSync(new URL('../build.json', import.meta.url), 'utf8')) as Build;
  } catch {
    return {};
  }
}

/**
 * Returns version, build and Node, as `--version` shows them: `peersync 0.2.0 (a8e24bf, 2026-11-21,
 * Node 20.20.2)`.
 */
export function versionText({ commit, date, modified }: Build = readBuild()): string {
  const source =
    commit === undefined ? undefined : `${commit}${modified === true ? ' modified' : ''}`;
  const parts = [source, date, `Node ${process.versions.node}`].filter(
    (part) => part !== undefined,
  );
  return `peersync ${VERSION} (${parts.join(', ')})`;
}

/** The same for a program. */
export function versionJson(build: Build = readBuild()): string {
  return JSON.stringify({ version: VERSION, ...build, node: process.versions.node });
}

/**
 * The growth of the heap beyond the living objects after which the old generation is collected, in
 * percent.
 */
const GROWTH_PERCENT = 60;
/** The largest young generation, in bytes. V8 would grow it to twice that. */
const YOUNG_BYTES = 16 * 1024 * 1024;

/**
 * Makes the heap grow more slowly than the default of V8. On a small machine the daemon trades some
 * speed for memory.
 *
 * Measured peak RSS while 1,000,000 files are read and pushed: 553 MB with a growth of 40 %, 578 MB
 * with 60 %, 591 MB with 70 %. While a table of 200,000 rows is mirrored: 143-153 MB with a young
 * generation of 32 MB, 134 MB with 16 MB.
 */
export function growHeapSlowly(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
  // The size can be limited only before the process starts, but its growth at any time.
  const observer = new PerformanceObserver(() => {
    if (youngBytes() < YOUNG_BYTES) return;
    setFlagsFromString('--semi-space-growth-factor=1');
    observer.disconnect();
  });
  observer.observe({ entryTypes: ['gc'] });
}

/** The interval at which the processor time is checked, in ms. */
const CHECK_EVERY_MS = 10_000;
/**
 * The limits of processor time, in ms: less than REST_MS between two checks counts as rest, more
 * than MUCH_MS since the last collection counts as much work.
 */
const REST_MS = 300;
const MUCH_MS = 2_000;

/**
 * Makes V8 collect garbage when much work is over, in small steps beside other work. Otherwise a
 * process at rest keeps its garbage: with 1,000,000 files, 80 MB after a first sync, and as much
 * after a start from a large journal, whose records replace those of the snapshot.
 *
 * `measureMemory` is the only way that does not stop the whole process. It is experimental, so its
 * warning is suppressed.
 */
export function collectGarbageAtRest(clock: Clock): Timer {
  let before = process.cpuUsage();
  // Loading the code is much work, too.
  let worked = Number.POSITIVE_INFINITY;
  const look = () => {
    const { user, system } = process.cpuUsage(before);
    before = process.cpuUsage();
    const ms = (user + system) / 1_000;
    worked += ms;
    if (worked > MUCH_MS && ms < REST_MS) {
      worked = 0;
      collectGarbage();
    }
    timer = clock.after(CHECK_EVERY_MS, look, { background: true });
  };
  let timer = clock.after(CHECK_EVERY_MS, look, { background: true });
  return { cancel: () => timer.cancel() };
}

function collectGarbage(): void {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  void measureMemory({ mode: 'summary', execution: 'eager' }).catch(() => {});
  process.emitWarning = emitWarning;
}

function youngBytes(): number {
  return (
    getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0
  );
}
