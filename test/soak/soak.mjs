// Runs the soak on what is built. Arguments: minutes (10 unless given), seed.
import { spawnSync } from 'node:child_process';

const [minutes = '10', seed] = process.argv.slice(2);
const words = [
  'vitest',
  'run',
  '--config',
  'test/vitest.config.ts',
  '--project',
  'soak',
  '--disable-console-intercept',
];
const env = { ...process.env, SOAK_MINUTES: minutes, ...(seed && { PEERSYNC_TEST_SEED: seed }) };
process.exitCode = spawnSync('npx', words, { stdio: 'inherit', env }).status ?? 1;
