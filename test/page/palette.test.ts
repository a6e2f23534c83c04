import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const css = readFileSync(resolve(import.meta.dirname, '../../src/page/browser/style.css'), 'utf8');

/** The colours of the style sheet: each is given for light and dark. */
const COLOURS = [...css.matchAll(/(--[a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g)];
const light: ReadonlyMap<string, string> = new Map(COLOURS.map(([, name = '', value = '']) => [name, value]));
const dark: ReadonlyMap<string, string> = new Map(
  COLOURS.map(([, name = '', , value = '']) => [name, value]),
);

type Colour = readonly [number, number, number];

function colour(tokens: ReadonlyMap<string, string>, name: string): Colour {
  const hex = tokens.get(name);
  if (hex === undefined) throw new Error(`there is no ${name}`);
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Colour;
}

function luminance(of: Colour): number {
  const [r, g, b] = of.map((byte) => {
    const part = byte / 255;
    return part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as unknown as Colour;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** By WCAG 2. */
function contrast(a: Colour, b: Colour): number {
  const [high, low] = [luminance(a), luminance(b)].toSorted((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

const mix = (a: Colour, b: Colour, share: number): Colour =>
  a.map((part, i) => part * share + (b[i] ?? 0) * (1 - share)) as unknown as Colour;

const GROUNDS = ['--paper', '--raised', '--band-ok', '--band-busy', '--band-warn', '--band-bad'];
const WORDS = ['--ink', '--soft', '--pending', '--accepted', '--confirmed', '--quarantined', '--gone'];

describe.each([
  ['light', light],
  ['dark', dark],
] as const)('the %s palette', (_name, tokens) => {
  test.each(GROUNDS)('is legible on %s', (ground) => {
    for (const name of WORDS) {
      const ratio = contrast(colour(tokens, name), colour(tokens, ground));
      expect(ratio, `${name} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    }
    // The notes below the counts are ink at 72 %.
    const note = mix(colour(tokens, '--ink'), colour(tokens, ground), 0.72);
    expect(contrast(note, colour(tokens, ground)), `a note on ${ground}`).toBeGreaterThanOrEqual(4.5);
  });

  test('has buttons that are legible', () => {
    expect(contrast(colour(tokens, '--on-accent'), colour(tokens, '--confirmed'))).toBeGreaterThanOrEqual(
      4.5,
    );
  });
});

test('no colour is given a second time, or for one of the two only', () => {
  const names = COLOURS.map(([, name]) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(css.match(/#[0-9a-f]{3,8}\b/g)).toHaveLength(2 * names.length);
});
