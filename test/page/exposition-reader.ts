/** One line of values. */
export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const VALUE = '[+-]?(?:[0-9]+(?:\\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|Inf)|[Nn]a[Nn]';
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (${VALUE})$`);
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)/;

/**
 * Reads an exposition as strictly as the formats are written: each family described once, before its values and in one piece;
 * names, labels, escapes and numbers as they must be; no series twice; counters that end in `_total` and are not negative;
 * histograms that add up.
 *
 * @throws Error that shows the line
 */
export function readExposition(
  text: string,
  format: 'openmetrics' | 'prometheus',
): ReadonlyMap<string, Family> {
  const families = new Map<string, Family>();
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new Error('the last line does not end');
  if (format === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('there is no # EOF at the end');
  let family: Family | undefined;
  let help: { readonly name: string; readonly text: string } | undefined;
  const series = new Set<string>();
  for (const line of lines) {
    const fail = (why: string): never => {
      throw new Error(`${why}: ${line}`);
    };
    if (line === '' && format === 'prometheus') continue;
    const described = new RegExp(`^# (HELP|TYPE) (${NAME}) (.*)$`).exec(line);
    if (described !== null) {
      const [, kind, name = '', rest = ''] = described;
      if (kind === 'HELP') {
        if (families.has(name)) fail('described twice');
        const bare = rest.replaceAll('\\\\', '').replaceAll('\\n', '').replaceAll('\\"', '');
        if (bare.includes('\\') || (format === 'openmetrics' && bare.includes('"')))
          fail('help is not escaped');
        help = { name, text: rest };
        continue;
      }
      if (help?.name !== name) fail('a type without its help before it');
      if (!/^(counter|gauge|histogram|summary)$/.test(rest)) fail('no such type');
      if (format === 'openmetrics' && rest === 'counter' && name.endsWith('_total'))
        fail('a counter family named _total');
      family = { name, type: rest, help: help?.text ?? '', samples: [] };
      families.set(name, family);
      continue;
    }
    const [, name = '', labelText, value = ''] = SAMPLE.exec(line) ?? fail('no line of an exposition');
    if (family === undefined || !allowedNames(family, format).includes(name)) {
      fail('values that do not belong to the family before them');
      continue;
    }
    const labels = readLabels(labelText ?? '', fail);
    const key = JSON.stringify([name, [...labels].sort()]);
    if (series.has(key)) fail('the same series twice');
    series.add(key);
    family.samples.push({ name, labels, value: numberOf(value) });
  }
  for (const each of families.values()) checkFamily(each);
  return families;
}

function allowedNames({ name, type }: Family, format: string): readonly string[] {
  if (type === 'histogram') return [`${name}_bucket`, `${name}_sum`, `${name}_count`];
  return [type === 'counter' && format === 'openmetrics' ? `${name}_total` : name];
}

function readLabels(text: string, fail: (why: string) => never): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (let rest = text; rest !== ''; ) {
    const [all, name = '', value = ''] = LABEL.exec(rest) ?? fail('labels that cannot be read');
    if (labels.has(name)) fail('a label twice');
    labels.set(
      name,
      value.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped)),
    );
    rest = rest.slice(all.length);
  }
  return labels;
}

function numberOf(text: string): number {
  if (/^nan$/i.test(text)) return Number.NaN;
  return Number(text.replace('Inf', 'Infinity'));
}

function checkFamily({ name, type, samples }: Family): void {
  if (type === 'counter') {
    for (const sample of samples) {
      if (!sample.name.endsWith('_total')) throw new Error(`a counter not named _total: ${sample.name}`);
      if (!(sample.value >= 0)) throw new Error(`a counter below 0: ${sample.name}`);
    }
  }
  if (type === 'histogram') checkHistogram(name, samples);
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const groups = new Map<string, { bounds: number[]; counts: number[]; count?: number; sum?: number }>();
  for (const sample of samples) {
    const rest = [...sample.labels].filter(([label]) => label !== 'le').sort();
    const group = groups.get(JSON.stringify(rest)) ?? { bounds: [], counts: [] };
    groups.set(JSON.stringify(rest), group);
    if (sample.name === `${name}_count`) group.count = sample.value;
    else if (sample.name === `${name}_sum`) group.sum = sample.value;
    else {
      group.bounds.push(numberOf(sample.labels.get('le') ?? ''));
      group.counts.push(sample.value);
    }
  }
  for (const { bounds, counts, count, sum } of groups.values()) {
    const ascending = (list: readonly number[]) => list.every((n, i) => i === 0 || n >= (list[i - 1] ?? 0));
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${name}: no bucket for everything`);
    if (!ascending(bounds) || !ascending(counts)) throw new Error(`${name}: buckets that do not add up`);
    if (counts.at(-1) !== count || sum === undefined)
      throw new Error(`${name}: count or sum that is not that of its buckets`);
  }
}
