import { useRef } from 'preact/hooks';
import { numberText as count, counted, escapeInvisible, quoted } from '../../lib/text.js';
import { durationText, formatBytes } from '../../lib/units.js';
import type { MirrorFailure, MirrorReport } from '../../mirror/record.js';
import type { Percentiles, TimeToSearch } from '../../report/statistics.js';
import type { FolderReport } from '../../report/status-report.js';
import type { ApproveDeletesRequest, MirrorsAnswer, MirrorsRequest, RescanAnswer } from '../api.js';
import { post } from './model.js';
import {
  Act,
  filesHref,
  Head,
  Icon,
  Legend,
  Name,
  type Props,
  Prose,
  STATUS_WORDS,
  Table,
} from './parts.js';
import { ago, ahead, duration, mirrorConditions, sentences } from './words.js';

const SPANS = ['1h', '24h'].flatMap((span) =>
  ['p50', 'p95', 'p99'].map((share) => `${share}, ${span}`),
);

/** How long it takes until a file at rest is searchable, by collection. */
export function Times({ model }: Props) {
  const { timeToSearch = [], alerts = [] } = model.status?.figures ?? {};
  const valuesOf = ({ p50Ms, p95Ms, p99Ms }: Percentiles) =>
    [p50Ms, p95Ms, p99Ms].map((ms) => (ms === undefined ? '–' : duration(ms)));
  const cells = ({ collection, oldestSince, waiting, hour, day }: TimeToSearch) => {
    const isAlert = alerts.some((alert) => alert.collection === collection);
    return [
      <div class="wrapped" key="head">
        <span class="name">
          <Name of={collection} />
        </span>
        <span class={isAlert ? 'hint s-bad' : 'hint'}>
          {counted(day.count, 'confirmation')} in 24 h
          {oldestSince !== undefined &&
            ` · the oldest waits ${durationText(model.now() - oldestSince)}`}
          {isAlert && ' · alert'}
        </span>
      </div>,
      count(waiting),
      ...valuesOf(hour),
      ...valuesOf(day),
    ];
  };
  return (
    <>
      <Head id="time-to-search" title="Time to search">
        <p class="hint">
          from a file at rest to its document confirmed; p95: 95 % took at most so long
        </p>
      </Head>
      <Table
        caption="Time from a file at rest to its document confirmed, by collection, over one hour and over 24 hours"
        what="collection"
        columns={['Collection', 'Waiting', ...SPANS]}
        rows={timeToSearch}
        cells={cells}
        keyOf={({ collection }) => collection}
        empty="Nothing was confirmed in the last 24 hours, so there is nothing to measure yet."
        pageSize={10}
      />
    </>
  );
}

const COUNTED = ['pending', 'accepted', 'confirmed', 'quarantined', 'skipped'] as const;
/** The bar of a folder has a part for each. */
const LEGEND = Object.fromEntries(
  COUNTED.map((status) => [status, STATUS_WORDS[status].toLowerCase()]),
);
const WATCH_WORDS = {
  scanning: 'scanning',
  watching: 'watching',
  unwatched: 'scanned now and then',
  held: 'held',
  degraded: 'found by scans only',
} as const;

