/** The fields of a JSON object. */
export type Fields = Readonly<Record<string, unknown>>

/** True for a JSON object; a list is none. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Text of a field, or `undefined` when it is anything else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
