// Refuses comments beyond 100 columns, which the formatter leaves as they are.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const WIDTH = 100;
const COMMENT = /^\s*(\/\/|\/?\*)/;
/** Words for a tool, which has them in one line, and rows of tables. */
const FREE = /biome-ignore|^\s*(\/\/|\*) \|/;

const list = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'src', 'test'], {
  encoding: 'utf8',
});
const files = list.split('\n').filter((file) => /\.(ts|tsx|mjs|mts|css)$/.test(file));
const wide = files.filter(existsSync).flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line, i) => {
      const isWide = line.length > WIDTH && COMMENT.test(line) && !FREE.test(line);
      return isWide ? [`${file}:${i + 1}: a comment of ${line.length} columns; ${WIDTH} fit`] : [];
    }),
);
for (const line of wide) console.error(line);
process.exitCode = wide.length > 0 ? 1 : 0;
