import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { quoted, systemTool } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

it('a daemon under systemd reports its start, readiness, signs of life, status and stop', async () => {
  const directory = temporaryDirectory();
  const heard = join(directory, 'heard');
  writeFileSync(heard, '');
  const path = systemTool('systemd-notify', `(printf '%s ' "$@"; echo) >> ${quoted(heard)}`);
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
  });
  const words = (): string[] =>
    readFileSync(heard, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.trim());
  const running = new Running(['run', '-c', config], {
    env: { NOTIFY_SOCKET: '/not/there', WATCHDOG_USEC: '2000000', ...path },
  });
  await until(() => words().includes('READY=1'), 'it is ready');
  expect(words()[0]).toBe('STATUS=starting: reading what is known');
  await until(
    () => words().filter((word) => word === 'WATCHDOG=1').length >= 3,
    'it gives signs of life',
  );
  await until(
    () => words().includes('STATUS=0 documents confirmed, nothing waiting'),
    'it tells how it stands',
  );
  await running.kill('SIGTERM');
  await until(() => words().includes('STOPPING=1'), 'it notified that it stops');
  const ready = words().indexOf('READY=1');
  expect(words().indexOf('WATCHDOG=1')).toBeGreaterThan(ready);
});
