import type { Sample } from '../../src/figures/report.js';
import type { FolderReport, StatusReport } from '../../src/inspect/status.js';
import type { WhyReport } from '../../src/inspect/why.js';
import type { MirrorReport } from '../../src/mirror/record.js';
import type { ItemLine } from '../../src/page/api.js';
import type { DoorStatus } from '../../src/queue/status.js';
import type { RecentEvent } from '../../src/service/recent.js';
import type { Entry } from '../../src/state/entry.js';
import type { Script } from './stand-in.js';

const MIN = 60_000;
export const NOW = Date.now();
const NO_ITEMS = { pending: 0, accepted: 0, confirmed: 0, quarantined: 0, gone: 0 };

export function door(over: Partial<DoorStatus> = {}): DoorStatus {
  const lane = { started: 20, failed: 0, running: 0, waiting: 0 };
  return {
    circuit: { state: 'closed', since: NOW - 26 * 60 * MIN, held: [], tries: 0 },
    concurrency: { running: 0, limit: 4, max: 4 },
    lanes: {
      interactive: lane,
      confirm: { ...lane, started: 5210, p50LatencyMs: 11 },
      push: { ...lane, started: 604, p50LatencyMs: 84 },
      mirror: { ...lane, started: 88, p50LatencyMs: 310 },
      audit: { ...lane, started: 120, p50LatencyMs: 9 },
    },
    ...over,
  };
}

export function folder(
  name: string,
  items: Partial<FolderReport['items']> = {},
  over: Partial<FolderReport> = {},
): FolderReport {
  return {
    name,
    path: `/srv/library/${name}`,
    collection: name,
    items: { ...NO_ITEMS, ...items },
    passedOver: 0,
    watch: {
      name,
      state: 'watching',
      since: NOW - 60 * MIN,
      directoriesWatched: 210,
      settling: 0,
      lastScan: {
        folder: name,
        directory: '',
        files: 5210,
        directories: 210,
        durationMs: 412,
        at: NOW - 9 * MIN,
      },
    },
    ...over,
  };
}

/** A status of these folders; what they do not say is at rest. */
export function statusOf(folders: readonly FolderReport[], over: Partial<StatusReport> = {}): StatusReport {
  const items = { ...NO_ITEMS };
  for (const { items: own } of folders) {
    for (const status of ['pending', 'accepted', 'confirmed', 'quarantined', 'gone'] as const)
      items[status] += own[status];
  }
  return {
    version: '0.1.0',
    running: true,
    pid: 4711,
    startedAt: NOW - 26 * 60 * MIN,
    peer: { url: 'https://search.example.org', dialect: 'standard', door: door() },
    items,
    passedOver: folders.reduce((sum, { passedOver }) => sum + passedOver, 0),
    folders,
    uplink: { inFlight: 0, confirming: 0, timeToVisibleMs: 1_900 },
    figures: { timeToSearch: [], confirmedPerSecond: 0, alerts: [] },
    mirrorRoot: '/srv/mirror',
    mirrors: [],
    quarantined: [],
    problems: [],
    repairs: [],
    ...over,
  };
}

const timeToSearch = (collection: string, factor: number, waiting = 0) => ({
  collection,
  hour: { count: 320, p50Ms: 2_300 * factor, p95Ms: 4_900 * factor, p99Ms: 9_700 * factor },
  day: { count: 8_204, p50Ms: 2_500 * factor, p95Ms: 5_600 * factor, p99Ms: 14_200 * factor },
  waiting,
  ...(waiting > 0 ? { oldestSince: NOW - 48_000 } : {}),
});

/** An hour with a burst in it. */
export function hourOf(peak: number): Sample[] {
  return Array.from({ length: 360 }, (_, i) => {
    const burst = Math.max(0, Math.sin((i - 90) / 38)) ** 3;
    const noise = 0.7 + 0.3 * Math.sin(i * 12.9898) * Math.cos(i * 4.1414);
    const confirmed = Math.round(peak * 10 * (0.06 + burst) * noise);
    return {
      at: NOW - (360 - i) * 10_000,
      confirmed,
      accepted: confirmed,
      waiting: Math.round(peak * 60 * Math.max(0, Math.sin((i - 78) / 40)) ** 2 * noise),
      ...(confirmed > 0
        ? { p50Ms: 1_900 + 1_500 * burst * noise, p95Ms: 3_400 + 5_200 * burst * noise }
        : {}),
    };
  });
}

const event = (id: number, minutes: number, level: RecentEvent['level'], message: string): RecentEvent => ({
  id,
  at: NOW - minutes * MIN,
  level,
  message,
});

const EVENTS = [
  event(1, 52, 'info', 'watching /srv/library/notes: text files there go into the collection "notes"'),
  event(2, 51, 'info', 'confirmed notes/2026/garden-plan.md (2s after its push)'),
  event(3, 40, 'info', 'The mirror prices was brought up to date: 1,204 rows, 3 changed'),
  event(
    4,
    31,
    'warn',
    'papers/scans/0412.pdf was passed over: it is 64 MB, and folders[].maxFileSize is 20 MB',
  ),
  event(5, 12, 'info', '2,140 files of papers became searchable in the last 10 minutes'),
  event(6, 2, 'info', 'confirmed notes/meeting-2026-11-20.md (2s after its push)'),
];

