import type { FastifyInstance } from 'fastify';
import { wallAheadMs } from '../lib/clock.js';
import { readBuild, VERSION } from '../lib/version.js';
import type { PeerClient } from '../peer/client.js';
import type { Statistics } from '../report/statistics.js';
import type { ApiParts } from './api-routes.js';
import { aliveReasons, readyReasons } from './health.js';
import type { MetricsWriter } from './metrics/exposition.js';

export interface MonitorParts
  extends Pick<ApiParts, 'current' | 'state' | 'live' | 'status' | 'followers' | 'clock'> {
  readonly client: Pick<PeerClient, 'requests' | 'pushedBytes'>;
  readonly statistics: Pick<Statistics, 'totals' | 'histogram'>;
  /** Made by the first scrape. */
  readonly metrics: () => Promise<MetricsWriter>;
}

/** What monitoring asks: `/metrics`, `/healthz`, `/readyz`. */
export function monitorRoutes(app: FastifyInstance, parts: MonitorParts): void {
  const { current, state, live, status, followers, clock, client, statistics, metrics } = parts;
  const build = readBuild();

  app.get('/metrics', async (request, reply) => {
    const observed = {
      now: clock.now(),
      status: status(),
      state: state.figures(),
      totals: statistics.totals(),
      timeToSearch: statistics.histogram,
      wallAheadMs: wallAheadMs(clock),
      requests: client.requests,
      pushedBytes: client.pushedBytes,
      build,
      followers: followers.size,
    };
    // To read took a moment where there are thousands of mirrors: the daemon's work goes on before it is written.
    await clock.sleep(0);
    const writer = await metrics();
    const { type, text } = await writer.write(observed, request.headers.accept);
    return await reply.type(type).send(text);
  });

  app.get('/healthz', async (_request, reply) => {
    const reasons = aliveReasons(status());
    const alive = reasons.length === 0;
    reply.code(alive ? 200 : 503);
    return { alive, version: VERSION, upMs: Math.max(0, clock.now() - live.startedAt), reasons };
  });

  app.get('/readyz', async (_request, reply) => {
    const reasons = await readyReasons(status(), current.config.state.dir);
    const ready = reasons.length === 0;
    reply.code(ready ? 200 : 503);
    return { ready, reasons };
  });
}
