import { VERSION } from '../../lib/version.js';
import { type Metric, yesOrNo } from './metric.js';

/** What is remembered on disk, and the process itself. */
export const STATE_METRICS: readonly Metric[] = [
  {
    name: 'peersync_state_records',
    type: 'gauge',
    help: 'Files that are remembered.',
    read: ({ state }) => state.records,
  },
  {
    name: 'peersync_state_journal_bytes',
    type: 'gauge',
    help: 'Size of the changes since the last snapshot.',
    read: ({ state }) => state.journalBytes,
  },
  {
    name: 'peersync_state_snapshot_bytes',
    type: 'gauge',
    help: 'Size of the last snapshot.',
    read: ({ state }) => state.snapshotBytes,
  },
  {
    name: 'peersync_state_unsaved_changes',
    type: 'gauge',
    help: 'Changes that are not on disk yet; nothing acts on them.',
    read: ({ state }) => state.unsaved,
  },
  {
    name: 'peersync_state_compactions_total',
    type: 'counter',
    help: 'How often changes and snapshot were made one new snapshot.',
    read: ({ state }) => state.compactions,
  },
  {
    name: 'peersync_state_sync_seconds',
    type: 'histogram',
    help: 'How long the disk took to make changes durable (fdatasync).',
    read: ({ state }) => state.syncs,
  },
  {
    name: 'peersync_state_writable',
    type: 'gauge',
    help: 'Whether the last changes could be written: 0 while the disk is full or fails.',
    read: ({ state }) => yesOrNo(state.failure === undefined),
  },
  {
    name: 'peersync_state_repairs',
    type: 'gauge',
    help: 'Damages that were found and mended when the state was read at the start.',
    read: ({ status }) => status.repairs.length,
  },
  {
    name: 'peersync_config_last_reload_successful',
    type: 'gauge',
    help: 'Whether the configuration file was taken up when it was last read: 0 while a changed one is refused, and the one before holds.',
    read: ({ status }) => status.configuration && yesOrNo(status.configuration.refused === undefined),
  },
  {
    name: 'peersync_config_last_reload_success_timestamp_seconds',
    type: 'gauge',
    help: 'When the configuration file was last taken up, by a start or a reload, as Unix time.',
    read: ({ status }) => status.configuration && status.configuration.takenUpAt / 1000,
  },
  {
    name: 'peersync_page_followers',
    type: 'gauge',
    help: 'Browsers that follow the status page.',
    read: ({ followers }) => followers,
  },
  {
    name: 'peersync_build_info',
    type: 'gauge',
    help: 'Always 1; the labels say what runs.',
    labels: ['version', 'commit', 'node'],
    read: ({ build }) => [
      { labels: { version: VERSION, commit: build.commit ?? '', node: process.versions.node }, value: 1 },
    ],
  },
];
