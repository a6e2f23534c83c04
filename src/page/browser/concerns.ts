import { type Concern, concernsOf } from './attention.js';
import { attr, byId, h, icon, prose, Rows, reshape, show, text } from './dom.js';
import type { Model } from './model.js';

/** What needs a person, if anything does. */
export function showConcerns(model: Model): void {
  const rows = new Rows<Concern>(
    byId('concerns'),
    ({ key }) => key,
    () => {
      const shape = icon('warn');
      const about = h('a', {});
      const words = h('span', { class: 'words' });
      const element = h('li', {}, shape, h('p', {}, about, ' ', words));
      return {
        element,
        update: (concern) => {
          attr(element, 'class', `s-${concern.level}`);
          reshape(shape, concern.level === 'bad' ? 'error' : 'warn');
          attr(about, 'href', concern.href);
          text(about, concern.about);
          prose(words, concern.text);
        },
      };
    },
  );
  model.follow(['status'], () => {
    const concerns = model.status === undefined ? [] : concernsOf(model.status);
    show(byId('attention'), concerns.length > 0);
    rows.set(concerns);
  });
}
