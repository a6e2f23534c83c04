/*
 * The page of a document of the embedded peer: walks through the matches of the query. A section of
 * the text is on the page; another one is fetched when it has the next match. Without the script,
 * the same links load the page anew.
 */

/** The match that is shown, or about to be: keys may be faster than the peer. */
let wanted = 0;
let fetching = new AbortController();

interface Bar {
  readonly nav: HTMLElement;
  readonly previous: HTMLAnchorElement;
  readonly next: HTMLAnchorElement;
}

/** Returns the bar of the matches; undefined if there is none, or only one match. */
function barOf(page: Document): Bar | undefined {
  const nav = page.getElementById('matches');
  const [previous, next] = ['prev', 'next'].map((rel) =>
    nav?.querySelector<HTMLAnchorElement>(`a[rel=${rel}]`),
  );
  return nav && previous && next ? { nav, previous, next } : undefined;
}

function addressOf({ nav }: Bar, match: number): string {
  return `${nav.dataset.address}&match=${match}`;
}

/** Shows a match. If its section cannot be fetched, the browser loads its page, and says why. */
async function show(match: number): Promise<void> {
  const bar = barOf(document);
  if (bar === undefined || match < 1) return;
  wanted = match;
  fetching.abort();
  const address = addressOf(bar, match);
  if (marksOf(match).length > 0) {
    select(match, bar);
    return;
  }
  fetching = new AbortController();
  const { signal } = fetching;
  const text = await fetch(address, { signal, headers: { accept: 'text/html' } })
    .then((answer) => (answer.ok ? answer.text() : undefined))
    .catch(() => undefined);
  if (signal.aborted) return;
  const page = new DOMParser().parseFromString(text ?? '', 'text/html');
  if (barOf(page) === undefined) {
    location.assign(address);
    return;
  }
  for (const id of ['text', 'matches', 'turns', 'part']) replace(id, page);
  const shown = document.querySelector<HTMLElement>('#text mark.current');
  const bars = barOf(document);
  if (bars !== undefined) select(Number(shown?.dataset.match ?? match), bars);
  void countOn();
}

/** Replaces an element by that of another page. Elements that are kept keep the focus. */
function replace(id: string, page: Document): void {
  const [old, next] = [document.getElementById(id), page.getElementById(id)];
  if (old === null || next === null) return;
  if (id !== 'matches') {
    old.replaceChildren(...next.childNodes);
    return;
  }
  for (const { name, value } of next.attributes) old.setAttribute(name, value);
  if (next.dataset.isCounting === undefined) delete old.dataset.isCounting;
}

function marksOf(match: number): readonly HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(`#text mark[data-match="${match}"]`)];
}

/** Makes a match of the section on the page the current one. */
function select(match: number, bar: Bar): void {
  wanted = match;
  for (const old of document.querySelectorAll('#text mark.current')) {
    old.classList.remove('current');
    for (const name of ['id', 'aria-current', 'class']) old.removeAttribute(name);
  }
  const marks = marksOf(match);
  for (const mark of marks) {
    mark.classList.add('current');
    mark.setAttribute('aria-current', 'true');
  }
  const [first] = marks;
  if (first === undefined) return;
  first.id = 'match';
  first.scrollIntoView({ block: 'center' });
  history.replaceState(null, '', addressOf(bar, match));
  describe(match, bar);
}

/** Writes where the match is, as the server does, and where the links lead. */
function describe(match: number, { nav, next, previous }: Bar): void {
  const { isCounting, matches = '1', pages = '', total = '' } = nav.dataset;
  const page = marksOf(match)[0]?.dataset.page;
  const ofPages = pages === '' ? '' : ` of ${number(pages)}`;
  const onPage = page === undefined ? '' : ` · page ${number(page)}${ofPages}`;
  const status = nav.querySelector('[role=status]');
  if (status) status.textContent = `Match ${number(match)} of ${total}${onPage}`;
  const known = Number(matches);
  const isLast = match >= known && isCounting === undefined;
  for (const [link, target] of [
    [previous, match === 1 ? known : match - 1],
    [next, isLast ? 1 : match + 1],
  ] as const) {
    link.dataset.match = String(target);
    link.href = `${nav.dataset.address}&match=${target}#match`;
  }
}

function number(value: number | string): string {
  return Number(value).toLocaleString('en-US');
}

/** The count of all matches, which is asked for once; undefined if the peer did not answer. */
let counting: Promise<unknown> | undefined;

/** Has the rest of the matches counted, if the page was sent before they all were. */
async function countOn(): Promise<void> {
  const bar = barOf(document);
  if (bar?.nav.dataset.isCounting === undefined) return;
  const address = bar.nav.dataset.address?.replace('/document?', '/document.json?') ?? '';
  counting ??= fetch(address)
    .then((answer) => (answer.ok ? answer.json() : undefined))
    .catch(() => undefined);
  const count = await counting;
  if (typeof count !== 'object' || count === null) {
    // The bar goes on saying that there may be more. The next section asks again.
    counting = undefined;
    return;
  }
  const { matches, pages, total } = count as Partial<Record<string, unknown>>;
  const { dataset } = bar.nav;
  dataset.matches = String(matches);
  dataset.total = String(total);
  dataset.pages = pages === undefined ? '' : String(pages);
  delete dataset.isCounting;
  if (wanted > 0) describe(wanted, bar);
}

addEventListener('DOMContentLoaded', () => {
  const current = document.querySelector<HTMLElement>('#text mark.current');
  wanted = Number(current?.dataset.match ?? 0);
  current?.scrollIntoView({ block: 'center' });
  void countOn();
});

document.addEventListener('click', (event) => {
  const { altKey, button, ctrlKey, metaKey, shiftKey, target } = event;
  const link = target instanceof Element ? target.closest<HTMLElement>('#matches a') : null;
  // With these keys, a link opens in another tab.
  if (link === null || button !== 0 || altKey || ctrlKey || metaKey || shiftKey) return;
  event.preventDefault();
  void show(Number(link.dataset.match));
});

document.addEventListener('keydown', (event) => {
  const { altKey, ctrlKey, isComposing, key, metaKey, target } = event;
  const bar = barOf(document);
  if (bar === undefined || altKey || ctrlKey || metaKey || isComposing) return;
  if (target instanceof Element && target.matches('input, select, textarea, [contenteditable]'))
    return;
  const link = key === 'n' ? bar.next : key === 'p' ? bar.previous : undefined;
  if (link === undefined) return;
  event.preventDefault();
  void show(nextOf(link, bar, key === 'n' ? 1 : -1));
});

/** Returns the match that a key leads to, also while the one before is being fetched. */
function nextOf(link: HTMLAnchorElement, { nav }: Bar, step: 1 | -1): number {
  const shown = document.querySelector<HTMLElement>('#text mark.current');
  const isBehind = wanted > 0 && wanted !== Number(shown?.dataset.match ?? 0);
  if (!isBehind) return Number(link.dataset.match);
  const known = Number(nav.dataset.matches);
  const isCounting = nav.dataset.isCounting !== undefined;
  const target = wanted + step;
  if (target < 1) return known;
  return target > known && !isCounting ? 1 : target;
}
