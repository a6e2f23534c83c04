// Breaks promises on purpose, and shows that a test fails at each: `npm run mutants [ID…]`.
//
// Each entry of mutants.json replaces one text of src, in a copy of this checkout. Its tests pass
// before, and one of them has to fail with the replacement. Exit code 1 means that a promise was
// broken and no test noticed it, or that an entry cannot be tried as it stands.
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
/** The parts of the checkout that tests need. */
const COPIED = ['src', 'test', 'package.json', 'tsconfig.json', 'README.md', 'config.example.json'];
/** A replacement may make a test wait for ever. */
const LONGEST_RUN_MS = 3 * 60_000;

/** Thrown for an entry that cannot be tried. */
class Unusable extends Error {}

const copy = mkdtempSync(join(tmpdir(), 'peersync-mutants-'));
/** The running tests. */
let child;
process.on('exit', () => {
  endTests();
  rmSync(copy, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

process.exitCode = (await tryAll(chosen(process.argv.slice(2)))) ? 0 : 1;

/** Returns the entries with these ids, or all of them. */
function chosen(ids) {
  const all = JSON.parse(readFileSync(join(import.meta.dirname, 'mutants.json'), 'utf8'));
  const unknown = ids.filter((id) => !all.some((mutant) => mutant.id === id));
  if (unknown.length > 0) {
    console.error(`There is no entry ${unknown.join(', ')} in test/tools/mutants.json.`);
    process.exit(1);
  }
  return ids.length === 0 ? all : all.filter(({ id }) => ids.includes(id));
}

/** Tries the entries one after the other. Returns whether all promises are kept by tests. */
async function tryAll(mutants) {
  for (const part of COPIED) cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  /** The result of the unbroken run of each set of tests: undefined if they passed. */
  const unbroken = new Map();
  let kept = 0;
  let skipped = 0;
  for (const mutant of mutants) {
    const { id, needsRoot = false, promise } = mutant;
    if (needsRoot && process.geteuid?.() !== 0) {
      skipped += 1;
      console.log(`${id}: ${promise} Not tried: its test needs root.`);
      continue;
    }
    const result = await tryOne(mutant, unbroken);
    if (result.isCaught) kept += 1;
    console.log(`${id}: ${promise} ${result.text}`);
  }
  const left = skipped === 0 ? '' : ` ${skipped} were not tried.`;
  console.log(`${kept} of ${mutants.length} broken promises were caught.${left}`);
  return kept + skipped === mutants.length;
}

/** Tries one entry, and puts the file of the copy back. */
async function tryOne(mutant, unbroken) {
  const path = join(copy, mutant.file);
  const source = readFileSync(path, 'utf8');
  try {
    const broken = replaced(source, mutant);
    await checkUnbroken(mutant, unbroken);
    writeFileSync(path, broken);
    const failed = await firstFailure(mutant);
    if (failed === undefined) return { isCaught: false, text: 'SURVIVED' };
    return { isCaught: true, text: `Caught by "${failed}"` };
  } catch (error) {
    if (!(error instanceof Unusable)) throw error;
    return { isCaught: false, text: `UNUSABLE: ${error.message}` };
  } finally {
    writeFileSync(path, source);
  }
}

/** Returns the source with the replacement. @throws Unusable if the text is not there once */
function replaced(source, { file, find, replace }) {
  const count = source.split(find).length - 1;
  if (count !== 1) throw new Unusable(`${file} has the text ${count} times: ${find.trim()}`);
  return source.replace(find, () => replace);
}

/** @throws Unusable if the tests fail without the replacement */
async function checkUnbroken(mutant, unbroken) {
  const key = JSON.stringify([mutant.tests.toSorted(), mutant.name]);
  if (!unbroken.has(key)) unbroken.set(key, await firstFailure(mutant));
  const failed = unbroken.get(key);
  if (failed !== undefined) throw new Unusable(`a test fails without it as well: "${failed}"`);
}

/**
 * Runs the tests of an entry. Returns the title of the first that failed, undefined if all passed.
 *
 * @throws Unusable if no test ran, or a file of tests could not be loaded
 */
async function firstFailure({ name, tests }) {
  const report = join(copy, 'report.json');
  rmSync(report, { force: true });
  const only = name === undefined ? [] : ['-t', name];
  const vitest = join(copy, 'node_modules/vitest/vitest.mjs');
  const options = ['--config', 'test/vitest.config.ts', '--bail', '1'];
  const reporting = ['--reporter', 'json', '--outputFile', report];
  await run([vitest, 'run', ...options, ...reporting, ...only, ...tests]);
  const files = readReport(report);
  const results = files.flatMap(({ assertionResults }) => assertionResults);
  const failed = results.find(({ status }) => status === 'failed');
  if (failed !== undefined) return failed.fullName;
  const unloaded = files.find(({ message, status }) => status === 'failed' && message !== '');
  if (unloaded !== undefined) {
    const test = relative(copy, unloaded.name);
    throw new Unusable(`${test} cannot be loaded: ${unloaded.message.split('\n')[0]}`);
  }
  if (!results.some(({ status }) => status === 'passed')) throw new Unusable('no test ran');
  return undefined;
}

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).testResults;
  } catch {
    const limit = `${LONGEST_RUN_MS / 60_000} minutes`;
    throw new Unusable(`its tests left no report: they crashed, or took longer than ${limit}`);
  }
}

/** Runs Node in the copy, in a group of processes of its own. */
async function run(args) {
  child = spawn(process.execPath, args, { cwd: copy, stdio: 'ignore', detached: true });
  const timer = setTimeout(endTests, LONGEST_RUN_MS);
  await new Promise((ended) => child.on('exit', ended));
  clearTimeout(timer);
  endTests();
}

/** Ends the tests with every process that they started. */
function endTests() {
  if (child === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}
