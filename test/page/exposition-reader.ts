import { expect } from 'vitest';

export interface Series {
  readonly family: string;
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

const LABEL = /([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"/g;
const SAMPLE = new RegExp(`^([a-z0-9_]+)(?:\\{((?:${LABEL.source},?)*)\\})? ([-+.\\deInaNf]+)$`);

/**
 * Reads an exposition: each family described once, before its values and in one piece; names, labels and escapes as they must be;
 * no series twice.
 *
 * @throws Error that shows the line
 */
export function readExposition(text: string, format: 'openmetrics' | 'prometheus'): Series[] {
  const lines = text.split('\n');
  expect(lines.pop()).toBe('');
  if (format === 'openmetrics') expect(lines.pop()).toBe('# EOF');
  let family = '';
  const families = new Set<string>();
  const found = new Map<string, Series>();
  for (const line of lines.filter((line) => line !== '' && !line.startsWith('# HELP'))) {
    const [, type] = /^# TYPE ([a-z0-9_]+) (?:counter|gauge|histogram)$/.exec(line) ?? [];
    const [, name = '', labels = '', , , value] = SAMPLE.exec(line) ?? [];
    if (type === undefined && (!name.startsWith(family) || family === ''))
      throw new Error(`no series: ${line}`);
    if (families.has(type ?? '')) throw new Error(`described twice: ${line}`);
    if (type !== undefined) {
      family = type;
      families.add(type);
      continue;
    }
    const pairs = [...labels.matchAll(LABEL)].map(([, label = '', text = '']): [string, string] => [
      label,
      text.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped)),
    ]);
    const key = JSON.stringify([name, pairs]);
    if (found.has(key)) throw new Error(`twice: ${line}`);
    found.set(key, {
      family,
      name,
      labels: new Map(pairs),
      value: Number(value?.replace('Inf', 'Infinity')),
    });
  }
  return [...found.values()];
}
