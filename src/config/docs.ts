import { type Description, describeConfig } from './description.js';

const PREAMBLE =
  'Durations are text with units (`"250ms"`, `"2s"`, `"15m"`, `"1h30m"`, `"7d"`), sizes text with a unit (`"64 KiB"`, ' +
  '`"8 MiB"`, `"20 MB"`) or a number of bytes. Relative paths are relative to the configuration file. Patterns have ' +
  'gitignore syntax. Unknown keys are errors.';

const HEAD = '| key | what it is | default | when to change it |\n| --- | --- | --- | --- |\n';

/** The README's configuration section, as Markdown: a table for each part of the file. */
export function configDocs(): string {
  const root = describeConfig();
  const parts = Object.entries(root.properties ?? {});
  const plain = parts.filter(([, node]) => fieldsOf(node) === undefined);
  const required = root.required ?? [];
  const sections = parts.flatMap(([name, node]) => {
    const fields = fieldsOf(node);
    if (!fields) return [];
    const prefix = node.items ? `${name}[]` : name;
    return [`### \`${name}\`\n\n${node.description ?? ''}\n\n${HEAD}${rows(fields, prefix).join('\n')}\n`];
  });
  const loose = plain.map(([name, node]) => row(name, node, required.includes(name)));
  return `${PREAMBLE}\n\n${[...sections, `### Beside these\n\n${HEAD}${loose.join('\n')}\n`].join('\n')}`;
}

function rows(node: Description, prefix: string): string[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const key = `${prefix}.${name}`;
    const isRequired = node.required?.includes(name) === true;
    const fields = fieldsOf(child);
    if (!fields) return [row(key, child, isRequired)];
    const inner = rows(fields, child.items ? `${key}[]` : key);
    // A part that is always there needs no row of its own: its keys say everything.
    const isAlwaysThere = child.default !== undefined && child.items === undefined;
    return isAlwaysThere ? inner : [row(key, child, isRequired), ...inner];
  });
}

/** The object whose keys are documented below this one; a choice of one key is documented as a value. */
function fieldsOf(node: Description): Description | undefined {
  const object = node.items ?? node;
  return object.properties && object.maxProperties === undefined ? object : undefined;
}

function row(key: string, node: Description, isRequired: boolean): string {
  const cells = [`\`${key}\``, node.description ?? '', defaultText(node, isRequired), node.change ?? ''];
  return `| ${cells.join(' | ')} |`;
}

function defaultText(node: Description, isRequired: boolean): string {
  if (isRequired) return 'required';
  if (node.otherwise !== undefined) return node.otherwise;
  return node.default === undefined ? 'none' : `\`${JSON.stringify(node.default)}\``;
}
