import { readBuild, VERSION } from '../lib/process.js';

const { commit, modified } = readBuild();
const NAME = [VERSION, commit, modified ? 'modified' : undefined].filter(Boolean).join(' ');

/**
 * Returns the version and the source of this program. Owner and workers must have the same: another
 * one may read documents in another way.
 */
export function buildName(): string {
  return NAME;
}
