import type { QueueStatus } from '../../queue/request-queue.js';
import type { StatusReport } from '../../report/status.js';
import type { RetryAnswer, RetryRequest } from '../api.js';
import { post } from './ask.js';
import { byId, type Child, draw, h, icon, prose } from './dom.js';
import type { Model } from './model.js';
import { act } from './notices.js';
import { ahead, calm, count, counted, duration, hour, sentences } from './words.js';

const DIALECTS = { standard: 'the standard interface', yacy: 'YaCy' } as const;
const LANES = [
  ['push', 'Pushes'],
  ['confirm', 'Look-ups'],
  ['mirror', 'Mirrors'],
  ['audit', 'Audit'],
] as const;

const FIGURES = ['Answers in', 'Running', 'Waiting', 'Failed'] as const;

/** Of each shape that a state of the peer has, its tone. */
const TONES = { confirmed: 's-confirmed', warn: 's-warn', error: 's-bad', unknown: 's-unknown' } as const;
type Health = readonly [shape: keyof typeof TONES, words: string, detail?: string];

/** The peer: whether it answers, how fast, and what waits for it. */
export function showPeer(model: Model): void {
  model.follow(['status', 'tick'], () => {
    if (model.status !== undefined) draw(byId('peer-card'), cardOf(model.status, model.now()));
  });
}

function cardOf(status: StatusReport, now: number): Child {
  const { peer, uplink } = status;
  const [shape, words, detail] = healthOf(status, now);
  const facts: [string, string | undefined][] = [
    ['Address', peer.url],
    ['Speaks', peer.dialect === undefined ? 'not known yet' : DIALECTS[peer.dialect]],
    ['Shows a document', uplink && `about ${duration(uplink.timeToVisibleMs)} after a push`],
    ['Requests', peer.queue && requestsText(peer.queue.concurrency)],
  ];
  const lanes = LANES.map(([lane, name]) => {
    const { p50LatencyMs, running, waiting, failed } = peer.queue?.lanes[lane] ?? {};
    const values = [
      p50LatencyMs === undefined ? '–' : duration(p50LatencyMs),
      ...[running, waiting, failed].map((n) => (n === undefined ? '' : count(n))),
    ];
    const cells = values.map((value, i) => h('td.number', { 'data-label': FIGURES[i] }, value));
    return h('tr', h('th', { scope: 'row' }, name), cells);
  });
  const table = h(
    'table.lanes',
    h('caption.unseen', 'Requests to the peer by kind'),
    h(
      'thead',
      h(
        'tr',
        h('td'),
        FIGURES.map((title) => h('th', { scope: 'col', class: 'number' }, title)),
      ),
    ),
    h('tbody', lanes),
  );
  return [
    h('p', { class: `peer-state ${TONES[shape]}` }, icon(shape), h('span', words)),
    detail !== undefined && h('p.voice', { 'data-key': 'detail' }, prose(detail)),
    peer.queue?.circuit.nextProbeAt !== undefined &&
      h('button', { class: 'small', 'data-key': 'try', onclick: (button) => void tryNow(button) }, 'Try now'),
    h('dl.facts', factsOf(facts)),
    h('div.scroll', table),
  ];
}

function requestsText({ running, limit, max }: QueueStatus['concurrency']): string {
  const most = limit < max ? ` now, ${count(max)} at most` : '';
  return `${count(running)} running; ${count(limit)} at a time${most}`;
}

async function tryNow(button: HTMLButtonElement): Promise<void> {
  await act(button, async () => {
    // Nothing is retried but the peer itself.
    await post<RetryAnswer>('/api/retry', { paths: [] } satisfies RetryRequest);
    return 'The peer is asked again.';
  });
}

/** The lines of a list of facts; what is not known is left out. */
export function factsOf(
  facts: readonly (readonly [name: string, value: string | undefined, kind?: 'path'])[],
): Child {
  return facts.map(
    ([name, value, kind]) => value !== undefined && h('div', h('dt', name), h('dd', { class: kind }, value)),
  );
}

function healthOf({ peer }: StatusReport, now: number): Health {
  const { queue } = peer;
  if (queue === undefined) return ['unknown', 'Nothing is known'];
  const { circuit, paused, pausedUntil } = queue;
  const { reason, since, nextProbeAt, tries } = circuit;
  if (reason !== undefined) {
    const words = {
      unreachable: 'Does not answer',
      failing: 'Answers with errors',
      denied: 'Refuses the credentials',
    };
    const next = nextProbeAt === undefined ? 'now' : ahead(nextProbeAt, now);
    const tried = `Tried ${counted(tries, 'time')}. The next try is ${next}.`;
    return [
      'error',
      `${words[reason.kind]}, for ${calm(now - since)}`,
      `${sentences(reason.message, reason.hint)} ${tried}`,
    ];
  }
  if (paused !== undefined) {
    return [
      'warn',
      `Left alone ${paused.until === undefined ? 'until you resume' : `until ${hour(paused.until, now)}`}`,
    ];
  }
  if (pausedUntil !== undefined && pausedUntil > now) {
    return ['warn', 'Asked to be left alone', `It goes on ${ahead(pausedUntil, now)}.`];
  }
  if (peer.dialect === undefined) return ['unknown', 'Being asked how it speaks'];
  return ['confirmed', `Answers, for ${calm(now - since)}`];
}
