import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { amountText as amount, numberText as count } from '../../lib/text.js';
import type { Sample } from '../../report/statistics.js';
import { Legend, type Props } from './components.js';
import type { Model } from './model.js';
import { confirmedInHour, duration, timeOfDay, waitingOf } from './words.js';

const HOUR_MS = 3_600_000;
const SHORTEST_MS = 600_000;
const SLOT_S = 10;
const HEIGHT = 132;
/** Number of values in an hour with gaps below which a series is drawn as points. */
const SPARSE = 60;

interface Chart {
  readonly title: string;
  readonly lines: readonly {
    readonly token: string;
    /** Name in the legend, if the chart has several lines. */
    readonly name?: string;
    readonly fill?: boolean;
    readonly dash?: number[];
    readonly value: (sample: Sample) => number | null;
  }[];
  /** Formats a value of the axis. */
  unit(value: number): string;
  /** Returns the current value as text. */
  now(model: Model): string;
  /** Returns the value of a sample as text. */
  at(sample: Sample): string;
}

const CHARTS: readonly Chart[] = [
  {
    title: 'Confirmed',
    lines: [{ token: '--confirmed', fill: true, value: ({ confirmed }) => confirmed / SLOT_S }],
    unit: (value) => `${amount(value)}/s`,
    now: ({ status }) => `${count(status ? confirmedInHour(status) : 0)} in the hour`,
    at: ({ confirmed }) => `${amount(confirmed / SLOT_S)} a second`,
  },
  {
    title: 'Backlog',
    lines: [{ token: '--pending', fill: true, value: ({ waiting }) => waiting }],
    unit: (value) =>
      Number.isInteger(value) ? (value < 10_000 ? count(value) : `${amount(value / 1_000)}k`) : '',
    now: ({ status }) => `${count(status ? waitingOf(status) : 0)} now`,
    at: ({ waiting }) => `${count(waiting)} waited`,
  },
  {
    title: 'Time to search',
    lines: [
      {
        token: '--accepted',
        name: 'p50',
        value: ({ p50Ms }) => (p50Ms === undefined ? null : p50Ms / 1_000),
      },
      {
        token: '--soft',
        name: 'p95',
        dash: [4, 3],
        value: ({ p95Ms }) => (p95Ms === undefined ? null : p95Ms / 1_000),
      },
    ],
    unit: (value) => (value < 60 ? `${amount(value)}s` : duration(value * 1_000)),
    // The percentiles of the latest 10 s with a confirmation. The table below has those of the
    // hour.
    now(model) {
      const last = model.samples.findLast(({ p50Ms }) => p50Ms !== undefined);
      if (last === undefined) return 'no data yet';
      return `last at ${timeOfDay(last.at, model.now())}: ${percentiles(last)}`;
    },
    at: percentiles,
  },
];

function percentiles(sample: Sample): string {
  if (sample.p50Ms === undefined) return 'nothing confirmed';
  return `p50 ${duration(sample.p50Ms)}, p95 ${duration(sample.p95Ms ?? sample.p50Ms)}`;
}

/** Three charts of the last hour with the same time axis. */
export function Charts({ model }: Props) {
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    // A canvas does not follow the colours of the page by itself.
    const redraw = () => setTheme((n) => n + 1);
    new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ['style'] });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  }, []);
  return (
    <>
      {CHARTS.map((chart) => (
        <ChartView key={`${chart.title} ${theme}`} chart={chart} model={model} />
      ))}
    </>
  );
}

function ChartView({ chart, model }: Props & { readonly chart: Chart }) {
  const { samples } = model;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [index, setIndex] = useState<number | null>();
  const data = (): uPlot.AlignedData => [
    samples.map(({ at }) => at / 1_000),
    ...chart.lines.map(({ value }) => samples.map(value)),
  ];
  useEffect(() => {
    if (place.current === null) return;
    const made = plotOf(chart, model, place.current, setIndex);
    plot.current = made;
    const observer = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width > 80)
        made.setSize({ width: entry.contentRect.width, height: HEIGHT });
    });
    observer.observe(place.current);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data()), [samples]);
  const now = chart.now(model);
  const names = chart.lines.flatMap(({ name, token }) =>
    name ? [[token.slice(2), name] as const] : [],
  );
  const pointed = typeof index === 'number' ? samples[index] : undefined;
  const highest = Math.max(0, ...samples.map((sample) => chart.lines[0]?.value(sample) ?? 0));
  return (
    <figure>
      <figcaption>
        <span class="wrapped">
          {chart.title}
          {names.length > 0 && <Legend of={Object.fromEntries(names)} />}
        </span>
        <span class="readout hint">
          {pointed ? `${timeOfDay(pointed.at, model.now())} ${chart.at(pointed)}` : now}
        </span>
      </figcaption>
      {/* The label describes the drawing for screen readers. */}
      <div
        class="plot"
        role="img"
        aria-label={`${chart.title} over the last hour: ${now}, at most ${chart.unit(highest)}`}
      >
        <div ref={place} aria-hidden="true" />
      </div>
    </figure>
  );
}

function plotOf(
  { lines, unit }: Chart,
  model: Model,
  place: HTMLElement,
  point: (index?: number | null) => void,
) {
  const style = getComputedStyle(place);
  const colourOf = (token: string, opacity = 1) => {
    place.style.color = `var(${token})`;
    return style.color.replace('rgb(', 'rgba(').replace(')', `, ${opacity})`);
  };
  const font = `11px ${style.getPropertyValue('--sans')}`;
  const grid = { stroke: colourOf('--line'), width: 1 };
  const axis = { stroke: colourOf('--soft'), font, grid, ticks: { show: false } };
  // A daemon that started a moment ago does not show an empty hour.
  const range = (): [number, number] => {
    const [now, first] = [model.now(), model.samples[0]?.at ?? model.now()];
    return [Math.max(now - HOUR_MS, Math.min(first, now - SHORTEST_MS)) / 1_000, now / 1_000];
  };
  // A few values with gaps between them are drawn as points instead of a line.
  const isSparse = (plot: uPlot, series: number) => {
    const values = plot.data[series] ?? [];
    const known = values.filter((value) => value !== null && value !== undefined).length;
    return known < values.length && known < SPARSE;
  };
  const series = lines.map(({ token, fill, dash }) => ({
    stroke: colourOf(token),
    width: 1.75,
    points: { show: isSparse, size: 4, fill: colourOf(token) },
    ...(fill ? { fill: colourOf(token, 0.15) } : {}),
    ...(dash ? { dash } : {}),
  }));
  const times = (_: uPlot, splits: number[]) =>
    splits.map((at) => timeOfDay(at * 1_000, model.now()));
  return new uPlot(
    {
      width: Math.max(80, place.clientWidth),
      height: HEIGHT,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: {
        sync: { key: 'hour' },
        drag: { x: false, y: false },
        points: { size: 6 },
        y: false,
      },
      // The scale ends above the highest value. Without values it ends at 1.
      scales: { x: { range }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.12 : 1] } },
      axes: [
        { ...axis, size: 26, space: 70, grid: { show: false }, values: times },
        { ...axis, size: 46, space: 32, values: (_, splits) => splits.map(unit) },
      ],
      series: [{}, ...series],
      hooks: { setCursor: [({ cursor }) => point(cursor.idx)] },
    },
    [[], ...lines.map(() => [])],
    place,
  );
}
