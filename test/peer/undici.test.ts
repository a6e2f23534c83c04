import * as whole from 'undici';
import { expect, it } from 'vitest';
import * as parts from '../../src/peer/undici.js';

// They are taken from files of undici that its documentation does not name.
it('the parts of undici that are loaded are those that its main module exports', () => {
  expect(parts.Client).toBe(whole.Client);
  expect(parts.buildConnector).toBe(whole.buildConnector);
  expect(parts.errors).toBe(whole.errors);
});
