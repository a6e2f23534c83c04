import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { openControl } from '../../src/daemon/control.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const trouble = { code: 'STATE_FULL', message: 'The disk is full.', hint: 'Free some space there.' };
let close: (() => Promise<void>) | undefined;
afterEach(() => close?.());

it('a reload that cannot finish says what it waits for, and its answer when it comes', {
  timeout: 240_000,
}, async () => {
  const directory = temporaryDirectory();
  const config = writeConfig(directory, { peer: {} });
  mkdirSync(join(directory, 'state'));
  let finish: () => void = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  close = await openControl(
    join(directory, 'state'),
    async function* ({ ask }) {
      if (ask === 'status') yield { stateTrouble: trouble };
      if (ask !== 'reload') return;
      await finished;
      yield { changes: ['folder more: added'], restart: [] };
    },
    silentLogger,
  );
  const reload = new Running(['reload', '-c', config]);
  await until(() => reload.stderr !== '', 'it says something', 120_000);
  expect(reload.stderr).toBe(
    'peersync: The daemon takes it up, and cannot finish: The disk is full.\n  Free some space there.\n',
  );
  finish();
  expect(await reload.ended).toMatchObject({ code: 0, stdout: 'folder more: added\n' });
});