const mirror = (name: string, over: Partial<MirrorReport> = {}): MirrorReport => ({
  name,
  kind: 'table',
  path: `tables/${name}.csv`,
  table: name,
  succeededAt: NOW - 4 * MIN,
  changedAt: NOW - 190 * MIN,
  rows: 1_204,
  bytes: 88_412,
  nextAt: NOW + 11 * MIN,
  ...over,
});

const LIBRARY = [
  folder('notes', { confirmed: 2_318, gone: 14 }, { passedOver: 3 }),
  folder('papers', { confirmed: 18_442, gone: 120 }, { passedOver: 41 }),
  folder('letters', { confirmed: 961 }),
];
const MIRRORS = [
  mirror('prices'),
  mirror('authors', { rows: 88, bytes: 6_120 }),
  mirror('feed', { kind: 'share', path: 'share/feed.xml', bytes: 2_410_233, changedAt: NOW - 4 * MIN }),
];
const TIMES = [timeToSearch('letters', 0.8), timeToSearch('notes', 1), timeToSearch('papers', 2.4)];
const REST = { figures: { timeToSearch: TIMES, confirmedPerSecond: 0, alerts: [] }, mirrors: MIRRORS };

const REASONS = [
  [
    'PEER_REFUSED_ITEM',
    'The peer refused the document: "the content type application/x-tar is not supported".',
    'Convert the file to text or PDF, or keep it out with folders[].ignore.',
  ],
  [
    'NOT_SHOWN',
    'The peer accepted the document three times and never showed it.',
    'Look whether its address is one that the peer takes, then retry.',
  ],
  [
    'FILE_UNREADABLE',
    'The file cannot be read: permission denied.',
    'Give the user that peersync runs as the right to read it, then retry.',
  ],
] as const;

export function item(index: number, status: string): ItemLine {
  const [code, message, hint] = REASONS[index % REASONS.length] ?? REASONS[0];
  const path = `${2020 + (index % 7)}/${['field-report', 'minutes', 'annual-review', 'draft'][index % 4]}-${String(index + 1).padStart(4, '0')}.${['pdf', 'md', 'txt'][index % 3]}`;
  return {
    folder: 'papers',
    path,
    file: `/srv/library/papers/${path}`,
    status: status as Entry['status'],
    since: NOW - (index + 3) * 7 * MIN,
    size: 4_000 + index * 977,
    url: `https://files.example.org/papers/${path}`,
    ...(status === 'quarantined' ? { attempts: 3, code, message, hint } : {}),
    ...(status === 'passed'
      ? { code: 'EMPTY', message: 'It is empty.', hint: 'Nothing is to be done.' }
      : {}),
  };
}

const WHY: WhyReport = {
  file: '/srv/library/papers/2021/minutes-0002.md',
  folder: 'papers',
  path: '2021/minutes-0002.md',
  verdict: 'confirmed',
  rule: 'Folder papers takes it: collection papers.',
  since: NOW - 44 * MIN,
  url: 'https://files.example.org/papers/2021/minutes-0002.md',
  collection: 'papers',
  version: {
    size: 18_204,
    mtimeMs: NOW - 46 * MIN,
    sha256: 'c957c0e6f0529f8d58990c77d8706a5bd44291b72a1fdd4ab802b8468006cfe0',
  },
  evidence: {
    kind: 'digest',
    at: NOW - 44 * MIN,
    shown: 'sha256 c957c0e6f0529f8d58990c77d8706a5bd44291b72a1fdd4ab802b8468006cfe0',
  },
  history: [
    { status: 'pending', at: NOW - 45 * MIN, note: 'new file' },
    { status: 'accepted', at: NOW - 44.6 * MIN },
    { status: 'confirmed', at: NOW - 44 * MIN, note: 'digest sha256 c957c0e6f0529f8d…' },
  ],
  next: 'Nothing, until the file changes.',
};

const AWAY = door({
  circuit: {
    state: 'open',
    since: NOW - 3 * MIN - 12_000,
    reason: {
      kind: 'unreachable',
      code: 'ECONNREFUSED',
      message: 'https://search.example.org/api/push_p.html refused the connection',
      hint: 'Look whether the peer runs, and whether peer.url is right.',
    },
    held: ['confirm', 'push', 'mirror', 'audit'],
    nextProbeAt: NOW + 3_600_000,
    tries: 9,
  },
});

