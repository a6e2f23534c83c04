import type { StatusReport } from '../../src/report/status-report.js';
import type { WhyReport } from '../../src/report/why.js';
import {
  event,
  failure,
  folder,
  hourOf,
  item,
  MIN,
  mirror,
  NOW,
  queue,
  statusOf,
  timeToSearch,
  WATCHED,
  worker,
} from './reports.js';
import type { Script } from './stand-in.js';

const EVENTS = [
  event(
    1,
    52,
    'info',
    'watching /srv/library/notes: text files there go into the collection "notes"',
  ),
  event(2, 51, 'info', 'confirmed notes/2026/garden-plan.md (2s after its push)'),
  event(3, 40, 'info', 'The mirror prices was brought up to date: 1,204 rows, 3 changed'),
  event(
    4,
    31,
    'warn',
    'papers/scans/0412.pdf was skipped: it is larger than folders[].maxFileSize',
  ),
  event(5, 12, 'info', '2,140 files of papers became searchable in the last 10 minutes'),
  event(6, 2, 'info', 'confirmed notes/meeting-2026-11-20.md (2s after its push)'),
];

const LIBRARY = [
  folder('notes', { confirmed: 2_318, gone: 14, skipped: 3 }),
  folder('papers', { confirmed: 18_442, gone: 120, skipped: 41 }),
  folder('letters', { confirmed: 961 }),
];
const MIRRORS = [
  mirror('prices'),
  mirror('authors', { rows: 88, bytes: 6_120 }),
  mirror('feed', {
    kind: 'share',
    path: 'share/feed.xml',
    bytes: 2_410_233,
    changedAt: NOW - 4 * MIN,
  }),
];
const TIMES = [timeToSearch('letters', 0.8), timeToSearch('notes', 1), timeToSearch('papers', 2.4)];
const REST = {
  figures: { timeToSearch: TIMES, confirmedPerSecond: 0, lastConfirmedAt: undefined, alerts: [] },
  mirrors: MIRRORS,
};

const SHA256 = 'c957c0e6f0529f8d58990c77d8706a5bd44291b72a1fdd4ab802b8468006cfe0';
const PATH = '2021/minutes-0002.md';
const WHY: WhyReport = {
  file: `/srv/library/papers/${PATH}`,
  folder: 'papers',
  path: PATH,
  collection: 'papers',
  status: 'confirmed',
  since: NOW - 44 * MIN,
  url: `https://files.example.org/papers/${PATH}`,
  rule: 'Folder "papers" takes it: collection "papers".',
  version: { size: 18_204, mtimeMs: NOW - 46 * MIN, sha256: SHA256 },
  evidence: { kind: 'digest', at: NOW - 44 * MIN, shown: `sha256 ${SHA256}` },
  history: [
    { status: 'pending', at: NOW - 45 * MIN, note: 'new file' },
    { status: 'accepted', at: NOW - 44.6 * MIN },
    { status: 'confirmed', at: NOW - 44 * MIN, note: `digest sha256 ${SHA256.slice(0, 16)}…` },
  ],
  next: 'Nothing, until the file changes.',
};

const REFUSED = 'https://search.example.org/api/push_p.html refused the connection';
const CHECK = 'Look whether the peer runs, and whether peer.url is right.';
const AWAY = queue({
  circuit: {
    state: 'open',
    since: NOW - 3.2 * MIN,
    nextProbeAt: NOW + 60 * MIN,
    tries: 9,
    reason: { kind: 'unreachable', code: 'ECONNREFUSED', message: REFUSED, hint: CHECK },
    held: ['confirm', 'push', 'removal', 'mirror', 'audit'],
  },
});

const ROOT_GONE = failure(
  'ROOT_MISSING',
  'Its directory /srv/library/usb is not there.',
  'Mount it again, or create it; nothing counts as removed because of that.',
);
const LATE = failure(
  'TIME_TO_SEARCH',
  'Files of papers take longer than the promised 10 s: p95 of the last hour is 11.8 s',
  'Look at the latency of the peer, or raise alerts.timeToSearch',
  20,
);
const EMPTIED = failure(
  'TABLE_EMPTY',
  'The table prices has no rows any more; it had 1,204.',
  'Look at it in the peer; `mirror accept prices` takes it as it is.',
);
const UNREADABLE = failure(
  'EACCES',
  'The directory cannot be read: permission denied.',
  'Give peersync the right to read it, or ignore it.',
);
const FAILED = failure(
  'PEER_FAILED',
  'The peer answered with the status 500.',
  'It is tried again by itself.',
  2,
);
const CONFLICT = { file: 'tables/stock.csv.conflict-20261126T213517Z', at: NOW - MIN };
const peer = { url: 'https://search.example.org', dialect: 'standard' } as const;

