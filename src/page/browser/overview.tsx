import { useRef } from 'preact/hooks';
import { amountText as amount, numberText as count, counted } from '../../lib/text.js';
import { durationText } from '../../lib/units.js';
import type { Percentiles, TimeToSearch } from '../../report/statistics.js';
import type { StatusReport } from '../../report/status-report.js';
import type { Entry } from '../../state/entry.js';
import {
  filesHref,
  Icon,
  Name,
  type Props,
  Prose,
  SectionHead,
  STATUS_WORDS,
  Table,
} from './components.js';
import { duration, readingText, shownConditions } from './words.js';

/** The headline: numbers first, then the gravest condition. */
export function Headline({ model }: Props) {
  const { summary } = model;
  const announced = useRef({ topic: '', text: '' });
  if (summary === undefined) return <h1>Loading the status of peersync…</h1>;
  // A screen reader announces new conditions and sentences, but not numbers that change each
  // second.
  const topic = summary.condition?.text ?? summary.sentence.replaceAll(/[\d,]+/g, '');
  if (announced.current.topic !== topic) {
    const text = `${summary.sentence} ${summary.condition?.text ?? ''}`;
    announced.current = { topic, text };
  }
  return (
    <>
      {/* A number and its noun stay on one line. */}
      <h1>{summary.sentence.replaceAll(/(\d) /g, '$1\u00a0')}</h1>
      <p class="detail">
        {summary.condition && <a href={summary.condition.href}>{summary.condition.about}</a>}{' '}
        <Prose text={summary.detail} />
      </p>
      <p class="unseen" role="status">
        {announced.current.text}
      </p>
    </>
  );
}

/** The note below the count of each status. */
const NOTES: Readonly<Record<Entry['status'], (status: StatusReport) => string>> = {
  pending({ folders, peer, uplink }) {
    if (peer.queue?.circuit.reason !== undefined) return 'waiting for the peer';
    const settling = folders.reduce((sum, { watch }) => sum + (watch?.settling ?? 0), 0);
    if (uplink !== undefined && uplink.inFlight > 0) return `${count(uplink.inFlight)} in flight`;
    const reading = readingText(uplink?.documents);
    if (reading !== '') return reading;
    return settling > 0 ? `${count(settling)} being written` : 'to be pushed';
  },
  accepted: () => 'at the peer, not shown yet',
  confirmed: ({ pace }) => (pace ? `searchable, +${amount(pace.perSecond)}/s` : 'searchable'),
  quarantined: ({ items }) => (items.quarantined > 0 ? 'need a change' : 'nothing stuck'),
  skipped: () => 'kept out of the peer',
  gone: () => 'removed from disk',
  removing: () => 'being removed from the peer',
  removed: () => 'removed from disk and peer',
};

/**
 * The number of files in each status: first the statuses that lead to a document, then the rest.
 */
export function StatusCounts({ model }: Props) {
  const { status } = model;
  const counts = status?.items;
  const countOf = (name: Entry['status']) => (
    <li key={name} class={`status-count s-${name}`} data-empty={counts?.[name] === 0 || undefined}>
      <span class="flow-line line">
        <Icon of={name} />
      </span>
      <a href={filesHref(name)}>
        <span class="number">{counts === undefined ? '–' : count(counts[name])}</span>{' '}
        <span class="label">{STATUS_WORDS[name]}</span>
      </a>
      <span class="note hint">{status && NOTES[name](status)}</span>
    </li>
  );
  const removals = (['removing', 'removed'] as const).filter((name) => (counts?.[name] ?? 0) > 0);
  const rest = ['quarantined', 'skipped', 'gone', ...removals] as const;
  return (
    <>
      <ol class="flow">{(['pending', 'accepted', 'confirmed'] as const).map(countOf)}</ol>
      <ul class="aside">{rest.map(countOf)}</ul>
    </>
  );
}

/** The conditions other than the one in the headline. */
export function Attention({ model }: Props) {
  const [, ...conditions] = model.status ? shownConditions(model.status) : [];
  if (conditions.length === 0) return null;
  return (
    <>
      <h2 id="attention-title">Needs attention</h2>
      <ul>
        {conditions.map(({ key, level, href, about, text }) => (
          <li key={key} class={`line s-${level}`}>
            <Icon of={level === 'bad' ? 'error' : 'warn'} />
            <p>
              <a href={href}>{about}</a> <Prose text={text} />
            </p>
          </li>
        ))}
      </ul>
    </>
  );
}

const SPANS = ['1h', '24h'].flatMap((span) =>
  ['p50', 'p95', 'p99'].map((share) => `${share}, ${span}`),
);

/** The time from the last change of a file until it is searchable, by collection. */
export function TimesToSearch({ model }: Props) {
  const { timeToSearch = [], alerts = [] } = model.status?.figures ?? {};
  const valuesOf = ({ p50Ms, p95Ms, p99Ms }: Percentiles) =>
    [p50Ms, p95Ms, p99Ms].map((ms) => (ms === undefined ? '–' : duration(ms)));
  const cells = ({ collection, oldestSince, waiting, hour, day }: TimeToSearch) => {
    const isLate = alerts.some((late) => late.collection === collection);
    return [
      <div class="wrapped" key="head">
        <span class="name">
          <Name of={collection} />
        </span>
        <span class={isLate ? 'hint s-bad' : 'hint'}>
          {counted(day.count, 'confirmation')} in 24 h
          {oldestSince !== undefined &&
            ` · the oldest waits ${durationText(model.now() - oldestSince)}`}
          {isLate && ' · late'}
        </span>
      </div>,
      count(waiting),
      ...valuesOf(hour),
      ...valuesOf(day),
    ];
  };
  return (
    <>
      <SectionHead id="time-to-search" title="Time to search">
        <p class="hint">from a file at rest to its document confirmed; p95: 95 % took no longer</p>
      </SectionHead>
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