/** How the world can be, by name. */
export const SCRIPTS: Readonly<Record<string, Script>> = {
  quiet: { status: statusOf(LIBRARY, REST), samples: hourOf(4), recents: EVENTS, item, why: WHY },
  new: { status: statusOf([folder('inbox')]) },
  busy: {
    status: statusOf(
      [
        folder('notes', { pending: 12, accepted: 40, confirmed: 2_318 }),
        folder('papers', { pending: 1_152, accepted: 312, confirmed: 18_442 }),
      ],
      {
        ...REST,
        figures: {
          timeToSearch: [timeToSearch('notes', 1, 52), timeToSearch('papers', 2.4, 1_464)],
          confirmedPerSecond: 38.2,
          alerts: [],
        },
        uplink: { inFlight: 120, confirming: 352, timeToVisibleMs: 1_900 },
      },
    ),
    samples: hourOf(38),
    recents: EVENTS,
    item,
  },
  away: {
    status: statusOf(
      [
        folder('notes', { pending: 4, confirmed: 2_318 }),
        folder('papers', { pending: 1_200, confirmed: 18_442 }),
      ],
      {
        ...REST,
        peer: { url: 'https://search.example.org', dialect: 'standard', door: AWAY },
      },
    ),
    samples: hourOf(12),
    recents: [
      ...EVENTS,
      event(
        7,
        3,
        'error',
        'The peer does not answer (https://search.example.org refused the connection); work waits and nothing is lost',
      ),
    ],
    item,
  },
  trouble: {
    status: statusOf(
      [
        folder('notes', { confirmed: 2_318, quarantined: 3 }),
        folder('papers', { confirmed: 18_442, quarantined: 41 }, { passedOver: 12 }),
        folder(
          'usb',
          { confirmed: 88 },
          {
            watch: {
              name: 'usb',
              state: 'held',
              since: NOW - 5 * MIN,
              trouble: {
                code: 'ROOT_MISSING',
                message: 'Its directory /srv/library/usb is not there.',
                hint: 'Mount it again, or create it; nothing is concluded from its absence.',
              },
              directoriesWatched: 0,
              settling: 0,
            },
          },
        ),
      ],
      {
        ...REST,
        figures: {
          timeToSearch: TIMES,
          confirmedPerSecond: 0,
          alerts: [
            {
              code: 'TIME_TO_SEARCH',
              collection: 'papers',
              message: 'Files of papers take longer than the promised 10 s: p95 of the last hour is 11.8 s',
              hint: 'Look at the latency of the peer, or raise alerts.timeToSearch',
              since: NOW - 20 * MIN,
            },
          ],
        },
        mirrors: [
          mirror('prices', {
            alarm: {
              code: 'TABLE_EMPTY',
              message: 'The table prices has no rows any more; it had 1,204.',
              hint: 'Look at it in the peer; `mirror accept prices` takes it as it is.',
              since: NOW - 30 * MIN,
            },
          }),
          mirror('stock', {
            conflicts: [
              { pk: '12', column: 'amount', file: 'tables/stock.conflict.csv', at: NOW - MIN },
              { pk: '19', column: 'place', file: 'tables/stock.conflict.csv', at: NOW - MIN },
            ],
          }),
          mirror('authors', {
            rows: 88,
            bytes: 6_120,
            failure: {
              code: 'PEER_FAILED',
              message: 'The peer answered with the status 500.',
              hint: 'It is tried again by itself.',
              since: NOW - 2 * MIN,
            },
            failures: 2,
          }),
        ],
        quarantined: [{ file: 'papers/a.pdf', code: 'X', message: 'The peer refused it.' }],
        problems: [
          {
            folder: 'papers',
            path: '/srv/library/papers/private',
            trouble: {
              code: 'EACCES',
              message: 'The directory cannot be read: permission denied.',
              hint: 'Give peersync the right to read it, or ignore it.',
            },
            since: NOW - 9 * MIN,
          },
        ],
        repairs: ['The last line of the journal was torn, as after a power cut; it was left out'],
      },
    ),
    samples: hourOf(6),
    recents: EVENTS,
    item,
  },
  paused: {
    status: statusOf([folder('notes', { pending: 34, confirmed: 2_318 })], {
      ...REST,
      peer: {
        url: 'http://127.0.0.1:8090',
        dialect: 'yacy',
        door: door({ paused: { since: NOW - MIN, until: NOW + 59 * MIN } }),
      },
    }),
    samples: hourOf(2),
    recents: EVENTS,
    item,
  },
};

/** As large as it gets: a million items, 200 folders, 2,000 mirrors. */
export function hugeStatus(step = 0): StatusReport {
  const folders = Array.from({ length: 200 }, (_, i) =>
    folder(`archive-${String(i).padStart(3, '0')}`, {
      confirmed: 4_000 + ((step * 7) % 50),
      pending: 990 + ((step + i) % 10),
      quarantined: 10,
    }),
  );
  const mirrors = Array.from({ length: 2_000 }, (_, i) =>
    mirror(`table-${String(i).padStart(4, '0')}`, {
      nextAt: NOW + i * 1_000,
      ...(i % 100 === 3
        ? { alarm: { code: 'X', message: 'It is empty.', hint: 'Look at it.', since: NOW } }
        : {}),
    }),
  );
  return statusOf(folders, {
    ...REST,
    mirrors,
    figures: { ...REST.figures, confirmedPerSecond: 812 + step },
  });
}

export function scriptOf(name: string): Script {
  const script = SCRIPTS[name];
  if (script === undefined) throw new Error(`there is no script ${name}`);
  return script;
}
