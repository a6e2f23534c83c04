import { useState } from 'preact/hooks';
import { numberText as count } from '../../lib/text.js';
import { wallClockText } from '../../lib/units.js';
import { Icon, type Props, Prose, SectionHead } from './components.js';
import { groupedEvents, timeOfDay } from './words.js';

/** Number of events that are shown at first, and after "Show more". */
const FEW = 12;
const MANY = 60;

const LEVELS = {
  info: { icon: 'info', tone: 's-info', label: 'information' },
  warn: { icon: 'warn', tone: 's-warn', label: 'warning' },
  error: { icon: 'error', tone: 's-bad', label: 'failure' },
} as const;

/** The last lines of the log from `info` up, the newest first. */
export function RecentEvents({ model }: Props) {
  const [isOpen, setOpen] = useState(false);
  const events = groupedEvents(model.events);
  return (
    <>
      <SectionHead id="recent" title="Recent events">
        <p class="legend hint">
          {Object.values(LEVELS).map(({ icon, label, tone }) => (
            <span key={label}>
              <span class={tone}>
                <Icon of={icon} />
              </span>{' '}
              {label}{' '}
            </span>
          ))}
        </p>
      </SectionHead>
      {events.length === 0 && <p class="empty">There are no events yet.</p>}
      <ol class="events separated">
        {events.slice(0, isOpen ? MANY : FEW).map(({ id, at, level, message, more }) => (
          <li key={id} class={LEVELS[level].tone}>
            <Icon of={LEVELS[level].icon} />
            <time title={wallClockText(at)} datetime={new Date(at).toISOString()}>
              {timeOfDay(at, model.now())}
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

/** The results of actions. Failures stay until they are dismissed. */
export function Notices({ model }: Props) {
  return (
    <>
      {model.notices.map((notice) => (
        <div key={notice} class="notice line" role={notice.isFailure ? 'alert' : undefined}>
          <Icon of={notice.isFailure ? 'error' : 'confirmed'} />
          <p>
            <Prose text={notice.text} />
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
