import { byId, h, icon, prose, type Row, Rows, show, text } from './dom.js';
import type { Model } from './model.js';
import { count, sentence, sentences } from './words.js';

interface Problem {
  readonly what: string;
  readonly words: string;
}

/** Of many, so many are named. */
const NAMED = 30;

/** What could not be looked at on disk, and what opening the state repaired. */
export function showProblems(model: Model): void {
  const list = h('ul', { class: 'plain' });
  const more = h('p', { class: 'hint' });
  byId('problem-list').append(list, more);
  const rows = new Rows<Problem>(list, ({ what, words }) => `${what} ${words}`, row);
  model.follow(['status'], () => {
    const { problems = [], repairs = [] } = model.status ?? {};
    const all: Problem[] = [
      ...repairs.map((repair) => ({ what: 'state', words: sentence(repair) })),
      ...problems.map(({ path, trouble }) => ({
        what: path,
        words: sentences(trouble.message, trouble.hint),
      })),
    ];
    show(byId('problems'), all.length > 0);
    rows.set(all.slice(0, NAMED));
    text(
      more,
      all.length > NAMED ? `and ${count(all.length - NAMED)} more, which \`peersync status\` names` : '',
    );
  });
}

function row(): Row<Problem> {
  const what = h('code', {});
  const words = h('p', {});
  return {
    element: h('li', { class: 's-warn' }, icon('warn'), h('div', {}, what, words)),
    update: (problem) => {
      text(what, problem.what);
      prose(words, problem.words);
    },
  };
}
