import { z } from 'zod';
import { duration, flag, oneOf, path, peerUrl, size, text, wholeNumber } from './fields.js';
import { secretSchema } from './secret.js';

/** The `peer` of the configuration file. */
export const peerSchema = z
  .strictObject({
    url: peerUrl().prefault('embedded').meta({
      description: 'The peer: `"embedded"`, or the base URL of a search service.',
      change: 'Give a base URL when you have a peer of your own; the embedded one needs nothing else.',
    }),
    dialect: oneOf(['auto', 'standard', 'yacy'])
      .default('auto')
      .meta({
        description:
          'How this kind of peer speaks the API: `standard` is the specification, `yacy` a YaCy peer, `auto` what the peer ' +
          'turns out to be.',
        change: 'Leave it, unless something between here and the peer makes it look like another kind.',
      }),
    auth: z
      .strictObject({
        username: text('a user name without a colon', /^[^:\p{Cc}]+$/u).meta({
          description: 'The user that may push.',
          change: 'Use a user of the peer with administrator rights.',
        }),
        password: secretSchema.meta({
          description:
            'Where the password stands: `{ "env": "NAME" }`, `{ "file": "path" }` or `{ "credential": "name" }` ' +
            "(systemd's `LoadCredential=`); never the password itself.",
          change: 'Prefer `credential` under systemd, `file` (mode 0600) elsewhere.',
        }),
      })
      .optional()
      .meta({
        description: 'Credentials for the peer, sent only to `peer.url`; the embedded peer needs none.',
      }),
    tls: z
      .strictObject({
        ca: path('a PEM file with CA certificates').optional().meta({
          description: 'A PEM file with certificates to trust besides those that Node brings along.',
          change: "Set it when the peer's certificate comes from your own authority.",
        }),
      })
      .prefault({})
      .meta({ description: 'For a peer with an https URL.' }),
    timeouts: z
      .strictObject({
        connect: duration('100ms', '10m').prefault('10s').meta({
          description: 'Longest wait for a connection (with TLS).',
          change: 'Raise it over slow or lossy links.',
        }),
        headers: duration('100ms', '1h').prefault('30s').meta({
          description: 'Longest wait for the first byte of an answer after the request was sent.',
          change: 'Raise it when the peer indexes before it answers (`push.synchronous`).',
        }),
        body: duration('100ms', '1h').prefault('60s').meta({
          description: 'Longest silence within an answer.',
          change: 'Rarely needed.',
        }),
        total: duration('1s', '1d').prefault('5m').meta({
          description:
            'Longest time for one whole request; twelve times as long for shared objects and tables, which stream.',
          change: 'Raise it for large files over slow links.',
        }),
      })
      .prefault({})
      .meta({ description: 'How long to wait for the peer before a request counts as failed.' }),
    maxAnswer: size('1 KiB', '1 GiB').prefault('16 MiB').meta({
      description:
        'Largest answer that is held in memory; a larger one is refused. What streams (shared objects, tables) has limits of its own: `maxSize`, `--max-size`.',
      change: 'Raise it when the editor of a table, or a citation, is larger.',
    }),
    embedded: z
      .strictObject({
        dir: path('a directory').default('./data/peer').meta({
          description: 'Where the embedded peer keeps its index and its `admin-password`.',
          change: 'Put it on a disk with room for about twice your documents.',
        }),
        port: wholeNumber(0, 65_535).default(8386).meta({
          description: 'The port on loopback of the embedded peer and its search page; 0 takes any free one.',
          change: 'Change it when the port is in use.',
        }),
        requireAuth: flag().default(false).meta({
          description:
            'Whether everything on the embedded peer needs its administrator, the search page and shared objects too.',
          change: 'Set it when other people have accounts on this machine.',
        }),
      })
      .prefault({})
      .meta({ description: 'Only for `peer.url` = `"embedded"`.' }),
  })
  .prefault({})
  .meta({ description: 'The search service that documents go to.' });
