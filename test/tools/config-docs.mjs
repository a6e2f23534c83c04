// The reference of the configuration, as Markdown: a table for each part of the file, from the JSON
// Schema.

const PREAMBLE =
  'A duration is text with a unit: `"250ms"`, `"2s"`, `"15m"`, `"1h30m"`, `"7d"`. A size is text with a unit (`"64 KiB"`, ' +
  '`"8 MiB"`, `"20 MB"`) or a number of bytes. Relative paths are relative to the configuration file. `~` is the home ' +
  'directory of the user that peersync runs as. Patterns (`include`, `ignore`, `rules`, and files named `.peersyncignore` in ' +
  'any directory) have the syntax of `.gitignore`. Unknown keys are errors.';

const HEAD = '| key | what it is, and when to change it | default |\n| --- | --- | --- |\n';

export function configDocs(root) {
  const parts = Object.entries(root.properties);
  const sections = parts.flatMap(([name, node]) => {
    const fields = fieldsOf(node);
    if (fields === undefined) return [];
    const prefix = node.items ? `${name}[]` : name;
    return [
      `### \`${name}\`\n\n${node.description}\n\n${HEAD}${rows(fields, prefix).join('\n')}\n`,
    ];
  });
  const loose = parts
    .filter(([, node]) => fieldsOf(node) === undefined)
    .map(([name, node]) => row(name, node, root.required.includes(name)));
  return `${PREAMBLE}\n\n${[...sections, `### Beside these\n\n${HEAD}${loose.join('\n')}\n`].join('\n')}`;
}

function rows(node, prefix) {
  return Object.entries(node.properties).flatMap(([name, child]) => {
    const key = `${prefix}.${name}`;
    const isRequired = node.required?.includes(name) === true;
    const fields = fieldsOf(child);
    if (fields === undefined) return [row(key, child, isRequired)];
    const inner = rows(fields, child.items ? `${key}[]` : key);
    // A part that is always there needs no row of its own: its keys say everything.
    const isAlwaysThere = child.default !== undefined && child.items === undefined;
    return isAlwaysThere ? inner : [row(key, child, isRequired), ...inner];
  });
}

/** The object whose keys are documented below this one. */
function fieldsOf(node) {
  const object = node.items ?? node;
  return object.properties === undefined ? undefined : object;
}

function row(key, node, isRequired) {
  const usual = node.default === undefined ? 'none' : `\`${JSON.stringify(node.default)}\``;
  return `| \`${key}\` | ${node.description} | ${isRequired ? 'required' : usual} |`;
}
