import './document.js';
import { nextTheme, showTheme } from './theme.js';

/*
 * The script in the head of the pages of the embedded peer. The pages work without it as well.
 */

/** Time between the last typed letter and the query, in ms. */
const DEBOUNCE_MS = 120;

let timer = 0;
let query = new AbortController();

/** Replaces the results on the page by those of the form, as the server renders them. */
async function showResults(form: HTMLFormElement, isTyping: boolean): Promise<void> {
  query.abort();
  query = new AbortController();
  const parameters = new URLSearchParams();
  for (const [name, value] of new FormData(form))
    if (typeof value === 'string' && value !== '') parameters.set(name, value);
  // The word that is being typed is a prefix, until Enter sends the form.
  if (isTyping) parameters.set('typing', 'true');
  const address = `/?${parameters}`;
  const { signal } = query;
  // If the peer does not answer, nothing changes. The user notices it on submitting the form.
  const answer = await fetch(address, { signal, headers: { accept: 'text/html' } }).catch(
    () => undefined,
  );
  if (!answer?.ok) return;
  const text = await answer.text().catch(() => '');
  if (signal.aborted) return;
  const found = new DOMParser().parseFromString(text, 'text/html');
  const [results, line] = ['results', 'found'].map((id) => found.getElementById(id));
  if (!results || !line) return;
  replaceResults(results);
  document.getElementById('found')?.replaceChildren(...line.childNodes);
  document.title = found.title;
  history.replaceState(null, '', address);
}

/**
 * Replaces the results. If one of them has the focus, the focus stays on that document: keys may be
 * faster than the peer. If it is not found any more, the focus goes back to the words.
 */
function replaceResults(found: Element): void {
  const results = document.getElementById('results');
  const focused = results?.contains(document.activeElement) ? document.activeElement : null;
  const title = titleOf(focused);
  results?.replaceChildren(...found.childNodes);
  if (focused === null) return;
  const same = [...document.querySelectorAll<HTMLAnchorElement>('.hits h2 a')].find(
    (link) => documentOf(link) === (title && documentOf(title)),
  );
  (same ?? wordsField())?.focus();
}

/** Returns the title of the result that has an element. */
function titleOf(element: Element | null): HTMLAnchorElement | null {
  return element?.closest('.hits > li')?.querySelector('h2 a') ?? null;
}

/** Returns the document that a title leads to. The rest of its address depends on the query. */
function documentOf({ href }: HTMLAnchorElement): string | null {
  return new URL(href).searchParams.get('urlhash');
}

function wordsField(): HTMLInputElement | null {
  return document.querySelector('form.search input[type=search]');
}

document.documentElement.classList.add('with-script');

document.addEventListener('input', ({ target }) => {
  const form = target instanceof Element ? target.closest<HTMLFormElement>('form.search') : null;
  if (form === null) return;
  clearTimeout(timer);
  // A change of the order or the collection leaves the words as they are.
  const wasTyping = new URLSearchParams(location.search).get('typing') === 'true';
  const isTyping = target instanceof HTMLInputElement || wasTyping;
  timer = window.setTimeout(() => void showResults(form, isTyping), DEBOUNCE_MS);
});

/**
 * Searches by the keyboard: `/` leads to the words, the arrows from result to result, and Escape
 * back to the words. Tab stops once at a result, at its title. There, the keys of the other
 * controls (`data-key`) activate them: `o` opens the original, `c` copies the path.
 */
document.addEventListener('keydown', (event) => {
  const { key, target } = event;
  const words = wordsField();
  if (words === null || isSpecial(event) || !(target instanceof Element)) return;
  const isInWords = target === words;
  if (!isInWords && target.matches('input, select, textarea')) return;
  const results = [...document.querySelectorAll<HTMLElement>('.hits h2 a')];
  const at = results.findIndex((result) => result.isSameNode(target));
  const control = results[at]
    ?.closest('li')
    ?.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  if (control) {
    control.click();
    event.preventDefault();
    return;
  }
  const isBack = key === 'ArrowUp' && at === 0;
  if ((key === '/' && !isInWords) || (key === 'Escape' && !isInWords) || isBack) {
    words.focus();
    if (key === '/') words.select();
    event.preventDefault();
    return;
  }
  const step = key === 'ArrowDown' ? 1 : key === 'ArrowUp' && at > 0 ? -1 : 0;
  const next = step === 0 ? undefined : results[at + step];
  if (next === undefined) return;
  next.focus();
  event.preventDefault();
});

/** Whether a key is part of a shortcut, or of an input method. */
function isSpecial({ altKey, ctrlKey, isComposing, metaKey, shiftKey, key }: KeyboardEvent) {
  // Some keyboards have `/` above another key.
  return altKey || ctrlKey || metaKey || isComposing || (shiftKey && key !== '/');
}

addEventListener('pageshow', () => {
  const button = document.getElementById('theme');
  if (button) showTheme(button);
});

document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('button') : null;
  if (button?.id === 'theme') nextTheme(button);
  const { copy } = button?.dataset ?? {};
  if (button === null || copy === undefined) return;
  const show = (label: string) => () => {
    button.textContent = label;
  };
  navigator.clipboard.writeText(copy).then(show('Copied'), show('Not allowed'));
});
