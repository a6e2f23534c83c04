import type { ItemLine } from '../api.js';
import { attr, h, icon, prose, type Row, show, text } from './dom.js';
import type { Model } from './model.js';
import { whyHref } from './route.js';
import { STATUS_WORDS } from './statuses.js';
import { ago, counted, moment, sentences, size } from './words.js';

const RETRIED: ReadonlySet<string> = new Set(['quarantined', 'pending', 'passed']);

/** One file of a list: its name leads to its explanation. */
export function fileRow(
  model: Model,
  retry: (item: ItemLine, button: HTMLButtonElement) => Promise<void>,
): Row<ItemLine> {
  const folder = h('span', { class: 'in' });
  const name = h('span', {});
  const link = h('a', { class: 'path' }, folder, name);
  const status = h('span', { class: 'unseen' });
  const reason = h('p', { class: 'voice' });
  const facts = h('p', { class: 'hint' });
  const button = h('button', { type: 'button', class: 'small' }, 'Retry');
  const place = h('span', { class: 'shape' });
  const element = h('li', {}, place, h('div', {}, link, status, reason, facts), button);
  let shown: ItemLine | undefined;
  button.addEventListener('click', () => {
    if (shown !== undefined) void retry(shown, button);
  });
  return {
    element,
    update: (item) => {
      if (shown?.status !== item.status) place.replaceChildren(icon(item.status));
      shown = item;
      attr(place, 'class', `shape s-${item.status}`);
      attr(link, 'href', whyHref(item.file));
      text(folder, `${item.folder}/`);
      text(name, item.path);
      text(status, ` ${STATUS_WORDS[item.status]}`);
      prose(reason, sentences(item.message, item.hint));
      show(reason, item.message !== undefined);
      text(facts, factsOf(item, model.now()));
      attr(facts, 'title', moment(item.since, model.now()));
      show(button, RETRIED.has(item.status));
      attr(button, 'aria-label', `Retry ${item.path}`);
    },
  };
}

function factsOf(item: ItemLine, now: number): string {
  const tries = item.attempts === undefined || item.attempts === 0 ? [] : [counted(item.attempts, 'attempt')];
  const code = item.code === undefined ? [] : [item.code];
  return [
    `since ${ago(item.since, now)}`.replace('since just now', 'just now'),
    size(item.size),
    ...tries,
    ...code,
  ].join(' · ');
}
