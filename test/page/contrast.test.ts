import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

const css = readFileSync(resolve(import.meta.dirname, '../../src/page/browser/style.css'), 'utf8');

type Colour = readonly number[];

/** Returns the colours of the style sheet by name: those of the light or of the dark theme. */
function colours(theme: 'light' | 'dark'): ReadonlyMap<string, Colour> {
  const found = css.matchAll(/(--[a-z-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\);/g);
  return new Map(
    [...found].map(([, name = '', light = '', dark = '']) => [
      name,
      [...Buffer.from(theme === 'light' ? light : dark, 'hex')],
    ]),
  );
}

function luminance(colour: Colour): number {
  const [r = 0, g = 0, b = 0] = colour.map((byte) => {
    const part = byte / 255;
    return part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Returns the contrast ratio of WCAG 2. */
function contrast(a: Colour, b: Colour): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

function mix(a: Colour, b: Colour, share: number): Colour {
  return a.map((part, i) => part * share + (b[i] ?? 0) * (1 - share));
}

const BACKGROUNDS = ['paper', 'raised', 'band-ok', 'band-busy', 'band-warn', 'band-bad'];
const TEXTS = ['ink', 'soft', 'pending', 'accepted', 'confirmed', 'quarantined', 'gone'];
/** The least contrast of legible text by WCAG 2, level AA. */
const LEGIBLE = 4.5;

test.each(['light', 'dark'] as const)(
  'text of every colour is legible on every background in the %s theme',
  (theme) => {
    const all = colours(theme);
    const named = (name: string): Colour => {
      const colour = all.get(`--${name}`);
      if (colour === undefined) throw new Error(`the style sheet has no colour --${name}`);
      return colour;
    };
    for (const background of BACKGROUNDS) {
      const ground = named(background);
      for (const text of TEXTS)
        expect(contrast(named(text), ground), `${text} on ${background}`).toBeGreaterThanOrEqual(
          LEGIBLE,
        );
      // The notes below the counts are ink at 72 %.
      const note = mix(named('ink'), ground, 0.72);
      expect(contrast(note, ground), `a note on ${background}`).toBeGreaterThanOrEqual(LEGIBLE);
    }
    expect(contrast(named('on-accent'), named('confirmed')), 'a button').toBeGreaterThanOrEqual(
      LEGIBLE,
    );
  },
);
