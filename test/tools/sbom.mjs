// Prints what is in peersync's files and what is installed with them, in CycloneDX, by npm's own
// command. That is run where there is nothing for development: it would leave out a package that
// something for development wants as well. And it calls the whole by the name of the directory that
// it is run in.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
const read = (name) => JSON.parse(readFileSync(join(root, name), 'utf8'));
const { devDependencies, dependencies, ...ours } = read('package.json');
const lock = read('package-lock.json');
const licenses = readFileSync(join(root, 'dist/licenses.txt'), 'utf8');
const isBundled = ([name]) => licenses.includes(`\n${name}@`) || licenses.startsWith(`${name}@`);
ours.dependencies = {
  ...dependencies,
  ...Object.fromEntries(Object.entries(devDependencies).filter(isBundled)),
};

const place = mkdtempSync(join(tmpdir(), 'sbom-'));
try {
  const directory = join(place, ours.name);
  mkdirSync(directory);
  writeFileSync(join(directory, 'package.json'), JSON.stringify(ours));
  writeFileSync(join(directory, 'package-lock.json'), JSON.stringify(lock));
  // Packages for development are removed from the list.
  execFileSync(
    'npm',
    ['prune', '--silent', '--package-lock-only', '--offline', '--ignore-scripts'],
    {
      cwd: directory,
    },
  );
  const options = [
    '--sbom-format',
    'cyclonedx',
    '--sbom-type',
    'application',
    '--omit',
    'dev',
    '--package-lock-only',
  ];
  execFileSync('npm', ['sbom', '--silent', ...options], { cwd: directory, stdio: 'inherit' });
} finally {
  rmSync(place, { recursive: true });
}
