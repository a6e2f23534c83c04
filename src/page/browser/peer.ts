import type { StatusReport } from '../../report/status.js';
import type { RetryAnswer, RetryRequest } from '../api.js';
import { post } from './ask.js';
import { attr, byId, h, icon, prose, reshape, show, text } from './dom.js';
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

interface Health {
  readonly shape: 'confirmed' | 'warn' | 'error' | 'unknown';
  readonly tone: 's-confirmed' | 's-warn' | 's-bad' | 's-unknown';
  readonly words: string;
  readonly detail: string;
}

/** The peer: whether it answers, how fast, and what waits for it. */
export function showPeer(model: Model): void {
  const shape = icon('unknown');
  const words = h('span', {});
  const state = h('p', { class: 'peer-state' }, shape, words);
  const detail = h('p', { class: 'voice' });
  const facts = h('dl', { class: 'facts' });
  const fact = (name: string) => {
    const value = h('dd', {});
    const line = h('div', {}, h('dt', {}, name), value);
    facts.append(line);
    return (content: string) => {
      show(line, content !== '');
      text(value, content);
    };
  };
  const address = fact('Address');
  const speaks = fact('Speaks');
  const visible = fact('Shows a document');
  const requests = fact('Requests');

  const lanes = LANES.map(([lane, name]) => {
    const cells = ['Answers in', 'Running', 'Waiting', 'Failed'].map((label) =>
      h('td', { class: 'number', 'data-label': label }),
    );
    return { lane, cells, element: h('tr', {}, h('th', { scope: 'row' }, name), ...cells) };
  });
  const heads = ['', 'Answers in', 'Running', 'Waiting', 'Failed'].map((title, i) =>
    i === 0 ? h('td', {}) : h('th', { scope: 'col', class: 'number' }, title),
  );
  const table = h(
    'table',
    { class: 'lanes' },
    h('caption', { class: 'unseen' }, 'Requests to the peer by kind'),
    h('thead', {}, h('tr', {}, ...heads)),
    h('tbody', {}, ...lanes.map(({ element }) => element)),
  );
  const tryNow = h('button', { type: 'button', class: 'small' }, 'Try now');
  tryNow.addEventListener('click', () => {
    void act(tryNow, async () => {
      // Nothing is retried but the peer itself.
      await post<RetryAnswer>('/api/retry', { paths: [] } satisfies RetryRequest);
      return 'The peer is asked again.';
    });
  });
  byId('peer-card').append(state, detail, tryNow, facts, h('div', { class: 'scroll' }, table));

  model.follow(['status', 'tick'], () => {
    const { status } = model;
    if (status === undefined) return;
    const health = healthOf(status, model.now());
    attr(state, 'class', `peer-state ${health.tone}`);
    reshape(shape, health.shape);
    text(words, health.words);
    prose(detail, health.detail);
    show(detail, health.detail !== '');
    show(tryNow, status.peer.queue?.circuit.nextProbeAt !== undefined);
    const { queue, dialect, url } = status.peer;
    address(url);
    speaks(dialect === undefined ? 'not known yet' : DIALECTS[dialect]);
    visible(
      status.uplink === undefined ? '' : `about ${duration(status.uplink.timeToVisibleMs)} after a push`,
    );
    if (queue === undefined) return;
    const { running, limit, max } = queue.concurrency;
    requests(
      `${count(running)} running; ${count(limit)} at a time${limit < max ? ` now, ${count(max)} at most` : ''}`,
    );
    for (const { lane, cells } of lanes) {
      const { p50LatencyMs, running: now, waiting, failed } = queue.lanes[lane];
      const values = [
        p50LatencyMs === undefined ? '–' : duration(p50LatencyMs),
        count(now),
        count(waiting),
        count(failed),
      ];
      for (const [i, cell] of cells.entries()) text(cell, values[i] ?? '');
    }
  });
}

function healthOf({ peer }: StatusReport, now: number): Health {
  const { queue } = peer;
  if (queue === undefined)
    return { shape: 'unknown', tone: 's-unknown', words: 'Nothing is known', detail: '' };
  const { circuit, paused, pausedUntil } = queue;
  const { reason, since, nextProbeAt, tries } = circuit;
  if (reason !== undefined) {
    const words = {
      unreachable: 'Does not answer',
      failing: 'Answers with errors',
      denied: 'Refuses the credentials',
    };
    const next = nextProbeAt === undefined ? 'now' : ahead(nextProbeAt, now);
    return {
      shape: 'error',
      tone: 's-bad',
      words: `${words[reason.kind]}, for ${calm(now - since)}`,
      detail: `${sentences(reason.message, reason.hint)} Tried ${counted(tries, 'time')}. The next try is ${next}.`,
    };
  }
  if (paused !== undefined) {
    const until = paused.until === undefined ? 'until you resume' : `until ${hour(paused.until, now)}`;
    return { shape: 'warn', tone: 's-warn', words: `Left alone ${until}`, detail: '' };
  }
  if (pausedUntil !== undefined && pausedUntil > now) {
    return {
      shape: 'warn',
      tone: 's-warn',
      words: 'Asked to be left alone',
      detail: `It goes on ${ahead(pausedUntil, now)}.`,
    };
  }
  if (peer.dialect === undefined)
    return { shape: 'unknown', tone: 's-unknown', words: 'Being asked how it speaks', detail: '' };
  return { shape: 'confirmed', tone: 's-confirmed', words: `Answers, for ${calm(now - since)}`, detail: '' };
}
