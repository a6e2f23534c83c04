import { h, show, text } from './dom.js';
import { count } from './words.js';

/** The line below a list that goes to the page before and after. */
export class Pager {
  readonly element: HTMLElement;
  readonly #words = h('p', { class: 'hint', 'aria-live': 'polite' });
  readonly #back = h('button', { type: 'button', class: 'small' }, 'Back');
  readonly #on = h('button', { type: 'button', class: 'small' }, 'More');

  constructor(what: string, go: (step: -1 | 1) => void) {
    this.#back.setAttribute('aria-label', `${what}: the page before`);
    this.#on.setAttribute('aria-label', `${what}: the next page`);
    this.#back.addEventListener('click', () => go(-1));
    this.#on.addEventListener('click', () => go(1));
    this.element = h('div', { class: 'pager' }, this.#words, this.#back, this.#on);
    this.element.hidden = true;
  }

  /** @param total undefined where it is not known */
  set(first: number, shown: number, total: number | undefined, hasMore: boolean): void {
    const range = shown === 0 ? 'none' : `${count(first + 1)}–${count(first + shown)}`;
    text(this.#words, total === undefined ? range : `${range} of ${count(total)}`);
    this.#back.disabled = first === 0;
    this.#on.disabled = !hasMore;
    show(this.element, first > 0 || hasMore);
  }
}
