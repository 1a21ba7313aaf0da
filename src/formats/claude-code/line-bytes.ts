/*
 * What can be told of a line from its bytes alone, without parsing it. `Buffer.indexOf` is a memchr for the first byte of
 * a short needle, so needles begin with a byte that is rare in JSON: "File" stands in both `trackedFileBackups` and
 * `backupFileName`, "Uuid" in `parentUuid`, "UseResu" in `toolUseResult`, "@v" in every backup name.
 */
export const fileNeedle = Buffer.from('File')
export const uuidNeedle = Buffer.from('Uuid":')
export const resultNeedle = Buffer.from('UseResu')
export const nameNeedle = Buffer.from('@v')

export const lineFeed = 0x0a
export const carriageReturn = 0x0d
export const openBrace = 0x7b
export const closeBrace = 0x7d
const quote = 0x22
const zero = 0x30
const nine = 0x39
const letterA = 0x61
const letterF = 0x66
const hashLength = 16

const historyHead = '{"type":"file-history-'
const knownHistoryHeads = [`${historyHead}snapshot",`, `${historyHead}delta",`]

/** Where the first line begins: behind a byte order mark, which is looked for at the start of a file only (R82). */
export function afterByteOrderMark(view: Buffer): number {
  return view[0] === 0xef && view[1] === 0xbb && view[2] === 0xbf ? 3 : 0
}

/** True when the line at `start` begins as history lines do. */
export function isHistoryHead(view: Buffer, start: number): boolean {
  return view[start + 9] === letterF && view.toString('latin1', start, start + historyHead.length) === historyHead
}

/** True when the line at `start` begins as history lines of a known type do. */
export function isKnownHistoryHead(view: Buffer, start: number): boolean {
  return isHistoryHead(view, start) && knownHistoryHeads.some((head) => view.toString('latin1', start, start + head.length) === head)
}

/** True when the `File` at `at` is part of an unescaped key of a history record. */
export function namesHistory(view: Buffer, at: number): boolean {
  if (view[at + 4] === 0x42) return view.toString('latin1', at - 8, at + 13) === '"trackedFileBackups":'
  return view[at + 4] === 0x4e && view.toString('latin1', at - 7, at + 10) === '"backupFileName":'
}

/** True when an unescaped key of a history record stands in the line. */
export function hasHistoryKey(line: Buffer): boolean {
  for (let at = line.indexOf(fileNeedle); at !== -1; at = line.indexOf(fileNeedle, at + 4)) if (namesHistory(line, at)) return true
  return false
}

/** True when the `@v` at `at` is part of a backup name. */
export function isInBackupName(view: Buffer, at: number): boolean {
  const digit = view[at + 2] ?? 0
  if (digit <= zero || digit > nine || at < hashLength) return false
  for (let index = at - hashLength; index < at; index += 1) {
    const byte = view[index] ?? 0
    if ((byte < zero || byte > nine) && (byte < letterA || byte > letterF)) return false
  }
  return true
}

/** How many backup names stand in the bytes of a line. */
export function countBackupNames(line: Buffer): number {
  let count = 0
  for (let at = line.indexOf(nameNeedle); at !== -1; at = line.indexOf(nameNeedle, at + 2)) if (isInBackupName(line, at)) count += 1
  return count
}

/** True when the `Uuid":` at `at` belongs to a record that begins inside the line that begins at `start`. */
export function beginsRecordInside(view: Buffer, at: number, start: number): boolean {
  const begin = at - 8
  if (begin <= start || view[begin] !== openBrace || view[begin + 1] !== quote) return false
  if (view.toString('latin1', begin + 2, at) !== 'parent') return false
  const before = view[begin - 1]
  return before !== 0x3a && before !== 0x2c && before !== 0x5b
}

/** True when the `UseResu` at `at` is part of the unescaped key `toolUseResult`. */
export function isToolResultKey(view: Buffer, at: number): boolean {
  return view.toString('latin1', at - 5, at + 10) === '"toolUseResult"'
}

/** True when the line carries a tool result. */
export function hasToolResult(line: Buffer): boolean {
  for (let at = line.indexOf(resultNeedle); at !== -1; at = line.indexOf(resultNeedle, at + 7)) if (isToolResultKey(line, at)) return true
  return false
}

/** A stretch of a line: a run of NUL bytes, or what stands between two of them. */
export interface Part {
  readonly bytes: Buffer
  readonly start: number
  readonly nul: boolean
}

/** Runs of NUL bytes and what stands between them; blank parts are left out. */
export function withoutNul(line: Buffer): Part[] {
  const parts: Part[] = []
  let at = 0
  while (at < line.length) {
    const nul = line[at] === 0
    let end = at
    if (nul) while (end < line.length && line[end] === 0) end += 1
    else {
      const next = line.indexOf(0, at)
      end = next === -1 ? line.length : next
    }
    const bytes = line.subarray(at, end)
    if (nul || bytes.toString('latin1').trim() !== '') parts.push({ bytes, start: at, nul })
    at = end
  }
  return parts
}
