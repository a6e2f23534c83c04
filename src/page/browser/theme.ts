/*
 * Light, dark, or as the system: remembered by the browser. All pages load this file by itself,
 * before anything is drawn.
 */
const THEMES = ['auto', 'light', 'dark'];
/**
 * A cookie, for it is the same at each port of a machine: what is chosen on one page holds on the
 * others.
 */
const KEPT = /(?:^|; )peersync_theme=(\w+)/;
const YEAR_S = 31_536_000;

/** A browser may forbid to remember; then it is as the system is. */
export function theme(): string {
  try {
    const kept = KEPT.exec(document.cookie)?.[1];
    return THEMES.find((known) => known === kept) ?? 'auto';
  } catch {
    return 'auto';
  }
}

/** Chooses the next one, and says so on the button. */
export function nextTheme(button: Element): void {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length] ?? 'auto';
  try {
    // biome-ignore lint/suspicious/noDocumentCookie: it has to be known before anything is drawn
    document.cookie = `peersync_theme=${next}; path=/; max-age=${YEAR_S}; samesite=strict`;
  } catch {}
  apply();
  showTheme(button);
}

/** Says on the button which colours there are. */
export function showTheme(button: Element): void {
  button.setAttribute('aria-label', `Colours: ${theme()}`);
  const words = button.querySelector('span');
  if (words) words.textContent = theme();
}

function apply(): void {
  const chosen = theme();
  document.documentElement.style.colorScheme = chosen === 'auto' ? '' : chosen;
}

apply();
// Another page may have chosen meanwhile.
addEventListener('pageshow', apply);
