import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { nextTurn } from '../lib/slices.js';
import type { Live } from '../report/live.js';
import { BUCKETS, described, METRICS } from './metric-table.js';
import { type Values, valuesOf } from './metric-values.js';

/** Resolution of a sampler of the event loop that is not used, in ms: a day. */
const UNUSED_SAMPLER_MS = 24 * 60 * 60_000;
/**
 * Metrics of the process that are left out. Listing open handles takes 100 ms with 100,000 watched
 * directories. Percentiles of the lag of the event loop need a timer: every 10 ms, it takes ten
 * times the processor time of a daemon at rest. The lag itself is measured here, because the one of
 * prom-client computes these percentiles at each scrape, a third of its time.
 */
const LEFT_OUT = /^nodejs_(active_|eventloop_lag_)/;
const LAG = {
  name: 'nodejs_eventloop_lag_seconds',
  help: 'Lag of event loop in seconds.',
};

/**
 * Writes the metrics in the requested format.
 *
 * The counters are kept where things happen, and a scrape reads them. There is one registry for
 * each of the two formats, created at its first scrape, because a counter's name depends on the
 * format. Metrics of the process are read at a scrape, too: between two, nothing is sampled.
 */
export class Metrics {
  readonly #live: Live;
  readonly #registries = new Map<string, Registry>();
  readonly #histograms: readonly Histogram[];
  #values: Values = new Map();
  /** How long the last scrape waited for the event loop, in seconds. */
  #lag = 0;

  constructor(live: Live) {
    this.#live = live;
    const timeToSearch = histogramOf('peersync_time_to_search_seconds{collection}');
    const stateSync = histogramOf('peersync_state_sync_seconds');
    this.#histograms = [timeToSearch, stateSync];
    live.parts.statistics.onConfirmed = (collection, ms) =>
      timeToSearch.observe({ collection }, ms / 1_000);
    live.parts.state.onSync = (seconds) => stateSync.observe(seconds);
  }

  /**
   * @param accept the `accept` header of the request
   * @param followers the number of browsers that follow the page
   */
  async write(
    accept = '',
    followers = 0,
  ): Promise<{ readonly type: string; readonly text: string }> {
    const type = wantsOpenMetrics(accept)
      ? Registry.OPENMETRICS_CONTENT_TYPE
      : Registry.PROMETHEUS_CONTENT_TYPE;
    const registry = this.#registries.get(type) ?? this.#newRegistry(type);
    this.#values = valuesOf(this.#live, followers);
    // With thousands of mirrors, reading takes a moment. Other work proceeds before the values are
    // written.
    const { clock } = this.#live;
    const waitsSince = clock.now();
    await nextTurn();
    this.#lag = (clock.now() - waitsSince) / 1_000;
    return { type, text: await registry.metrics() };
  }

  #newRegistry(type: string): Registry {
    const registry = new Registry();
    registry.setContentType(type as typeof registry.contentType);
    this.#registries.set(type, registry);
    const valuesNow = (name: string) => this.#values.get(name) ?? [];
    for (const [key, help] of Object.entries(METRICS)) {
      const { name, labels: labelNames, type: kind } = described(key);
      if (kind === 'histogram') continue;
      const Kind = kind === 'counter' ? Counter : Gauge;
      new Kind({
        name,
        help,
        labelNames,
        registers: [registry],
        collect() {
          this.reset();
          // A metric without labels would be 0 if it has no value.
          if (labelNames.length === 0) this.remove();
          for (const [labels, value] of valuesNow(name)) this.inc(labels, value);
        },
      });
    }
    for (const histogram of this.#histograms) registry.registerMetric(histogram);
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: UNUSED_SAMPLER_MS });
    for (const { name } of registry.getMetricsAsArray())
      if (LEFT_OUT.test(name)) registry.removeSingleMetric(name);
    const lagNow = () => this.#lag;
    new Gauge({
      ...LAG,
      registers: [registry],
      collect() {
        this.set(lagNow());
      },
    });
    return registry;
  }
}

function histogramOf(key: keyof typeof METRICS): Histogram {
  const { labels: labelNames, name } = described(key);
  const buckets = BUCKETS.get(name) ?? [];
  return new Histogram({ name, help: METRICS[key], labelNames, buckets, registers: [] });
}

/**
 * Returns whether a client accepts OpenMetrics by name. Prometheus does; browsers get the other
 * format.
 */
function wantsOpenMetrics(accept: string): boolean {
  const parts = accept
    .split(',')
    .filter((part) => /^\s*application\/openmetrics-text\s*(;|$)/i.test(part));
  return parts.some((part) => !/;\s*q=0(\.0*)?\s*(;|$)/.test(part));
}
