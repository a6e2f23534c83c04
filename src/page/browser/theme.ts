/*
 * Light, dark, or as the system: remembered by the browser. Both pages load this file by itself, before anything is drawn.
 */
const THEMES = ['auto', 'light', 'dark'];
const KEY = 'peersync.theme';

/** A browser may forbid to remember; then it is as the system is. */
export function theme(): string {
  try {
    return THEMES.find((known) => known === localStorage.getItem(KEY)) ?? 'auto';
  } catch {
    return 'auto';
  }
}

export function nextTheme(): void {
  try {
    localStorage.setItem(KEY, THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length] ?? 'auto');
  } catch {}
  apply();
}

function apply(): void {
  const chosen = theme();
  document.documentElement.style.colorScheme = chosen === 'auto' ? '' : chosen;
}

apply();
