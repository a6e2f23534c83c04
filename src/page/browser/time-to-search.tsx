import { numberText as count, counted } from '../../lib/text.js';
import { durationText } from '../../lib/units.js';
import type { Percentiles, TimeToSearch } from '../../report/statistics.js';
import { Name, type Props, SectionHead, Table } from './components.js';
import { duration } from './words.js';

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