/** The folders, with how far their files came. */
export function Folders({ model }: Props) {
  const { folders = [], formerFolders = [] } = model.status ?? {};
  const scan = async () => {
    const { scans } = await post<RescanAnswer>('/api/rescan');
    const files = scans.reduce((sum, scanned) => sum + scanned.files, 0);
    return `Scanned ${counted(scans.length, 'folder')}: ${counted(files, 'file')} seen.`;
  };
  const cells = ({ name, path, collection, items: counts, watch, heldDeletes }: FolderReport) => {
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
              `, scanned ${ago(watch.lastScan.at, model.now())} in ${durationText(watch.lastScan.durationMs)}`}
          </span>
        </div>
        <span class="path">
          <Name of={path} />
        </span>
        <span class="bar" aria-hidden="true">
          {COUNTED.filter((status) => counts[status] > 0).map((status) => (
            // A part that is there is seen, however small.
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
      heldDeletes && <Held model={model} name={name} held={heldDeletes} />,
    ];
  };
  return (
    <>
      <Head id="folders" title="Folders">
        {folders.length > 0 && <Legend of={LEGEND} />}
        {folders.length > 0 && (
          <Act model={model} work={scan}>
            Scan all now
          </Act>
        )}
      </Head>
      <Table
        caption="The watched folders, with their files by status"
        what="folder"
        columns={['Folder', ...COUNTED.map((status) => STATUS_WORDS[status])]}
        rows={folders}
        cells={cells}
        keyOf={({ name }) => name}
        empty="No folder is watched. Name one under `folders` in the configuration, and its files become searchable."
      />
      {formerFolders.map(({ hint, message, name }) => (
        <p key={name} class="hint">
          <Prose text={sentences(message, hint)} />
        </p>
      ))}
    </>
  );
}

/** The mirrors: files that follow something in the peer. Those in trouble come first. */
export function Mirrors({ model }: Props) {
  const { mirrors = [], mirrorRoot = '' } = model.status ?? {};
  const run = async () => {
    const answer = await post<MirrorsAnswer>('/api/mirrors/run');
    const changed = answer.mirrors.filter((mirror) => mirror.changed === true).length;
    return `Asked for ${counted(answer.mirrors.length, 'mirror')}: ${changed === 0 ? 'nothing changed' : `${count(changed)} changed`}.`;
  };
  const cells = (mirror: MirrorReport) => {
    const { name, kind, path, alarm, rows, bytes, nextAt, running, succeededAt, changedAt } =
      mirror;
    const troubles = mirrorConditions(mirror, mirrorRoot);
    const times = [succeededAt, changedAt].map((at) =>
      at === undefined ? 'never' : ago(at, model.now()),
    );
    return [
      <>
        <div class="wrapped">
          <span class="name">
            <Name of={name} />
          </span>
          <span class="hint">{kind}</span>
        </div>
        <span class="path">
          <Name of={path} />
        </span>
      </>,
      ...times,
      rows === undefined ? '–' : count(rows),
      bytes === undefined ? '–' : formatBytes(bytes),
      running ? 'running' : nextAt === undefined ? '–' : ahead(nextAt, model.now()),
      troubles.length > 0 && (
        <ul class="troubles">
          {troubles.map(({ level, text }) => (
            <li key={text} class={`line s-${level}`}>
              <Icon of={level === 'bad' ? 'error' : level} />
              <p>
                <Prose text={text} />
              </p>
              {level === 'bad' && alarm && (
                <Accept model={model} name={name} path={path} alarm={alarm} />
              )}
            </li>
          ))}
        </ul>
      ),
    ];
  };
  return (
    <>
      <Head id="mirrors" title="Mirrors">
        {mirrors.length > 0 && (
          <Act model={model} work={run}>
            Update all now
          </Act>
        )}
      </Head>
      <Table
        caption="Mirrored files, with when they were last brought up to date and last changed"
        what="mirror"
        columns={['Mirror', 'Up to date', 'Changed', 'Rows', 'Size', 'Next']}
        rows={mirrors.toSorted((a, b) => gravity(b) - gravity(a))}
        cells={cells}
        keyOf={({ name }) => name}
        empty="Nothing is mirrored. Tables and shared objects of the peer become files here when `mirror` in the configuration names them."
      />
    </>
  );
}

function gravity({ alarm, failure, conflicts = [] }: MirrorReport): number {
  return alarm ? 3 : conflicts.length > 0 ? 2 : failure ? 1 : 0;
}

interface AcceptProps extends Props {
  readonly name: string;
  readonly path: string;
  readonly alarm: MirrorFailure;
}

function Accept({ model, name, path, alarm }: AcceptProps) {
  const accept = async () => {
    const { mirrors } = await post<MirrorsAnswer>('/api/mirrors/accept', {
      names: [name],
    } satisfies MirrorsRequest);
    const isRemoved = mirrors.some(
      ({ absentSince, isOver }) => absentSince !== undefined || isOver,
    );
    return isRemoved
      ? `${escapeInvisible(path)} was removed, until the peer has it again.`
      : `${escapeInvisible(name)} follows the peer again.`;
  };
  return (
    <Asking
      model={model}
      work={accept}
      short="Accept"
      label={`Accept what the peer has of ${escapeInvisible(name)}`}
      title={`Take what the peer has of ${escapeInvisible(name)}?`}
      // The file stays as it was only until somebody accepts.
      text={`${alarm.message.replace(/; the file stays as it was(?=\.)/, '')} ${alarm.hint}`}
      yes="Accept it"
    />
  );
}

/**
 * Very many removed files of a folder, and the button that lets their documents be removed, too.
 */
function Held({
  model,
  name,
  held,
}: Props & { name: string; held: NonNullable<FolderReport['heldDeletes']> }) {
  const { examples, files, of } = held;
  const documents = counted(files, 'document');
  const more = files > examples.length ? ` and ${count(files - examples.length)} more` : '';
  const text = `${count(files)} of ${count(of)} files were removed or emptied at once: ${examples.map(escapeInvisible).join(', ')}${more}.`;
  const approve = async () => {
    await post('/api/approve-deletes', { folder: name, files } satisfies ApproveDeletesRequest);
    return `${documents} of folder ${quoted(name)} ${files === 1 ? 'is' : 'are'} removed from the peer.`;
  };
  return (
    <ul class="troubles">
      <li class="line s-warn">
        <Icon of="warn" />
        <p>{text} Their documents stay until you approve it, or the files come back.</p>
        <Asking
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

interface AskingProps extends Props {
  /** What the button is called, and for those who do not see where it stands. */
  readonly short: string;
  readonly label: string;
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly work: () => Promise<string>;
}

/** Asks before what cannot be taken back. */
function Asking({ model, short, label, title, text, yes, work }: AskingProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const meant = () => {
    dialog.current?.close();
    return work();
  };
  return (
    <>
      <button
        type="button"
        class="small"
        aria-label={label}
        onClick={() => dialog.current?.showModal()}
      >
        {short}…
      </button>
      <dialog ref={dialog} aria-label={title}>
        <h2>{title}</h2>
        <p>
          <Prose text={text} />
        </p>
        <div class="row">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <Act model={model} work={meant} class="primary">
            {yes}
          </Act>
        </div>
      </dialog>
    </>
  );
}
