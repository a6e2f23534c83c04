import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

const css = readFileSync(resolve(import.meta.dirname, '../../src/page/browser/style.css'), 'utf8');

/** The colours of the style sheet: each is given for light and dark. */
const COLOURS = [...css.matchAll(/(--[a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g)];
const named = (which: 2 | 3) => new Map(COLOURS.map((all) => [all[1] ?? '', all[which] ?? '']));

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
const WORDS = [
  '--ink',
  '--soft',
  '--pending',
  '--accepted',
  '--confirmed',
  '--quarantined',
  '--gone',
];

test.each([
  ['light', named(2)],
  ['dark', named(3)],
] as const)('the %s palette is legible', (_name, tokens) => {
  const ratio = (ink: string, ground: string) =>
    contrast(colour(tokens, ink), colour(tokens, ground));
  for (const ground of GROUNDS) {
    for (const word of WORDS)
      expect(ratio(word, ground), `${word} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    // The notes below the counts are ink at 72 %.
    const note = mix(colour(tokens, '--ink'), colour(tokens, ground), 0.72);
    expect(contrast(note, colour(tokens, ground)), `a note on ${ground}`).toBeGreaterThanOrEqual(
      4.5,
    );
  }
  expect(ratio('--on-accent', '--confirmed'), 'a button').toBeGreaterThanOrEqual(4.5);
});

test('no colour is given for one of the two only', () => {
  expect(css.match(/#[0-9a-f]{3,8}\b/g)).toHaveLength(2 * COLOURS.length);
});
