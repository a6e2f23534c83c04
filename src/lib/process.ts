import { readFileSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { measureMemory } from 'node:vm';
import type { Clock, Timer } from './clock.js';

/** The directory of the package, two levels above this file in the source and in the build. */
export const PACKAGE_ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The version in package.json. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  }
).version;

/**
 * The header in which the embedded peer names itself, with its version, in each of its answers. No
 * other peer has it.
 */
export const EMBEDDED_HEADER = 'peersync-peer';

/** What a build was made of; empty where it was made outside of the repository. */
export interface Build {
  /** Of the repository, shortened. */
  readonly commit?: string;
  /** Of that commit, as `2026-11-21`: the same source is the same build. */
  readonly date?: string;
  /** Whether the source was changed since that commit. */
  readonly modified?: boolean;
}

/** What the build noted of itself; nothing where the source runs without one. */
export function readBuild(): Build {
  try {
    return JSON.parse(readFileSync(new URL('../build.json', import.meta.url), 'utf8')) as Build;
  } catch {
    return {};
  }
}

/**
 * Version, build and Node, as `--version` shows them: `peersync 0.1.0 (a8e24bf, 2026-11-21, Node
 * 20.20.2)`.
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
 * How much the heap may grow beyond what is alive before the old generation is collected, in
 * percent.
 */
const GROWTH_PERCENT = 60;
/** How large the part of the heap for new objects becomes, in bytes; V8 would go to twice that. */
const YOUNG_BYTES = 16 * 1024 * 1024;

/**
 * Lets the heap grow more slowly than V8 likes: a daemon that shares a small machine pays some
 * speed for memory. Measured while 1,000,000 files are taken up and pushed: 553 MB of RSS at most
 * where the heap grows by 40 %, 578 MB by 60 %, 591 MB by 70 %; while a table of 200,000 rows is
 * mirrored: 143-153 MB with a young generation of 32 MB, 134 MB with one of 16 MB.
 */
export function growHeapSlowly(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
  // The size itself can be limited only before the process starts, its growth at any time.
  const observer = new PerformanceObserver(() => {
    if (youngBytes() < YOUNG_BYTES) return;
    setFlagsFromString('--semi-space-growth-factor=1');
    observer.disconnect();
  });
  observer.observe({ entryTypes: ['gc'] });
}

/** So often it is looked whether work is over, in ms. */
const LOOK_MS = 10_000;
/**
 * Processor time between two looks at rest, and since the last collection after much work, in ms.
 */
const REST_MS = 300;
const MUCH_MS = 2_000;

/**
 * Has V8 collect what is garbage whenever much work is over, in small steps beside other work. Left
 * alone, a process at rest keeps what it does not need any more: with 1,000,000 files 80 MB after a
 * first sync, and as much after a start from a large journal, whose records replace those of the
 * snapshot. There is no other way to ask for it that does not stop everything; that this one is
 * experimental is said nowhere.
 */
export function collectGarbageAtRest(clock: Clock): Timer {
  let before = process.cpuUsage();
  let worked = 0;
  const look = () => {
    const { user, system } = process.cpuUsage(before);
    before = process.cpuUsage();
    const ms = (user + system) / 1_000;
    worked += ms;
    if (worked > MUCH_MS && ms < REST_MS) {
      worked = 0;
      collectGarbage();
    }
    timer = clock.after(LOOK_MS, look, { background: true });
  };
  let timer = clock.after(LOOK_MS, look, { background: true });
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
