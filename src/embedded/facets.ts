import { parseUrl } from '../lib/text.js';
import { type Database, int, text } from './database.js';
import { DATE, exactType } from './filters.js';
import { type Condition, selectOf } from './query.js';

/** The most results that are counted. More would take too long. */
export const MAX_FACETED = 2_000;
/** The most values of a facet. */
const MAX_VALUES = 8;

/** A property of results, and how many results have each of its values. */
export interface Facet {
  readonly name: 'Collection' | 'Type' | 'Year' | 'Author';
  readonly values: readonly {
    readonly value: string;
    readonly documents: number;
    /** The filter that restricts a query to it. */
    readonly filter: string;
  }[];
}

/** Counts the results of a condition. @returns the facets that tell results apart */
export function facetsOf(condition: Condition, database: Database): readonly Facet[] {
  const counts = {
    Collection: new Map<string, number>(),
    Type: new Map<string, number>(),
    Year: new Map<string, number>(),
    Author: new Map<string, number>(),
  };
  const add = (name: Facet['name'], value: string | undefined): void => {
    if (value) counts[name].set(value, (counts[name].get(value) ?? 0) + 1);
  };
  const sql = `SELECT d.url, d.collections, d.author, ${DATE} AS at FROM documents AS d
    WHERE d.id IN (${selectOf(condition)})`;
  let documents = 0;
  for (const row of database.rows(sql, ...condition.values)) {
    documents += 1;
    for (const name of JSON.parse(text(row, 'collections')) as string[]) add('Collection', name);
    add('Type', typeOf(text(row, 'url')));
    add('Year', String(new Date(int(row, 'at')).getUTCFullYear()));
    // A filter has no way to write a quotation mark.
    if (row.author !== null && !text(row, 'author').includes('"'))
      add('Author', text(row, 'author'));
  }
  const names = Object.keys(counts) as Facet['name'][];
  return names.flatMap((name) => {
    const values = [...counts[name]].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
    // A value that all results have restricts nothing.
    if (!values.some(([, count]) => count < documents)) return [];
    return {
      name,
      values: values.slice(0, MAX_VALUES).map(([value, count]) => ({
        value,
        documents: count,
        filter: filterOf(name, value),
      })),
    };
  });
}

function typeOf(url: string): string | undefined {
  const path = parseUrl(url)?.pathname ?? '';
  return /\.([a-z0-9]{1,8})$/i.exec(path)?.[1]?.toLowerCase();
}

const FIELDS = { Collection: 'collection', Type: 'type', Year: 'date', Author: 'author' } as const;

function filterOf(name: Facet['name'], value: string): string {
  const written = name === 'Type' ? exactType(value) : value;
  return `${FIELDS[name]}:${/[\s()]/.test(written) ? `"${written}"` : written}`;
}
