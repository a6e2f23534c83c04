import { durationText } from '../../lib/units.js';
import type { PauseAnswer } from '../api.js';
import { Icon, type Props } from './components.js';
import { post } from './model.js';
import { timeOfDay, timeUntil } from './words.js';

/** Links to the pages of the embedded peer. Empty if the peer is another one. */
export function SiteLinks({ model }: Props) {
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

/** Whether the page is connected to the daemon. */
export function ConnectionState({ model }: Props) {
  const { connection } = model;
  const text =
    connection.mode === 'lost'
      ? `reconnects ${timeUntil(connection.nextAt, model.localNow())}`
      : connection.mode;
  return (
    <>
      <span class="pulse" />
      <span>{text}</span>
    </>
  );
}

const PAUSES: Readonly<Record<string, number | undefined>> = {
  'for 15 minutes': 900_000,
  'for 1 hour': 3_600_000,
  'for 8 hours': 28_800_000,
  'until I resume': undefined,
};

/**
 * The button that pauses and resumes. A menu asks for the length of a pause. It is one element in
 * both states, so that it keeps the focus.
 */
export function PauseButton({ model }: Props) {
  const isPaused = model.status?.peer.queue?.paused !== undefined;
  const pause = (forMs: number | undefined) =>
    model.act(async () => {
      const { paused } = await post<PauseAnswer>('/api/pause', { forMs });
      return paused?.until === undefined
        ? 'Paused until you resume.'
        : `Paused until ${timeOfDay(paused.until, model.now())}.`;
    });
  const resume = async () => {
    await post('/api/resume');
    return 'Resumed.';
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
          Nothing is sent to the peer meanwhile. Folders are still watched, and nothing is lost.
        </p>
        {Object.entries(PAUSES).map(([label, forMs], i) => (
          <button
            type="button"
            key={label}
            autofocus={i === 0}
            popovertarget="pause-menu"
            onClick={() => void pause(forMs)}
          >
            {label}
          </button>
        ))}
      </div>
    </>
  );
}

/** The version and the process of the daemon, in the footer. */
export function About({ model }: Props) {
  if (model.status === undefined) return null;
  const { version, pid, startedAt = model.now() } = model.status;
  const uptime = durationText(model.now() - startedAt);
  return <>{`peersync ${version} · pid ${pid} · running for ${uptime}`}</>;
}
