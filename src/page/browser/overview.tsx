import { useRef, useState } from 'preact/hooks';
import { amountText as amount, numberText as count, counted, readableUrl } from '../../lib/text.js';
import { durationText, wallClockText } from '../../lib/units.js';
import { PEER_FAILURE_WORDS } from '../../queue/breaker.js';
import type { StatusReport } from '../../report/status-report.js';
import type { Entry } from '../../state/entry.js';
import type { PauseAnswer } from '../api.js';
import { post } from './model.js';
import {
  Act,
  Facts,
  filesHref,
  Head,
  Icon,
  Name,
  type Props,
  Prose,
  STATUS_WORDS,
  Table,
} from './parts.js';
import { ahead, type Condition, calm, concernsOf, duration, grouped, hour } from './words.js';

/** Whether the page is up to date. */
export function Connection({ model }: Props) {
  const { lost, status } = model;
  const words = lost
    ? `tries again ${ahead(lost.nextAt, model.here())}`
    : status
      ? 'live'
      : 'connecting';
  return (
    <>
      <span class="pulse" />
      <span>{words}</span>
    </>
  );
}

const PAUSES: Readonly<Record<string, number | undefined>> = {
  'for 15 minutes': 900_000,
  'for 1 hour': 3_600_000,
  'for 8 hours': 28_800_000,
  'until I resume': undefined,
};

/** Pauses, by asking for how long, or resumes: one button, which keeps the focus. */
export function Pausing({ model }: Props) {
  const isPaused = model.status?.peer.queue?.paused !== undefined;
  const pause = (forMs: number | undefined) =>
    model.act(async () => {
      const { paused } = await post<PauseAnswer>('/api/pause', { forMs });
      return paused?.until === undefined
        ? 'Paused until you resume.'
        : `Paused until ${hour(paused.until, model.now())}.`;
    });
  const resume = async () => {
    await post('/api/resume');
    return 'It goes on.';
  };
  return (
    <>
      <button
        type="button"
        id="pause"
        class={isPaused ? 'primary' : ''}
        popovertarget={isPaused ? undefined : 'pause-menu'}
        onClick={() => isPaused && void model.act(resume)}
        aria-keyshortcuts="p"
      >
        <Icon of={isPaused ? 'play' : 'pause'} />
        {isPaused ? 'Resume' : 'Pause'}
      </button>
      <div id="pause-menu" class="menu" popover="auto">
        <p class="hint">
          Nothing goes to the peer meanwhile. The folders stay watched, and nothing is lost.
        </p>
        {Object.entries(PAUSES).map(([words, forMs], i) => (
          <button
            type="button"
            key={words}
            autofocus={i === 0}
            popovertarget="pause-menu"
            onClick={() => void pause(forMs)}
          >
            {words}
          </button>
        ))}
      </div>
    </>
  );
}

/** How everything stands: the numbers, and the gravest of what a person should know. */
export function World({ model }: Props) {
  const { world } = model;
  const said = useRef({ gist: '', words: '' });
  if (world === undefined) return <h1>One moment: asking peersync how everything stands.</h1>;
  // Who listens hears of each change, and not of each second.
  const gist = world.concern?.text ?? world.sentence.replaceAll(/[\d,]+/g, '');
  if (said.current.gist !== gist)
    said.current = { gist, words: `${world.sentence} ${world.concern?.text ?? ''}` };
  return (
    <>
      {/* A figure and its noun stay on one line. */}
      <h1>{world.sentence.replaceAll(/(\d) /g, '$1\u00a0')}</h1>
      <p class="detail">
        {world.concern && <a href={world.concern.href}>{world.concern.about}</a>}{' '}
        <Prose text={world.detail} />
      </p>
      <p class="unseen" role="status">
        {said.current.words}
      </p>
    </>
  );
}

