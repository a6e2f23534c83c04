import type { JsonSchema } from '../../src/config/schema.js';

export function configDocs(root: JsonSchema): string;
