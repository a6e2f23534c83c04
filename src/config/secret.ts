import { z } from 'zod';
import { path, text } from './fields.js';

/** Where a secret stands; never the secret itself. */
export type Secret = { readonly env: string } | { readonly file: string } | { readonly credential: string };

const PLACES =
  '{ "env": "NAME" }, { "file": "path" } or { "credential": "name" }: a secret does not stand in the configuration itself';

export const secretSchema = z
  .strictObject(
    {
      env: text('the name of an environment variable', /^[A-Za-z_][A-Za-z0-9_]*$/)
        .optional()
        .meta({ description: 'The environment variable that holds it.' }),
      file: path('a file that holds only the secret')
        .optional()
        .meta({ description: 'A file that holds only the secret, readable by peersync alone.' }),
      credential: text('the plain name of a systemd credential', /^(?!\.\.?$)[A-Za-z0-9_.-]{1,255}$/)
        .optional()
        .meta({ description: 'The name of a systemd credential, found in `$CREDENTIALS_DIRECTORY`.' }),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? PLACES : undefined) },
  )
  .meta({ minProperties: 1, maxProperties: 1 })
  .transform(({ env, file, credential }, context): Secret => {
    const given = [
      ...(env === undefined ? [] : [{ env }]),
      ...(file === undefined ? [] : [{ file }]),
      ...(credential === undefined ? [] : [{ credential }]),
    ];
    const [secret] = given;
    if (secret !== undefined && given.length === 1) return secret;
    context.issues.push({ code: 'custom', message: `exactly one of ${PLACES}`, input: undefined });
    return z.NEVER;
  });
