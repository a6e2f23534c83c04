/*
 * Light, dark, or as the system: remembered by the browser. Both pages load this file by itself, before anything is drawn.
 */
export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'peersync.theme';

/** A browser may forbid to remember; then it is as the system is. */
export function theme(): Theme {
  try {
    return THEMES.find((known) => known === localStorage.getItem(KEY)) ?? 'auto';
  } catch {
    return 'auto';
  }
}

export function setTheme(chosen: Theme): void {
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // It holds until the page is loaded anew.
  }
  apply(chosen);
}

function apply(chosen: Theme): void {
  if (chosen === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

apply(theme());
