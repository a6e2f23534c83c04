import type { Config } from '../config/config.js';
import { systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Stuck } from '../lib/health.js';
import { sentence } from '../lib/sentence.js';
import { VERSION } from '../lib/version.js';
import type { MirrorReport } from '../mirror/record.js';
import { mirrorReports } from '../mirror/report.js';
import type { DialectName } from '../peer/dialect.js';
import type { Paused, QueueStatus } from '../queue/request-queue.js';
import type { Status, Trouble } from '../state/entry.js';
import type { StateView } from '../state/state.js';
import { rememberedDialect } from '../uplink/remembered-dialect.js';
import type { UplinkStatus } from '../uplink/uplink.js';
import type { FolderStatus, PathProblem } from '../watch/watcher.js';
import { type Condition, conditionsOf } from './conditions.js';
import type { ConfigurationReport, DiskTrouble, Live, SilentDisk } from './live.js';
import { keptPause } from './pausing.js';
import type { StatisticsReport } from './statistics.js';

/** How many quarantined items a status names. */
const NAMED = 5;

export type ItemCounts = Readonly<Record<Status, number>>;

export interface FolderReport {
  readonly name: string;
  readonly path: string;
  readonly collection: string;
  readonly items: ItemCounts;
  readonly passedOver: number;
  /** What the watcher is doing there; only while the daemon runs. */
  readonly watch?: FolderStatus;
}

export interface Truncated {
  readonly total: number;
  readonly shown: number;
}

/** Everything `status` says, also as JSON. Times are ms since the epoch. */
export interface StatusReport {
  readonly version: string;
  readonly running: boolean;
  readonly pid?: number;
  readonly startedAt?: number;
  /**
   * How far the wall clock is ahead of the daemon's steady time, which all times here are of, in ms. Only where somebody has set the
   * clock since the daemon began.
   */
  readonly wallAheadMs?: number;
  /** What a person paused. */
  readonly paused?: Paused;
  /** The keys of the configuration whose new values wait for a restart; only while the daemon runs, and there are any. */
  readonly restart?: readonly string[];
  /** Whether the file of the configuration is what holds; only while the daemon runs. */
  readonly configuration?: ConfigurationReport;
  /** Where the status page is; only while it is open. */
  readonly page?: string;
  readonly peer: { readonly url: string; readonly dialect?: DialectName; readonly queue?: QueueStatus };
  readonly items: ItemCounts;
  readonly passedOver: number;
  readonly folders: readonly FolderReport[];
  readonly uplink?: UplinkStatus;
  /** Only while the daemon runs. */
  readonly figures?: StatisticsReport;
  /** The directory that the paths of mirrors are below. */
  readonly mirrorRoot: string;
  readonly mirrors: readonly MirrorReport[];
  readonly quarantined: readonly { readonly file: string; readonly code: string; readonly message: string }[];
  readonly problems: readonly PathProblem[];
  /** Of each list that is cut short: how many there are, and how many it shows. */
  readonly truncated?: Readonly<Partial<Record<'quarantined' | 'problems', Truncated>>>;
  /** What keeps changes from being recorded: nothing is sent meanwhile. Only while the daemon runs. */
  readonly stateTrouble?: Trouble;
  /** A disk that does not answer; what it keeps waits. Only while the daemon runs. */
  readonly diskTrouble?: DiskTrouble;
  /** What does not go on by itself; only while the daemon runs, and there is any. */
  readonly stuck?: readonly Stuck[];
  /** What a person should know, the gravest first. */
  readonly conditions: readonly Condition[];
  /** What opening the state repaired. */
  readonly repairs: readonly string[];
}

