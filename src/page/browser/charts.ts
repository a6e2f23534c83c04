import type { Sample } from '../../report/statistics.js';
import { byId, h, text } from './dom.js';
import type { Model } from './model.js';
import uPlot from './uPlot.esm.js';
import { amount, count, duration, hour } from './words.js';
import { waitingOf } from './world.js';

const HOUR_MS = 3_600_000;
const SHORTEST_MS = 600_000;
const SLOT_S = 10;
const HEIGHT = 132;
const FILL_OPACITY = 0.15;
/** So many values in an hour with gaps are no line. */
const SPARSE = 60;

interface Line {
  readonly token: string;
  readonly fill?: boolean;
  readonly dash?: readonly number[];
  value(sample: Sample): number | null;
}

interface Chart {
  readonly title: string;
  readonly lines: readonly Line[];
  unit(value: number): string;
  /** The readout beside the title: of the sample that is pointed at, or of the last hour. */
  readout(samples: readonly Sample[], waiting: number): string;
  at(sample: Sample): string;
  /** What a person who does not see the chart is told. */
  told(samples: readonly Sample[]): string;
}

const CHARTS: readonly Chart[] = [
  {
    title: 'Confirmed',
    lines: [{ token: '--confirmed', fill: true, value: ({ confirmed }) => confirmed / SLOT_S }],
    unit: (value) => `${amount(value)}/s`,
    readout: (samples) => `${count(sum(samples, ({ confirmed }) => confirmed))} in the hour`,
    at: ({ confirmed }) => `${amount(confirmed / SLOT_S)} a second`,
    told: (samples) =>
      `Documents confirmed over the last hour: ${count(sum(samples, ({ confirmed }) => confirmed))}, at most ${amount(most(samples, ({ confirmed }) => confirmed / SLOT_S))} a second.`,
  },
  {
    title: 'Backlog',
    lines: [{ token: '--pending', fill: true, value: ({ waiting }) => waiting }],
    unit: (value) => short(value),
    readout: (_, waiting) => `${count(waiting)} now`,
    at: ({ waiting }) => `${count(waiting)} waited`,
    told: (samples) =>
      `Files that waited over the last hour: ${count(samples.at(-1)?.waiting ?? 0)} now, at most ${count(most(samples, ({ waiting }) => waiting))}.`,
  },
  {
    title: 'Time to search',
    lines: [
      { token: '--accepted', value: ({ p50Ms }) => (p50Ms === undefined ? null : p50Ms / 1000) },
      { token: '--soft', dash: [4, 3], value: ({ p95Ms }) => (p95Ms === undefined ? null : p95Ms / 1000) },
    ],
    unit: (value) => (value < 60 ? `${amount(value)} s` : duration(value * 1000)),
    readout: (samples) => percentiles(samples.findLast(({ p50Ms }) => p50Ms !== undefined)),
    at: (sample) => percentiles(sample),
    told: (samples) => {
      const last = samples.findLast(({ p50Ms }) => p50Ms !== undefined);
      return last === undefined
        ? 'Time to search over the last hour: nothing was confirmed.'
        : `Time to search over the last hour; at the last: ${percentiles(last)}.`;
    },
  },
];

/** What happened over the last hour, as three charts that share their time. */
export function showCharts(model: Model): void {
  const all = CHARTS.map((chart) => new ChartView(chart, model, byId('charts')));
  model.follow(['samples'], () => {
    for (const view of all) view.draw();
  });
  model.follow(['status'], () => {
    for (const view of all) view.read();
  });
  const again = () => {
    for (const view of all) view.make();
  };
  // Colours are the page's, which the canvas does not follow by itself.
  new MutationObserver(again).observe(document.documentElement, { attributeFilter: ['data-theme'] });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
}

class ChartView {
  readonly #chart: Chart;
  readonly #model: Model;
  readonly #plot = h('div.plot', { role: 'img' });
  readonly #readout = h('span.readout');
  #uplot: uPlot | undefined;

