import type { RecentEvent } from '../../report/status.js';
import { attr, byId, h, icon, prose, type Row, Rows, reshape, show, text } from './dom.js';
import type { Model } from './model.js';
import { hour, moment, sentence } from './words.js';

const FEW = 12;
const MANY = 60;
const SHAPES = { info: 'info', warn: 'warn', error: 'error' } as const;
const CLASSES = { info: 's-info', warn: 's-warn', error: 's-bad' } as const;

/** The last lines of the log that a person may want to see, the newest first. */
export function showEvents(model: Model): void {
  const list = h('ol', { class: 'events' });
  const empty = h('p', { class: 'empty' }, 'Nothing has happened yet.');
  const more = h('button', { type: 'button', class: 'small', 'aria-expanded': 'false' }, 'Show more');
  byId('event-list').append(list, empty, more);
  const rows = new Rows<RecentEvent>(
    list,
    ({ id }) => String(id),
    () => row(model),
  );
  let shown = FEW;
  const draw = () => {
    rows.set(model.events.slice(0, shown));
    show(empty, model.events.length === 0);
    show(more, model.events.length > FEW);
  };
  more.addEventListener('click', () => {
    shown = shown === FEW ? MANY : FEW;
    attr(more, 'aria-expanded', String(shown === MANY));
    text(more, shown === MANY ? 'Show less' : 'Show more');
    draw();
  });
  model.follow(['recents'], draw);
}

function row(model: Model): Row<RecentEvent> {
  const shape = icon('info');
  const time = h('time', {});
  const level = h('span', { class: 'unseen' });
  const words = h('span', {});
  const element = h('li', {}, shape, time, h('p', {}, level, words));
  return {
    element,
    update: (event) => {
      attr(element, 'class', CLASSES[event.level]);
      reshape(shape, SHAPES[event.level]);
      text(time, hour(event.at, model.now()));
      attr(time, 'title', moment(event.at, model.now()));
      attr(time, 'datetime', new Date(event.at).toISOString());
      text(level, event.level === 'info' ? '' : `${event.level}: `);
      prose(words, sentence(event.message));
    },
  };
}
