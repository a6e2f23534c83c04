import { numberText as count, counted, readableUrl } from '../../lib/text.js';
import { PEER_FAILURE_WORDS } from '../../queue/breaker.js';
import type { StatusReport } from '../../report/status-report.js';
import { ActionButton, Facts, Icon, Name, type Props, SectionHead, Table } from './components.js';
import { post } from './model.js';
import { duration, roughDuration, timeUntil } from './words.js';

/** The titles of dialects. Another one is shown by its name. */
const DIALECTS: Readonly<Record<string, string>> = { standard: 'standard', yacy: 'YaCy' };
const LANES = {
  push: 'Pushes',
  confirm: 'Look-ups',
  removal: 'Removals',
  mirror: 'Mirrors',
  audit: 'Audit',
} as const;

/** The peer: whether it answers, how fast it is, and the requests that wait for it. */
export function Peer({ model }: Props) {
  const { status } = model;
  if (status === undefined) return null;
  const { peer, uplink } = status;
  const { timeToVisibleMs } = uplink ?? {};
  const isUnreachable = peer.queue?.circuit.reason?.kind === 'unreachable';
  const health = healthOf(status, model.now());
  const { running, limit, max } = peer.queue?.concurrency ?? { running: 0, limit: 0, max: 0 };
  const limitText =
    limit < max
      ? `${count(limit)} at a time now, ${count(max)} at most`
      : `${count(limit)} at a time`;
  const tryNow = async () => {
    await post('/api/try');
    return 'The peer is asked again.';
  };
  return (
    <>
      <SectionHead id="peer" title="Peer" />
      <p class={`peer-state line s-${health.tone}`}>
        <Icon of={health.icon} />
        <span>{health.text}</span>
      </p>
      {peer.queue?.circuit.reason !== undefined && (
        <ActionButton model={model} work={tryNow}>
          Try now
        </ActionButton>
      )}
      <Facts
        of={{
          // The address of a peer that does not answer is no link, because it would lead nowhere.
          'Search page': isUnreachable ? <Name of={readableUrl(peer.url)} /> : peer.url,
          Dialect:
            peer.dialect === undefined ? 'not known yet' : (DIALECTS[peer.dialect] ?? peer.dialect),
          Visible:
            timeToVisibleMs === undefined
              ? 'not known yet'
              : `about ${duration(timeToVisibleMs)} after a push`,
          Requests: `${count(running)} running; ${limitText}`,
        }}
      />
      <Table
        caption="Requests to the peer by kind"
        what="kind"
        columns={['Kind', 'Take', 'Running', 'Waiting', 'Failed']}
        rows={Object.keys(LANES) as (keyof typeof LANES)[]}
        cells={(name) => {
          const { p50LatencyMs, running, waiting, failed } = peer.queue?.lanes[name] ?? {};
          const figures = [running, waiting, failed].map((n = 0) => count(n));
          return [
            LANES[name],
            p50LatencyMs === undefined ? '–' : duration(p50LatencyMs),
            ...figures,
          ];
        }}
        keyOf={(name) => name}
        empty=""
      />
    </>
  );
}

interface Health {
  readonly icon: string;
  readonly tone: string;
  readonly text: string;
}

function healthOf({ peer }: StatusReport, now: number): Health {
  const { circuit, paused, retryAfterUntil = 0 } = peer.queue ?? {};
  if (circuit?.reason !== undefined) {
    const failing = `It ${PEER_FAILURE_WORDS[circuit.reason.kind]}, for ${roughDuration(now - circuit.since)}`;
    const text = `${failing}; tried ${counted(circuit.tries, 'time')}`;
    return { icon: 'error', tone: 'bad', text };
  }
  if (paused !== undefined)
    return { icon: 'warn', tone: 'warn', text: 'No requests while peersync is paused' };
  if (retryAfterUntil > now) {
    const text = `Asked to wait; requests continue ${timeUntil(retryAfterUntil, now)}`;
    return { icon: 'warn', tone: 'warn', text };
  }
  if (peer.dialect === undefined || circuit === undefined)
    return { icon: 'unknown', tone: 'info', text: 'Has not answered yet' };
  const text = `Answers, for ${roughDuration(now - circuit.since)}`;
  return { icon: 'confirmed', tone: 'confirmed', text };
}
