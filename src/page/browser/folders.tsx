import { numberText as count, counted, escapeInvisible, quoted } from '../../lib/text.js';
import { durationText } from '../../lib/units.js';
import type { FolderReport } from '../../report/status-report.js';
import type { ApproveDeletesRequest, RescanAnswer } from '../api.js';
import {
  ActionButton,
  ConfirmedAction,
  filesHref,
  Icon,
  Legend,
  Name,
  type Props,
  Prose,
  SectionHead,
  STATUS_WORDS,
  Table,
} from './components.js';
import { post } from './model.js';
import { joinSentences, timeAgo } from './words.js';

const COUNTED = ['pending', 'accepted', 'confirmed', 'quarantined', 'skipped'] as const;
/** Explains the colours of the bar that each folder has. */
const LEGEND = Object.fromEntries(
  COUNTED.map((status) => [status, STATUS_WORDS[status].toLowerCase()]),
);
const WATCH_WORDS = {
  scanning: 'scanning',
  watching: 'watching',
  unwatched: 'scanned periodically',
  held: 'held',
  degraded: 'changes found by scans only',
} as const;

/** The folders, with their files by status. */
export function Folders({ model }: Props) {
  const { folders = [], formerFolders = [] } = model.status ?? {};
  const scan = async () => {
    const { scans } = await post<RescanAnswer>('/api/rescan');
    const files = scans.reduce((sum, scanned) => sum + scanned.files, 0);
    return `Scanned ${counted(scans.length, 'folder')}: ${counted(files, 'file')} listed.`;
  };
  const cells = ({ name, path, collection, items: counts, watch, massDeletion }: FolderReport) => {
    const total = COUNTED.reduce((sum, status) => sum + counts[status], 0);
    const scanned = watch?.lastScan && watch.state !== 'scanning';
    return [
      <>
        <div class="wrapped">
          <span class="name">
            <Name of={name} />
          </span>
          <span class={watch?.failure ? 'hint s-warn' : 'hint'}>
            into <Name of={collection} />
            {watch && ` · ${WATCH_WORDS[watch.state]}`}
            {scanned &&
              `, scanned ${timeAgo(watch.lastScan.at, model.now())} in ${durationText(watch.lastScan.durationMs)}`}
          </span>
        </div>
        <span class="path">
          <Name of={path} />
        </span>
        <span class="bar" aria-hidden="true">
          {COUNTED.filter((status) => counts[status] > 0).map((status) => (
            // A part is visible, however small it is.
            <i
              key={status}
              class={`s-${status}`}
              style={{ flexGrow: Math.max(counts[status] / total, 0.012) }}
            />
          ))}
        </span>
      </>,
      ...COUNTED.map((status) => (
        <a
          key={status}
          href={filesHref(status, name)}
          class={counts[status] === 0 ? 'zero' : `s-${status}`}
        >
          {count(counts[status])}
        </a>
      )),
      massDeletion && <RemovedFiles model={model} name={name} deletes={massDeletion} />,
    ];
  };
  return (
    <>
      <SectionHead id="folders" title="Folders">
        {folders.length > 0 && <Legend of={LEGEND} />}
        {folders.length > 0 && (
          <ActionButton model={model} work={scan}>
            Scan all now
          </ActionButton>
        )}
      </SectionHead>
      <Table
        caption="The watched folders, with their files by status"
        what="folder"
        columns={['Folder', ...COUNTED.map((status) => STATUS_WORDS[status])]}
        rows={folders}
        cells={cells}
        keyOf={({ name }) => name}
        empty="No folder is watched. Add one under `folders` in the configuration, and its files become searchable."
      />
      {formerFolders.map(({ hint, message, name }) => (
        <p key={name} class="hint">
          <Prose text={joinSentences(message, hint)} />
        </p>
      ))}
    </>
  );
}

/**
 * The removed files of a folder whose documents stay until a person approves their removal, with
 * the button that approves it.
 */
function RemovedFiles({
  model,
  name,
  deletes,
}: Props & { name: string; deletes: NonNullable<FolderReport['massDeletion']> }) {
  const { examples, files, of } = deletes;
  const documents = counted(files, 'document');
  const more = files > examples.length ? ` and ${count(files - examples.length)} more` : '';
  const text = `${count(files)} of ${count(of)} files were removed or emptied at once: ${examples.map(escapeInvisible).join(', ')}${more}.`;
  const approve = async () => {
    await post('/api/approve-deletes', { folder: name, files } satisfies ApproveDeletesRequest);
    return `${documents} of folder ${quoted(name)} ${files === 1 ? 'is' : 'are'} removed from the peer.`;
  };
  return (
    <ul class="conditions">
      <li class="line s-warn">
        <Icon of="warn" />
        <p>{text} Their documents stay until you approve it, or the files come back.</p>
        <ConfirmedAction
          model={model}
          work={approve}
          text={text}
          short="Remove"
          yes="Remove them"
          label={`Remove ${documents} of folder ${quoted(name)} from the peer`}
          title={`Remove ${documents} of folder ${quoted(name)} from the peer?`}
        />
      </li>
    </ul>
  );
}