const NOTES: Readonly<Record<Entry['status'], (status: StatusReport) => string>> = {
  pending({ folders, peer, uplink }) {
    if (peer.queue?.circuit.reason !== undefined) return 'wait for the peer';
    const settling = folders.reduce((sum, { watch }) => sum + (watch?.settling ?? 0), 0);
    if (uplink !== undefined && uplink.inFlight > 0)
      return `${count(uplink.inFlight)} on their way`;
    return settling > 0 ? `${count(settling)} being written` : 'to be pushed';
  },
  accepted: () => 'at the peer, not shown yet',
  confirmed: ({ pace }) => (pace ? `searchable, +${amount(pace.perSecond)}/s` : 'searchable'),
  quarantined: ({ items }) => (items.quarantined > 0 ? 'need a change' : 'nothing stuck'),
  skipped: () => 'kept out by a rule',
  gone: () => 'removed from disk',
  removing: () => 'being removed from the peer',
  removed: () => 'removed from disk and peer',
};

/** The way of a file, with how many are at each station, and those that left it. */
export function Stations({ model }: Props) {
  const { status } = model;
  const counts = status?.items;
  const station = (name: Entry['status']) => (
    <li key={name} class={`station s-${name}`} data-empty={counts?.[name] === 0 || undefined}>
      <span class="rail-line line">
        <Icon of={name} />
      </span>
      <a href={filesHref(name)}>
        <span class="number">{counts === undefined ? '–' : count(counts[name])}</span>{' '}
        <span class="label">{STATUS_WORDS[name]}</span>
      </a>
      <span class="note hint">{status && NOTES[name](status)}</span>
    </li>
  );
  const leaving = (['removing', 'removed'] as const).filter((name) => (counts?.[name] ?? 0) > 0);
  const aside = ['quarantined', 'skipped', 'gone', ...leaving] as const;
  return (
    <>
      <ol class="way">{(['pending', 'accepted', 'confirmed'] as const).map(station)}</ol>
      <ul class="aside">{aside.map(station)}</ul>
    </>
  );
}

