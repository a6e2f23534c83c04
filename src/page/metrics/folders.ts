import type { FolderStatus } from '../../watch/watcher.js';
import { type Metric, type Observed, oneOf, type Value } from './metric.js';

const FOLDER_STATES = ['scanning', 'watching', 'unwatched', 'held', 'degraded', 'stopped'];

/** What is watched. */
export const FOLDER_METRICS: readonly Metric[] = [
  {
    name: 'peersync_folder_state',
    type: 'gauge',
    help: 'Which state the watch of a folder is in: held is a missing root, degraded a limit of the system, so that only scans find changes.',
    labels: ['folder', 'state'],
    *read({ status }) {
      for (const { name: folder, watch } of status.folders) {
        if (watch !== undefined) yield* oneOf('state', FOLDER_STATES, watch.state, { folder });
      }
    },
  },
  {
    name: 'peersync_folder_last_scan_timestamp_seconds',
    type: 'gauge',
    help: 'When the last scan of a folder ended, as Unix time.',
    labels: ['folder'],
    read: (observed) => byFolder(observed, ({ lastScan }) => lastScan && lastScan.at / 1000),
  },
  {
    name: 'peersync_folder_last_scan_duration_seconds',
    type: 'gauge',
    help: 'How long the last scan of a folder took.',
    labels: ['folder'],
    read: (observed) => byFolder(observed, ({ lastScan }) => lastScan && lastScan.durationMs / 1000),
  },
  {
    name: 'peersync_folder_last_scan_files',
    type: 'gauge',
    help: 'How many files the last scan of a folder met.',
    labels: ['folder'],
    read: (observed) => byFolder(observed, ({ lastScan }) => lastScan?.files),
  },
  {
    name: 'peersync_folder_directories_watched',
    type: 'gauge',
    help: 'Directories that the system tells of changes in.',
    labels: ['folder'],
    read: (observed) => byFolder(observed, ({ directoriesWatched }) => directoriesWatched),
  },
  {
    name: 'peersync_folder_settling_files',
    type: 'gauge',
    help: 'Files that were written a moment ago and are waited for.',
    labels: ['folder'],
    read: (observed) => byFolder(observed, ({ settling }) => settling),
  },
  {
    name: 'peersync_folder_problems',
    type: 'gauge',
    help: 'Paths that could not be looked at.',
    labels: ['folder'],
    *read({ status }) {
      const counts = new Map(status.folders.map(({ name }) => [name, 0]));
      for (const { folder } of status.problems) counts.set(folder, (counts.get(folder) ?? 0) + 1);
      for (const [folder, value] of counts) yield { labels: { folder }, value };
    },
  },
];

function* byFolder({ status }: Observed, of: (watch: FolderStatus) => number | undefined): Generator<Value> {
  for (const { name: folder, watch } of status.folders) {
    const value = watch === undefined ? undefined : of(watch);
    if (value !== undefined) yield { labels: { folder }, value };
  }
}
