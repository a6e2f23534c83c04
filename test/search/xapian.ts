import { spawnSync } from 'node:child_process';
import type { SearchDocument } from './document.js';
import { type Answer, type Engine, SHOWN } from './engine.js';
import type { JudgedQuery } from './relevance.js';

const MOST_BYTES = 64 * 2 ** 20;

/**
 * Xapian through its Python module (`apt-get install python3-xapian`). All queries are asked at
 * once.
 *
 * @param program the path of `ask_xapian.py`
 * @returns undefined where the module is missing
 */
export function xapian(
  documents: readonly SearchDocument[],
  queries: readonly JudgedQuery[],
  program: string,
): Engine | undefined {
  const python = ['/usr/bin/python3', 'python3'].find(
    (name) => spawnSync(name, ['-c', 'import xapian'], { stdio: 'ignore' }).status === 0,
  );
  if (python === undefined) return undefined;
  const input = JSON.stringify({
    documents: documents.map(({ file, title = '', text }) => ({ file, title, text })),
    queries,
    shown: SHOWN,
  });
  const ended = spawnSync(python, [program], { input, encoding: 'utf8', maxBuffer: MOST_BYTES });
  if (ended.status !== 0)
    throw new Error(`ask_xapian.py ended with ${ended.status}: ${ended.stderr}`);
  const answers = JSON.parse(ended.stdout) as readonly Answer[];
  return {
    name: 'Xapian',
    ask(query) {
      const answer = answers[queries.indexOf(query)];
      if (answer === undefined) throw new Error(`Xapian was not asked ${query.query}`);
      return answer;
    },
    end() {},
  };
}
