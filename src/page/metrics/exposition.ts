import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type OpenMetricsContentType,
  openMetricsContentType,
  type PrometheusContentType,
  prometheusContentType,
  Registry,
} from 'prom-client';
import type { BucketsReading } from '../../lib/buckets.js';
import type { Clock } from '../../lib/clock.js';
import type { Metric, NumberMetric, Observed } from './metric.js';
import { METRICS } from './table.js';

export interface Exposition {
  readonly type: string;
  readonly text: string;
}

type ContentType = PrometheusContentType | OpenMetricsContentType;

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Of the parts of a histogram. */
  readonly metricName?: string;
}

/** What is told of the process, by the names that dashboards for Node know; `nodejs_eventloop_lag_seconds` reads for those after it. */
const PROCESS_METRICS = [
  'process_cpu_user_seconds_total',
  'process_cpu_system_seconds_total',
  'process_cpu_seconds_total',
  'process_start_time_seconds',
  'process_resident_memory_bytes',
  'process_open_fds',
  'process_max_fds',
  'nodejs_eventloop_lag_seconds',
  'nodejs_eventloop_lag_mean_seconds',
  'nodejs_eventloop_lag_p50_seconds',
  'nodejs_eventloop_lag_p99_seconds',
  'nodejs_eventloop_lag_max_seconds',
  'nodejs_heap_size_total_bytes',
  'nodejs_heap_size_used_bytes',
  'nodejs_external_memory_bytes',
  'nodejs_gc_duration_seconds',
];

/** How long is written without a pause, in ms: thousands of series are not to hold the daemon's work up. */
const SLICE_MS = 3;

/**
 * Writes the metrics down in the format that is asked for.
 *
 * The registry of one scrape is made for it and thrown away: peersync counts where things happen, and only what those
 * counters say is read here. What is told of the process is collected from when this is made.
 */
export class MetricsWriter {
  readonly #process = new Registry();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    collectDefaultMetrics({ register: this.#process });
  }

  async write(observed: Observed, accept: string | undefined): Promise<Exposition> {
    return wantsOpenMetrics(accept)
      ? this.#written(observed, newRegistry<OpenMetricsContentType>(openMetricsContentType))
      : this.#written(observed, newRegistry<PrometheusContentType>(prometheusContentType));
  }

  async #written<T extends ContentType>(observed: Observed, registry: Registry<T>): Promise<Exposition> {
    const clock = this.#clock;
    const texts: string[] = [];
    let sliceBegan = clock.now();
    const writeDown = async (name: string): Promise<void> => {
      texts.push(await registry.getSingleMetricAsString(name));
      if (clock.now() - sliceBegan < SLICE_MS) return;
      await clock.sleep(0);
      sliceBegan = clock.now();
    };
    for (const metric of METRICS) {
      const series = [...(await seriesOf(metric, observed))];
      if (series.length === 0) continue;
      await register(registry, metric, async () => series);
      await writeDown(metric.name);
    }
    for (const name of PROCESS_METRICS) {
      const metric = this.#process.getSingleMetric(name);
      // A counter is given its name in the format of the registry, for good: the original has to keep its own.
      if (metric instanceof Counter) {
        const { help } = await metric.get();
        await register(registry, { name, help, type: 'counter' }, async () => (await metric.get()).values);
      } else if (metric !== undefined) registry.registerMetric(metric);
      else continue;
      await writeDown(name);
    }
    const isOpen = registry.contentType === openMetricsContentType;
    const text = isOpen ? `${texts.join('\n')}\n# EOF\n` : `${texts.join('\n\n')}\n`;
    return { type: registry.contentType, text };
  }
}

function newRegistry<T extends ContentType>(type: T): Registry<T> {
  const registry = new Registry<T>();
  registry.setContentType(type);
  return registry;
}

/** Registers a metric whose values are read elsewhere. */
async function register<T extends ContentType>(
  registry: Registry<T>,
  { name, help, type }: Pick<Metric, 'name' | 'help' | 'type'>,
  read: () => Promise<readonly unknown[]>,
): Promise<void> {
  const Kind = { gauge: Gauge, counter: Counter, histogram: Histogram }[type];
  const metric = new Kind({ name, help, registers: [] });
  const described = await metric.get();
  // OpenMetrics has the ending of a counter in its values only.
  const family = registry.contentType === openMetricsContentType ? name.replace(/_total$/, '') : name;
  const getForPromString = async () => ({ ...described, name: family, values: await read() });
  registry.registerMetric(Object.assign(metric, { getForPromString }));
}

async function seriesOf(metric: Metric, observed: Observed): Promise<Iterable<Series>> {
  if (metric.type !== 'histogram') return numberSeries(metric, observed);
  const read = metric.read(observed);
  return read instanceof Histogram
    ? ((await read.get()).values as Series[])
    : bucketSeries(metric.name, read);
}

function* numberSeries(metric: NumberMetric, observed: Observed): Generator<Series> {
  const read = metric.read(observed);
  if (read === undefined) return;
  for (const { labels = {}, value } of typeof read === 'number' ? [{ value: read }] : read)
    yield { labels, value };
}

function* bucketSeries(name: string, { atMost, bounds, count, sum }: BucketsReading): Generator<Series> {
  const metricName = `${name}_bucket`;
  for (const [i, bound] of bounds.entries())
    yield { labels: { le: String(bound) }, value: atMost[i] ?? 0, metricName };
  yield { labels: { le: '+Inf' }, value: count, metricName };
  yield { labels: {}, value: sum, metricName: `${name}_sum` };
  yield { labels: {}, value: count, metricName: `${name}_count` };
}

/** Only who names it gets it: Prometheus does, a person with a browser reads the other. */
function wantsOpenMetrics(accept = ''): boolean {
  return accept
    .split(',')
    .some(
      (part) =>
        /^\s*application\/openmetrics-text\s*(;|$)/i.test(part) && !/;\s*q=0(\.0*)?\s*(;|$)/.test(part),
    );
}
