import { nextTheme, showTheme } from './theme.js';

/*
 * The script in the head of the pages of the embedded peer. The pages work without it as well.
 */

/** Time between the last typed letter and the query, in ms. */
const DEBOUNCE_MS = 120;

let timer = 0;
let query = new AbortController();

/** Replaces the results on the page by those of the form, as the server renders them. */
async function showResults(form: HTMLFormElement): Promise<void> {
  query.abort();
  query = new AbortController();
  const parameters = new URLSearchParams();
  for (const [name, value] of new FormData(form))
    if (typeof value === 'string' && value !== '') parameters.set(name, value);
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
  document.getElementById('results')?.replaceChildren(...results.childNodes);
  document.getElementById('found')?.replaceChildren(...line.childNodes);
  document.title = found.title;
  history.replaceState(null, '', address);
}

document.documentElement.classList.add('with-script');

document.addEventListener('input', ({ target }) => {
  const form = target instanceof Element ? target.closest<HTMLFormElement>('form.search') : null;
  if (form === null) return;
  clearTimeout(timer);
  timer = window.setTimeout(() => void showResults(form), DEBOUNCE_MS);
});

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
