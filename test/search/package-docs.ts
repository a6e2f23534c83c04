import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { SearchDocument } from './document.js';

/**
 * Packages whose README and documentation are taken. Packages that only some machines install are
 * not among them.
 */
const PACKAGES = `
  @biomejs/biome @fastify/ajv-compiler @fastify/busboy @fastify/error
  @fastify/fast-json-stringify-compiler @fastify/forwarded @fastify/merge-json-schemas
  @fastify/proxy-addr @ioredis/commands @jridgewell/sourcemap-codec @opentelemetry/api
  @oxc-project/types @pinojs/redact @rolldown/pluginutils @standard-schema/spec @types/chai
  @types/deep-eql @types/estree @types/node @types/yargs @types/yargs-parser @vitest/expect
  @vitest/mocker @vitest/pretty-format @vitest/runner @vitest/snapshot @vitest/spy @vitest/utils
  abstract-logging ajv ajv-formats ansi-regex ansi-styles assertion-error atomic-sleep avvio
  bintrees bullmq chai chardet chokidar cliui cluster-key-slot colorette convert-source-map cookie
  cron-parser csv-parse dateformat debug denque dequal detect-libc dom-serializer domelementtype
  domhandler domutils emoji-regex end-of-stream entities es-module-lexer escalade estree-walker
  eventemitter3 exifreader expect-type fast-check fast-copy fast-decode-uri-component
  fast-deep-equal fast-json-stringify fast-querystring fast-safe-stringify fast-uri fastify fastq
  fdir fflate find-my-way get-caller-file get-east-asian-width help-me htmlparser2 ignore ioredis
  ipaddr.js joycon json-schema-ref-resolver json-schema-traverse light-my-request lightningcss
  lowdb luxon magic-string mime minimist ms msgpackr nanoid node-abort-controller node-sqlite3-wasm
  obug on-exit-leak-free once p-queue p-timeout pathe pdfjs-dist picocolors picomatch pino
  pino-abstract-transport pino-pretty pino-std-serializers playwright-core postal-mime postcss
  preact process-warning prom-client pump pure-rand quick-format-unescaped readdirp real-require
  redis-errors require-from-string ret reusify rfdc rolldown safe-regex2 safe-stable-stringify
  secure-json-parse semver set-cookie-parser siginfo sonic-boom source-map-js split2 stackback
  standard-as-callback std-env steno string-width strip-ansi strip-json-comments tdigest
  thread-stream tinybench tinyexec tinyglobby tinyrainbow toad-cache tslib typescript undici
  undici-types uplot vite vitest why-is-node-running wrap-ansi wrappy y18n yargs yargs-parser zod
`;

/** Texts of licences, and data of the packages' own tests. */
const LEFT_OUT = /(^|\/)(licen[cs]e\.md$|tests?\/|node_modules\/)/i;

/**
 * Reads the Markdown files of the packages. The name of a file is `packages/` and its path below
 * `node_modules`.
 *
 * @throws Error when a package of the list is not installed
 */
export function packageDocuments(nodeModules: string): SearchDocument[] {
  return PACKAGES.trim()
    .split(/\s+/)
    .flatMap((name) => {
      const directory = join(nodeModules, name);
      if (!existsSync(directory))
        throw new Error(`the package ${name} is not installed: correct the list of packages`);
      return markdownFiles(directory).map((path) => {
        const text = readFileSync(join(directory, path), 'utf8');
        const title = /^#+ (.*)$/m.exec(text)?.[1]?.trim();
        return {
          file: `packages/${name}/${path}`,
          ...(title === undefined ? {} : { title }),
          text,
          facts: { kind: 'package', package: name },
        };
      });
    });
}

function markdownFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.md$/i.test(entry.name))
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    .filter((path) => !LEFT_OUT.test(path))
    .sort();
}