/** @param now in ms since the epoch; looked at only where no daemon runs. @default the present */
export function statusReport(
  config: Config,
  state: StateView,
  live: Live | undefined,
  now = systemClock.now(),
): StatusReport {
  const watched = live?.folders() ?? [];
  const watching = new Map(watched.map((folder) => [folder.name, folder]));
  const problems = live?.problems() ?? [];
  const unnamed = watched.reduce((sum, { unnamedProblems = 0 }) => sum + unnamedProblems, 0);
  const total = state.counts();
  const quarantined: { file: string; code: string; message: string }[] = [];
  for (const { folder, path, trouble } of state.entries.quarantined()) {
    const { code, message } = trouble;
    quarantined.push({ file: `${folder}/${path}`, code, message });
    if (quarantined.length === NAMED) break;
  }
  const truncated = {
    ...truncation('quarantined', total.quarantined, quarantined.length),
    ...truncation('problems', problems.length + unnamed, problems.length),
  };
  const dialect = live === undefined ? dialectOf(config.peer, state) : live.dialect();
  const queue = live?.queue();
  const paused = live === undefined ? keptPause(state, now) : queue?.paused;
  const restart = live?.restart() ?? [];
  const page = live?.page();
  const { failure } = state;
  // In whole seconds, so that a status changes only when something does.
  const aheadMs = Math.round((live?.wallAheadMs() ?? 0) / 1_000) * 1_000;
  const silent = live?.silentDisk();
  const stuck = live?.stuck() ?? [];
  const report = {
    version: VERSION,
    running: live !== undefined,
    ...(live
      ? {
          pid: live.pid,
          startedAt: live.startedAt,
          ...(aheadMs === 0 ? {} : { wallAheadMs: aheadMs }),
          uplink: live.uplink(),
          figures: live.figures(),
          configuration: live.configuration(),
        }
      : {}),
    ...(paused === undefined ? {} : { paused }),
    ...(restart.length === 0 ? {} : { restart }),
    ...(page === undefined ? {} : { page }),
    peer: {
      url: live?.peerUrl ?? config.peer.url,
      ...(dialect === undefined ? {} : { dialect }),
      ...(queue === undefined ? {} : { queue }),
    },
    items: itemCounts(total),
    passedOver: total.passed,
    folders: config.folders.map((folder) => {
      const counts = state.counts(folder.name);
      const watch = watching.get(folder.name);
      return {
        name: folder.name,
        path: folder.path,
        collection: folder.collection,
        items: itemCounts(counts),
        passedOver: counts.passed,
        ...(watch ? { watch } : {}),
      };
    }),
    mirrorRoot: config.mirror.root,
    mirrors: live?.mirrors() ?? mirrorReports(config.mirror, state),
    quarantined,
    problems,
    ...(Object.keys(truncated).length === 0 ? {} : { truncated }),
    ...(failure === undefined
      ? {}
      : { stateTrouble: { code: failure.code, message: failure.message, hint: failure.hint } }),
    ...(silent === undefined ? {} : { diskTrouble: diskTrouble(silent) }),
    ...(stuck.length === 0 ? {} : { stuck }),
    repairs: state.repairs,
  };
  return { ...report, conditions: conditionsOf(report) };
}

function truncation(
  list: keyof NonNullable<StatusReport['truncated']>,
  total: number,
  shown: number,
): StatusReport['truncated'] {
  return total > shown ? { [list]: { total, shown } } : {};
}

/** What the peer speaks, as far as is known without asking it. */
function dialectOf({ url, dialect }: Config['peer'], state: StateView): DialectName | undefined {
  if (url === 'embedded') return 'standard';
  return dialect === 'auto' ? rememberedDialect(state, url) : dialect;
}

export function itemCounts(counts: ItemCounts): ItemCounts {
  const { pending, accepted, confirmed, quarantined, gone } = counts;
  return { pending, accepted, confirmed, quarantined, gone };
}

export function diskTrouble({ path, since, what }: SilentDisk): DiskTrouble {
  return {
    code: 'DISK_SILENT',
    message: sentence(`The disk of ${path} does not answer: ${what}`),
    hint: 'Nothing is lost, and the work goes on by itself when it answers. See whether it is well: a server that is away, a device with errors (`dmesg`), a file system that was frozen.',
    since,
  };
}

/** A folder could not be scanned, for its root is missing or doubtful. */
export function heldError({ name, trouble }: FolderStatus): PeersyncError {
  return new PeersyncError({
    code: 'FOLDER_HELD',
    message: `The folder ${name} was left out: ${trouble?.message ?? 'it is not there'}`,
    hint: trouble?.hint ?? 'Mount it or bring it back, or mend its path in the configuration.',
  });
}
