import { isFields, type Fields } from '../model/fields.js'

/** What a line parses to, when it is one JSON object. */
export function parseRecord(line: Buffer): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'))
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}