const REMOVED = {
  files: 2_000,
  of: 2_321,
  since: NOW - 5 * MIN,
  before: NOW,
  examples: ['2019/january.md', '2019/february.md', '2019/march.md'],
};

/** Scripts of stand-ins, by name. */
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
          ...REST.figures,
          confirmedPerSecond: 38.2,
          timeToSearch: [timeToSearch('notes', 1, 52), timeToSearch('papers', 2.4, 1_464)],
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
      { ...REST, peer: { ...peer, queue: AWAY } },
    ),
    samples: hourOf(12),
    recents: [
      ...EVENTS,
      event(7, 3, 'error', `The peer does not answer: ${REFUSED}; work waits and nothing is lost`),
    ],
    item,
  },
  conditions: {
    status: statusOf(
      [
        folder('notes', { confirmed: 318, quarantined: 3, gone: 2_000 }, { massDeletion: REMOVED }),
        folder('papers', { confirmed: 18_442, quarantined: 41, skipped: 12 }),
        folder(
          'usb',
          { confirmed: 88 },
          { watch: { ...WATCHED, name: 'usb', state: 'held', failure: ROOT_GONE } },
        ),
      ],
      {
        ...REST,
        figures: {
          ...REST.figures,
          alerts: [{ ...LATE, code: 'TIME_TO_SEARCH', collection: 'papers' }],
        },
        mirrorRoot: '/home/librarian/peersync/data/mirror',
        mirrors: [
          mirror('prices', { condition: EMPTIED }),
          mirror('stock', {
            conflicts: [
              { pk: '12', column: 'amount', ...CONFLICT },
              { pk: '19', column: 'place', ...CONFLICT },
            ],
          }),
          mirror('authors', { rows: 88, bytes: 6_120, failure: FAILED, failures: 2 }),
        ],
        quarantined: [{ file: 'papers/a.pdf', code: 'X', message: 'The peer refused it.' }],
        problems: [
          {
            folder: 'papers',
            path: '/srv/library/papers/private',
            failure: UNREADABLE,
            since: NOW,
          },
        ],
        repairs: ['The last line of the journal was torn, as after a power cut; it was left out'],
      },
    ),
    samples: hourOf(6),
    recents: EVENTS,
    item,
  },
  leaving: {
    status: statusOf(
      [
        folder('notes', {
          pending: 1_204_311,
          accepted: 40_312,
          confirmed: 12_345_678,
          quarantined: 12_345,
        }),
        folder('papers', { skipped: 120_345, gone: 120_345, removing: 10_240, removed: 1_204_311 }),
      ],
      { ...REST, figures: { ...REST.figures, confirmedPerSecond: 812 } },
    ),
    samples: hourOf(812),
    recents: EVENTS,
    item,
  },
  workers: {
    status: statusOf([folder('papers', { pending: 8_204, confirmed: 18_442 })], {
      ...REST,
      figures: { ...REST.figures, confirmedPerSecond: 6.2 },
      fleet: {
        address: 'redis://10.0.0.5:6379',
        prefix: 'peersync',
        build: '1.2.3 abc',
        redis: 'there',
        waiting: 12,
        oldestSince: NOW - 9_000,
        active: 11,
        workers: [
          worker('reader-1', { active: 8, perSecond: 4.25, done: 120_441 }),
          worker('reader-2', { active: 3, slots: 4, failed: 2 }),
          worker('reader-3', {
            build: '1.2.2 def',
            version: '1.2.2',
            idle: { reason: 'build' },
            perSecond: undefined,
          }),
          worker('reader-4.building-7.example.org', {
            idle: { reason: 'folders', folders: ['papers'] },
            perSecond: 0,
          }),
        ],
        lost: [{ id: 'w5', host: 'reader-5', seenAt: NOW - 2 * MIN }],
      },
    }),
    samples: hourOf(6),
    recents: EVENTS,
    item,
  },
  paused: {
    status: statusOf([folder('notes', { pending: 34, confirmed: 2_318 })], {
      ...REST,
      peer: { ...peer, queue: queue({ paused: { since: NOW - MIN, until: NOW + 59 * MIN } }) },
    }),
    samples: hourOf(2),
    recents: EVENTS,
    item,
  },
};

/** Returns the largest status: a million items, 200 folders, 2,000 mirrors. */
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
      ...(i % 100 === 3 ? { condition: failure('X', 'It is empty.', 'Look at it.') } : {}),
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
