// Runs before each file of tests: what they left to be done afterwards is done. In a file of its
// own because files of tests share a process, and what a module does when it is imported is done
// once only there.
import { afterAll, afterEach } from 'vitest';
import { end } from './afterwards.js';

afterEach(() => end('test'));
afterAll(() => end('file'));