/** What needs a person beside what the top of the page says. */
export function Attention({ model }: Props) {
  const [, ...concerns] = model.status ? concernsOf(model.status) : [];
  if (concerns.length === 0) return null;
  return (
    <>
      <h2 id="attention-title">Needs a look</h2>
      <ul>
        {concerns.map(({ key, level, href, about, text }: Condition) => (
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

const DIALECTS = { standard: 'the standard interface', yacy: 'YaCy' } as const;
const LANES = {
  push: 'Pushes',
  confirm: 'Look-ups',
  removal: 'Removals',
  mirror: 'Mirrors',
  audit: 'Audit',
} as const;

/** The pages of the embedded peer, which go on from this one. */
export function Site({ model }: Props) {
  const { embedded, url } = model.status?.peer ?? {};
  if (embedded !== true || url === undefined || !URL.canParse(url)) return null;
  const links = { Search: '/', Tables: '/Tables_p.html', Shares: '/api/share.html' };
  return (
    <>
      {Object.entries(links).map(([label, path]) => (
        <a key={label} href={new URL(path, url).href}>
          {label}
        </a>
      ))}
      <a href="/" aria-current="page">
        Status
      </a>
    </>
  );
}

/** The peer: whether it answers, how fast, and what waits for it. */
export function Peer({ model }: Props) {
  const { status } = model;
  if (status === undefined) return null;
  const { peer, uplink } = status;
  const { timeToVisibleMs } = uplink ?? {};
  const isAway = peer.queue?.circuit.reason?.kind === 'unreachable';
  const [shape, tone, words] = healthOf(status, model.now());
  const { running, limit, max } = peer.queue?.concurrency ?? { running: 0, limit: 0, max: 0 };
  const tryNow = async () => {
    await post('/api/try');
    return 'The peer is asked again.';
  };
  return (
    <>
      <Head id="peer" title="Peer" />
      <p class={`peer-state line s-${tone}`}>
        <Icon of={shape} />
        <span>{words}</span>
      </p>
      {peer.queue?.circuit.reason !== undefined && (
        <Act model={model} work={tryNow}>
          Try now
        </Act>
      )}
      <Facts
        of={{
          // While it is away the address is no link: it would lead to an error.
          'Search it at': isAway ? <Name of={readableUrl(peer.url)} /> : peer.url,
          Speaks: peer.dialect === undefined ? 'not known yet' : DIALECTS[peer.dialect],
          'Shows a document':
            timeToVisibleMs === undefined
              ? 'not known yet'
              : `about ${duration(timeToVisibleMs)} after a push`,
          Requests: `${count(running)} running; ${count(limit)} at a time${limit < max ? ` now, ${count(max)} at most` : ''}`,
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

function healthOf(
  { peer }: StatusReport,
  now: number,
): readonly [shape: string, tone: string, words: string] {
  const { circuit, paused, pausedUntil = 0 } = peer.queue ?? {};
  if (circuit?.reason !== undefined)
    return [
      'error',
      'bad',
      `It ${PEER_FAILURE_WORDS[circuit.reason.kind]}, for ${calm(now - circuit.since)}; tried ${counted(circuit.tries, 'time')}`,
    ];
  if (paused !== undefined) return ['warn', 'warn', 'Left alone while peersync is paused'];
  if (pausedUntil > now)
    return ['warn', 'warn', `Asked to be left alone; it goes on ${ahead(pausedUntil, now)}`];
  if (peer.dialect === undefined || circuit === undefined)
    return ['unknown', 'info', 'Being asked how it speaks'];
  return ['confirmed', 'confirmed', `Answers, for ${calm(now - circuit.since)}`];
}

const [FEW, MANY] = [12, 60];
const SHAPES = {
  info: ['info', 's-info'],
  warn: ['warn', 's-warn'],
  error: ['error', 's-bad'],
} as const;

/** The last lines of the log that a person may want to see, the newest first. */
export function Recent({ model }: Props) {
  const [isOpen, setOpen] = useState(false);
  const events = grouped(model.events);
  return (
    <>
      <Head id="recent" title="What happened">
        <p class="legend hint">
          <span class="s-info">
            <Icon of="info" />
          </span>{' '}
          as usual{' '}
          <span class="s-warn">
            <Icon of="warn" />
          </span>{' '}
          wants a look{' '}
          <span class="s-bad">
            <Icon of="error" />
          </span>{' '}
          failed
        </p>
      </Head>
      {events.length === 0 && <p class="empty">Nothing has happened yet.</p>}
      <ol class="events separated">
        {events.slice(0, isOpen ? MANY : FEW).map(({ id, at, level, message, more }) => (
          <li key={id} class={SHAPES[level][1]}>
            <Icon of={SHAPES[level][0]} />
            <time title={wallClockText(at)} datetime={new Date(at).toISOString()}>
              {hour(at, model.now())}
            </time>
            <p>
              {level !== 'info' && <span class="unseen">{level}: </span>}
              <Prose text={message} />
              {more > 0 && <span class="hint"> And {count(more)} more like it.</span>}
            </p>
          </li>
        ))}
      </ol>
      {events.length > FEW && (
        <button type="button" class="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Show less' : 'Show more'}
        </button>
      )}
    </>
  );
}

/** Which peersync this is, in the last line of the page. */
export function About({ model }: Props) {
  if (model.status === undefined) return null;
  const { version, pid, startedAt = model.now() } = model.status;
  return (
    <>{`peersync ${version} · pid ${pid} · runs for ${durationText(model.now() - startedAt)}`}</>
  );
}

/** What was done for a person, or went wrong. */
export function Notices({ model }: Props) {
  return (
    <>
      {model.notices.map((notice) => (
        <div key={notice} class="notice line" role={notice.isFailure ? 'alert' : undefined}>
          <Icon of={notice.isFailure ? 'error' : 'confirmed'} />
          <p>
            <Prose text={notice.words} />
          </p>
          <button
            type="button"
            class="quiet small"
            aria-label="Dismiss"
            onClick={() => model.dismiss(notice)}
          >
            <Icon of="gone" />
          </button>
        </div>
      ))}
    </>
  );
}
