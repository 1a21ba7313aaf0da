/** A value that a manifest may hold. */
export type YamlValue = string | number | boolean | readonly YamlValue[] | { readonly [key: string]: YamlValue }

/** YAML of plain maps and lists. Text is written as JSON strings, which YAML reads the same way; nothing is left to be guessed. */
export function yamlOf(value: YamlValue, indent = ''): string {
  if (Array.isArray(value)) {
    return (value as readonly YamlValue[]).map((item) => `${indent}- ${yamlOf(item, `${indent}  `).slice(isNested(item) ? indent.length + 2 : 0)}`).join('')
  }
  if (typeof value !== 'object') return `${JSON.stringify(value)}\n`
  return Object.entries(value as Readonly<Record<string, YamlValue>>)
    .map(([key, item]) => `${indent}${key}:${isNested(item) ? `\n${yamlOf(item, `${indent}  `)}` : ` ${isEmpty(item) ? emptyText(item) : yamlOf(item)}`}`)
    .join('')
}

function isNested(value: YamlValue): boolean {
  return typeof value === 'object' && !isEmpty(value)
}

function isEmpty(value: YamlValue): boolean {
  return typeof value === 'object' && Object.keys(value).length === 0
}

function emptyText(value: YamlValue): string {
  return Array.isArray(value) ? '[]\n' : '{}\n'
}
