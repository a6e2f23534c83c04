/**
 * What PDF.js expects of a browser as soon as it is loaded, and uses only to draw. It would take them from a native package of
 * 30 MB, which is not there.
 */
class Unused {}

const globals: Record<string, unknown> = globalThis as never;
for (const name of ['DOMMatrix', 'ImageData', 'Path2D']) globals[name] ??= Unused;
