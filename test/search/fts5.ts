import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import sqlite from 'node-sqlite3-wasm';
import type { SearchDocument } from './document.js';
import { type Answer, type Engine, partsOf, SHOWN } from './engine.js';
import type { JudgedQuery } from './relevance.js';

/**
 * FTS5 as a competent person sets it up: the porter stemmer, marks of letters removed, bm25 with
 * the title and the name above the text. All words are needed; if no document has all of them, any.
 */
export function fts5(documents: readonly SearchDocument[], directory: string): Engine {
  mkdirSync(directory, { recursive: true });
  const database = new sqlite.Database(join(directory, 'fts5.db'));
  database.exec(
    `CREATE VIRTUAL TABLE d USING fts5(file, title, text, tokenize = 'porter unicode61 remove_diacritics 2')`,
  );
  database.exec('BEGIN');
  const insert = database.prepare('INSERT INTO d (file, title, text) VALUES (?, ?, ?)');
  for (const { file, title, text } of documents) insert.run([file, title ?? '', text]);
  insert.finalize();
  database.exec('COMMIT');

  function found(match: string): string[] {
    const rows = database.all(
      `SELECT file FROM d WHERE d MATCH ? ORDER BY bm25(d, 4, 4, 1) LIMIT ${SHOWN}`,
      [match],
    );
    return rows.map(({ file }) => String(file));
  }

  /** Finds nothing where the operators make no expression. */
  function foundByAll(query: JudgedQuery): string[] {
    try {
      return found(expression(query));
    } catch {
      return [];
    }
  }

  return {
    name: 'FTS5',
    ask(query): Answer {
      const exact = foundByAll(query);
      if (exact.length > 0) return { files: exact, isAnnounced: false };
      return { files: found(anyWord(query)), isAnnounced: true };
    },
    end() {
      database.close();
    },
  };
}

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

/** The query in the language of FTS5, in which AND has to be written beside parentheses. */
function expression(query: JudgedQuery): string {
  const parts = partsOf(query.query);
  let text = '';
  let needsOperator = false;
  for (const [i, part] of parts.entries()) {
    if (part.type === 'operator') {
      if (part.text === '(' && needsOperator) text += ' AND';
      // FTS5 has NOT between two terms, and no AND before it.
      const isAndNot = part.text === 'AND' && isNot(parts[i + 1]);
      if (!isAndNot) text += ` ${part.text}`;
      needsOperator = part.text === ')';
      continue;
    }
    if (part.type === 'excluded') text += ' NOT';
    else if (needsOperator) text += ' AND';
    text += ` ${quoted(part.text)}`;
    if (query.typed === true && i === parts.length - 1) text += '*';
    needsOperator = true;
  }
  return text;
}

function isNot(part: ReturnType<typeof partsOf>[number] | undefined): boolean {
  return part?.type === 'operator' && part.text === 'NOT';
}

function anyWord(query: JudgedQuery): string {
  return partsOf(query.query)
    .filter(({ type }) => type === 'word' || type === 'phrase')
    .flatMap(({ text }) => text.split(/\s+/))
    .map(quoted)
    .join(' OR ');
}
