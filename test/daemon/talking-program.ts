import { reportError } from '../../src/cli/output.js';
import { createLog } from '../../src/daemon/log.js';
import { PeersyncError } from '../../src/lib/errors.js';

// Says one thing of each kind, or complains.
if (process.argv[2] === 'complain') {
  reportError(
    new PeersyncError({ code: 'BAD', message: 'It did not go well.', hint: 'Do it again.' }),
    {
      config: 'config.json',
      json: false,
    },
  );
} else {
  const log = await createLog({ level: 'debug', fd: 1, terminal: false });
  log.debug({ event: 'detail' }, 'a detail');
  log.info({ event: 'confirmed', tookMs: 1000 }, 'confirmed inbox/größe.txt (1s after its push)');
  log.warn({}, 'two\nlines,\u001b[31m red and\u0007 a bell\u202e\u009b');
  log.error({ code: 'X' }, 'broken');
  log.error({ err: new Error('no') }, 'the thread broke down: no');
}