  constructor(chart: Chart, model: Model, parent: HTMLElement) {
    this.#chart = chart;
    this.#model = model;
    parent.append(h('figure', h('figcaption', h('span', chart.title), this.#readout), this.#plot));
    new ResizeObserver(() => this.#fit()).observe(this.#plot);
  }

  make(): void {
    this.#uplot?.destroy();
    const font = `11px ${getComputedStyle(this.#plot).getPropertyValue('--sans')}`;
    const grid = { stroke: this.#colour('--line'), width: 1 };
    const axis = { stroke: this.#colour('--soft'), font, grid, ticks: { show: false } };
    const { lines, unit } = this.#chart;
    this.#uplot = new uPlot(
      {
        width: Math.max(80, this.#plot.clientWidth),
        height: HEIGHT,
        padding: [8, 16, 0, 0],
        legend: { show: false },
        cursor: { sync: { key: 'hour' }, drag: { x: false, y: false }, points: { size: 6 }, y: false },
        scales: { x: { range: () => this.#hour() }, y: { range: (_, __, max) => [0, topOf(max)] } },
        axes: [
          {
            ...axis,
            size: 26,
            space: 70,
            grid: { show: false },
            values: (_, splits) => splits.map((at) => hour(at * 1000, this.#model.now())),
          },
          { ...axis, size: 46, space: 32, values: (_, splits) => splits.map((value) => unit(value)) },
        ],
        series: [
          {},
          ...lines.map(({ token, fill, dash }) => ({
            stroke: this.#colour(token),
            width: 1.75,
            points: { show: isSparse, size: 4, fill: this.#colour(token) },
            ...(fill ? { fill: this.#colour(token, FILL_OPACITY) } : {}),
            ...(dash ? { dash: [...dash] } : {}),
          })),
        ],
        hooks: { setCursor: [(plot) => this.#point(plot.cursor.idx)] },
      },
      this.#data(),
      this.#plot,
    );
    // What it draws is told in words on the element around it.
    this.#uplot.root.setAttribute('aria-hidden', 'true');
    this.#point(null);
  }

  draw(): void {
    if (this.#uplot === undefined) this.make();
    else this.#uplot.setData(this.#data());
    this.read();
    this.#plot.setAttribute('aria-label', this.#chart.told(this.#model.samples));
  }

  /** Says what is pointed at, or how it stands. */
  read(): void {
    this.#point(this.#uplot?.cursor.idx);
  }

  /** A colour of the page as it is now, which a canvas has to be told. */
  #colour(token: string, opacity = 1): string {
    this.#plot.style.color = `var(${token})`;
    const [red, green, blue] = getComputedStyle(this.#plot).color.match(/\d+/g) ?? [];
    this.#plot.style.color = '';
    return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
  }

  #data(): uPlot.AlignedData {
    const { samples } = this.#model;
    return [samples.map(({ at }) => at / 1000), ...this.#chart.lines.map(({ value }) => samples.map(value))];
  }

  #hour(): [number, number] {
    const now = this.#model.now();
    const first = this.#model.samples[0]?.at ?? now;
    // What began a moment ago does not look at an hour of nothing.
    return [Math.max(now - HOUR_MS, Math.min(first, now - SHORTEST_MS)) / 1000, now / 1000];
  }

  #fit(): void {
    const width = this.#plot.clientWidth;
    if (this.#uplot !== undefined && width > 80 && width !== this.#uplot.width)
      this.#uplot.setSize({ width, height: HEIGHT });
  }

  #point(index: number | null | undefined): void {
    const { samples, status } = this.#model;
    const waiting = status === undefined ? 0 : waitingOf(status);
    const sample = index === null || index === undefined ? undefined : samples[index];
    const words =
      sample === undefined
        ? this.#chart.readout(samples, waiting)
        : `${hour(sample.at, this.#model.now())} ${this.#chart.at(sample)}`;
    text(this.#readout, words);
  }
}

function percentiles(sample: Sample | undefined): string {
  if (sample?.p50Ms === undefined) return 'nothing confirmed';
  const p95 = sample.p95Ms === undefined ? '' : `, p95 ${duration(sample.p95Ms)}`;
  return `p50 ${duration(sample.p50Ms)}${p95}`;
}

/** A few values far from each other are no line: they are drawn as points. */
function isSparse(plot: uPlot, series: number): boolean {
  const values = plot.data[series] ?? [];
  const known = values.filter((value) => value !== null && value !== undefined).length;
  return known < values.length && known < SPARSE;
}

/** The scale ends above the highest value, and has a height where there is none. */
function topOf(max: number | null): number {
  return max === null || max <= 0 ? 1 : max * 1.12;
}

function short(value: number): string {
  if (!Number.isInteger(value)) return '';
  return value >= 10_000 ? `${amount(value / 1000)}k` : amount(value);
}

function sum(samples: readonly Sample[], value: (sample: Sample) => number): number {
  return samples.reduce((total, sample) => total + value(sample), 0);
}

function most(samples: readonly Sample[], value: (sample: Sample) => number): number {
  return samples.reduce((highest, sample) => Math.max(highest, value(sample)), 0);
}
