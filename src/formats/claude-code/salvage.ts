/** What can be had from a line that is not one JSON record. */
export interface Salvage {
  /** Records that parse on their own, with the byte offsets of each in the line. */
  readonly records: readonly { readonly value: unknown; readonly start: number; readonly end: number }[]
  /** Backup names that stand anywhere outside of those records. */
  readonly names: readonly string[]
  /** True when the records cover the line: nothing is lost. */
  readonly whole: boolean
}

const recordStart = /\{"(?:type|parentUuid|messageId|sessionId)":/g
const blanks: ReadonlySet<string> = new Set([' ', '\t', '\r'])
const backupName = /[0-9a-f]{16}@v[1-9][0-9]*/g
/** Bytes of text that may be parsed in vain for one line, and ends looked at: a hostile line costs bounded time. */
const parseBudget = 64 * 1024 * 1024
const endsBudget = 100_000

/**
 * Takes apart a line in which records were cut or share a line (R74): a cut beginning followed by a whole record, or
 * whole records back to back. Only what is certain is returned; names found in the rest count as in use.
 */
export function salvage(line: Buffer): Salvage {
  // Latin-1 maps bytes to characters one to one: positions in the text are offsets in the line.
  const text = line.toString('latin1')
  const starts = Array.from(text.matchAll(recordStart), (match) => match.index)
  const records: { value: unknown; start: number; end: number }[] = []
  let rest = ''
  let from = 0
  const budget = { bytes: parseBudget, ends: endsBudget }
  for (const [index, start] of starts.entries()) {
    if (start < from) continue
    const found = recordAt(line, text, starts, index, budget)
    if (budget.ends <= 0 || budget.bytes <= 0) break
    if (found === undefined) continue
    records.push({ ...found, start })
    rest += `${text.slice(from, start)} `
    from = found.end
  }
  rest += text.slice(from)
  return { records, names: namesInText(rest), whole: records.length > 0 && rest.trim() === '' }
}

/** Backup names in bytes that belong to a line too long to parse. */
export function namesIn(bytes: Buffer): string[] {
  return namesInText(bytes.toString('latin1'))
}

function namesInText(text: string): string[] {
  return [...new Set(Array.from(text.matchAll(backupName), ([name]) => name))]
}

/** The record that begins at the start of this index: it ends with the line, or where another one begins. */
function recordAt(
  line: Buffer,
  text: string,
  starts: readonly number[],
  index: number,
  budget: { bytes: number; ends: number },
): { readonly value: unknown; readonly end: number } | undefined {
  const start = starts[index] ?? 0
  for (let next = index; next < starts.length && budget.ends > 0 && budget.bytes > 0; next += 1) {
    budget.ends -= 1
    let end = next === index ? text.length : (starts[next] ?? 0)
    while (end > start && blanks.has(text[end - 1] ?? '')) end -= 1
    if (text[end - 1] !== '}') continue
    try {
      return { value: JSON.parse(line.toString('utf8', start, end)) as unknown, end }
    } catch {
      budget.bytes -= end - start
    }
  }
  return undefined
}
