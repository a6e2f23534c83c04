/*
 * The theme: light, dark, or that of the system. A cookie stores it. All pages load this file
 * separately, before anything is drawn.
 */
const THEMES = ['auto', 'light', 'dark'];
/** Matches the cookie. Cookies are shared by all ports of a machine, and so by all pages. */
const COOKIE = /(?:^|; )peersync_theme=(\w+)/;
const YEAR_S = 31_536_000;

/** Returns the stored theme; `auto` if there is none, or the browser blocks cookies. */
export function theme(): string {
  try {
    const stored = COOKIE.exec(document.cookie)?.[1];
    return THEMES.find((known) => known === stored) ?? 'auto';
  } catch {
    return 'auto';
  }
}

/** Switches to the next theme, and updates the button. */
export function nextTheme(button: Element): void {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length] ?? 'auto';
  try {
    // biome-ignore lint/suspicious/noDocumentCookie: it must be readable before anything is drawn
    document.cookie = `peersync_theme=${next}; path=/; max-age=${YEAR_S}; samesite=strict`;
  } catch {}
  apply();
  showTheme(button);
}

/** Shows the current theme on the button. */
export function showTheme(button: Element): void {
  button.setAttribute('aria-label', `Colours: ${theme()}`);
  const label = button.querySelector('span');
  if (label) label.textContent = theme();
}

function apply(): void {
  const chosen = theme();
  document.documentElement.style.colorScheme = chosen === 'auto' ? '' : chosen;
}

apply();
// Another page may have changed the theme meanwhile.
addEventListener('pageshow', apply);
