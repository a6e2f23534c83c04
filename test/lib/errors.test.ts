import { expect, it } from 'vitest';
import { type ErrorTable, EXIT, tableError } from '../../src/lib/errors.js';

const ERRORS = {
  DISK_FULL: {
    message: 'The disk of {dir} is full ({left} bytes are left).',
    hint: 'Free some space: `rm -r {dir|shell}`. {more}',
  },
  BAD_REQUEST: { status: 400, exitCode: EXIT.usage, message: 'Not {}.', hint: 'Ask again.' },
} as const satisfies ErrorTable;

class SomeError extends tableError(ERRORS) {}

it('an error has the texts of its table with the values, which logs get as details', () => {
  const cause = new Error('ENOSPC');
  const values = { dir: "it's {left}", left: 0, more: '' };
  const error = new SomeError('DISK_FULL', values, { cause });
  expect(error).toMatchObject({
    name: 'SomeError',
    code: 'DISK_FULL',
    message: "The disk of it's {left} is full (0 bytes are left).",
    hint: "Free some space: `rm -r 'it'\\''s {left}'`.",
    exitCode: EXIT.failure,
    details: values,
    cause,
  });
});

it('an error may have another hint, other details and another exit code than its table', () => {
  const context = { hint: 'Give up.', details: { n: 1 }, exitCode: EXIT.quarantined };
  const error = new SomeError('BAD_REQUEST', {}, context);
  expect(error).toMatchObject({
    message: 'Not {}.',
    hint: 'Give up.',
    details: { n: 1 },
    status: 400,
    exitCode: EXIT.quarantined,
  });
});

it('a code that is computed takes the values of all codes', () => {
  const values = { dir: 'd', left: 1, more: '' };
  for (const code of ['DISK_FULL', 'BAD_REQUEST'] as (keyof typeof ERRORS)[])
    expect(new SomeError(code, values).code).toBe(code);
});

it('the compiler refuses a code or a value that the table does not have', () => {
  // @ts-expect-error: there is no such code.
  expect(() => new SomeError('UNKNOWN', {})).toThrow(TypeError);
  // @ts-expect-error: `left` and `more` are missing.
  expect(new SomeError('DISK_FULL', { dir: 'd' }).message).toContain('{left}');
});
