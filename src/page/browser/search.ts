import { nextTheme, showTheme } from './theme.js';

/*
 * What the pages of the embedded peer do where scripts run; without it they are plain pages. It
 * stands in their heads.
 */

/** Between the last letter and the question, in ms. */
const PAUSE_MS = 120;

let timer = 0;
let asking = new AbortController();

/** Shows what the form asks for, in the place of what is shown; as the server draws it. */
async function showResults(form: HTMLFormElement): Promise<void> {
  asking.abort();
  asking = new AbortController();
  const asked = new URLSearchParams();
  for (const [name, value] of new FormData(form))
    if (typeof value === 'string' && value !== '') asked.set(name, value);
  const address = `/?${asked}`;
  const { signal } = asking;
  // A peer that does not answer is seen when the form is sent.
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
  timer = window.setTimeout(() => void showResults(form), PAUSE_MS);
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
  const say = (word: string) => () => {
    button.textContent = word;
  };
  navigator.clipboard.writeText(copy).then(say('Copied'), say('Not allowed'));
});
