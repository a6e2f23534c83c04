import { z } from 'zod';
import { duration, text } from './fields.js';
import { parseListen } from './listen.js';
import { secretSchema } from './secret.js';

const LISTEN = '"off", or an IP address and a port such as "127.0.0.1:8385" or "[::1]:8385"';

/** The `status` of the configuration file. */
export const statusSchema = z
  .strictObject({
    listen: text(LISTEN)
      .refine((value) => value === 'off' || parseListen(value) !== undefined, { error: LISTEN })
      .default('127.0.0.1:8385')
      .meta({
        description:
          'Where the status page, `/metrics`, `/healthz` and `/readyz` are served; `"off"`: nowhere.',
        change: 'Change the port when it is in use; an address that others reach needs a `token`.',
      }),
    token: secretSchema.optional().meta({
      description: 'Where the token stands that the page asks for.',
      change:
        'Needed when `listen` is not a loopback address; useful when others have accounts on this machine.',
    }),
  })
  .prefault({})
  .meta({ description: 'The status page and what monitoring reads.' });

/** The `alerts` of the configuration file. */
export const alertsSchema = z
  .strictObject({
    timeToSearch: duration('1s', '30d').optional().meta({
      description:
        'An alarm is raised for a collection when 5 % of its files of the last hour took longer from at rest to confirmed, or one waits longer.',
      change: 'Set it to what you promise your users.',
    }),
  })
  .prefault({})
  .meta({
    description: 'When peersync raises an alarm by itself: in `status`, on the page and in the metrics.',
  });
