import type { FoundProgram, ProgramFinder } from '../content/helpers/finder.js';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { ReadingPrograms } from '../watch/deps.js';

/** Shortest time between two looks for programs that scans cause, in ms. */
const LOOK_AGAIN_MS = 60_000;

interface ProgramsDeps {
  readonly finder: Pick<ProgramFinder, 'current' | 'found' | 'refresh'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the programs changed: files that were skipped may be read now. */
  readonly onChange: () => void;
}

/**
 * The programs that read documents, as a daemon knows them. It looks for them at its start, at each
 * reload, and when a full scan begins, at most once a minute.
 */
export class DaemonPrograms implements ReadingPrograms {
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The end of the last look: looks are made one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(private readonly deps: ProgramsDeps) {}

  static async open(deps: ProgramsDeps): Promise<DaemonPrograms> {
    const programs = new DaemonPrograms(deps);
    programs.#lookedAt = deps.clock.now();
    await deps.finder.refresh();
    return programs;
  }

  get current(): ProgramFinder['current'] {
    return this.deps.finder.current;
  }

  onScan(): void {
    const { clock, log } = this.deps;
    if (clock.now() - this.#lookedAt < LOOK_AGAIN_MS) return;
    this.refresh().catch((error: unknown) =>
      log.error(
        { err: error },
        `The programs that read documents cannot be found: ${messageOf(error)}`,
      ),
    );
  }

  /** Looks for the programs. @returns what changed; undefined if nothing did */
  refresh(): Promise<string | undefined> {
    this.#lookedAt = this.deps.clock.now();
    const turn = this.#last.then(() => this.#refresh());
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #refresh(): Promise<string | undefined> {
    const { finder, log, onChange } = this.deps;
    const before = finder.found();
    if (!(await finder.refresh())) return undefined;
    const change = `programs that read documents: ${changeOf(before, finder.found())}`;
    log.info(
      { event: 'programs-changed' },
      `${change}; files that were skipped without them are looked at again`,
    );
    onChange();
    return change;
  }
}

/** Names the programs that came and went. */
function changeOf(before: readonly FoundProgram[], after: readonly FoundProgram[]): string {
  const installed = (programs: readonly FoundProgram[]) =>
    new Set(programs.flatMap(({ path, program }) => (path === undefined ? [] : program)));
  const [had, has] = [installed(before), installed(after)];
  const came = [...has].filter((program) => !had.has(program)).join(', ');
  const went = [...had].filter((program) => !has.has(program)).join(', ');
  const changes = [came && `found ${came}`, went && `${went} not found any more`];
  return changes.filter(Boolean).join('; ') || 'changed';
}
