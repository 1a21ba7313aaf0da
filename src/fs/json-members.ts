/** Where one member of a JSON object stands in its bytes. */
export interface JsonMember {
  readonly key: string
  /** From the quote of the key to the end of the value. */
  readonly start: number
  readonly end: number
  /** Where the value begins. */
  readonly value: number
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openers: ReadonlySet<number> = new Set([0x7b, 0x5b])
const closers: ReadonlySet<number> = new Set([0x7d, 0x5d])
const blanks: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])

/**
 * The members of the object whose brace stands at `at`, in bytes that are known to be valid JSON. Works on bytes, so that
 * what is not cut out keeps every one of them.
 */
export function membersAt(bytes: Buffer, at: number): JsonMember[] {
  return [...eachMember(bytes, at)]
}

/** The same one by one: nothing behind the last one taken is looked at. */
export function* eachMember(bytes: Buffer, at: number): Generator<JsonMember, void> {
  let start = skipBlanks(bytes, at + 1)
  while (start < bytes.length && bytes[start] === quote) {
    const keyEnd = endOfString(bytes, start)
    const key = stringIn(bytes, start, keyEnd)
    const separator = skipBlanks(bytes, keyEnd)
    const value = skipBlanks(bytes, bytes[separator] === colon ? separator + 1 : separator)
    const end = endOfValue(bytes, value)
    yield { key, start, end, value }
    const next = skipBlanks(bytes, end)
    if (bytes[next] !== comma) break
    start = skipBlanks(bytes, next + 1)
  }
}

/**
 * The text between the quotes at `start` and just before `end`.
 * @throws SyntaxError when it is no valid JSON string
 */
export function stringIn(bytes: Buffer, start: number, end: number): string {
  for (let at = start + 1; at < end - 1; at += 1) if (bytes[at] === backslash) return JSON.parse(bytes.toString('utf8', start, end)) as string
  return bytes.toString('utf8', start + 1, end - 1)
}

/** The bytes without the members that `drops` names, each with the comma and the blanks that belong to it. */
export function withoutMembers(bytes: Buffer, members: readonly JsonMember[], drops: (key: string) => boolean): Buffer {
  const kept = members.filter(({ key }) => !drops(key))
  const [first] = members
  const last = members.at(-1)
  if (first === undefined || last === undefined || kept.length === members.length) return bytes
  if (kept.length === 0) return Buffer.concat([bytes.subarray(0, first.start), bytes.subarray(last.end)])
  const parts: Buffer[] = [bytes.subarray(0, first.start)]
  for (const [index, member] of kept.entries()) {
    if (index > 0) {
      // What stands between two members is alike throughout a file: the one before the first that is kept does.
      const before = members[members.indexOf(member) - 1]
      if (before !== undefined) parts.push(bytes.subarray(before.end, member.start))
    }
    parts.push(bytes.subarray(member.start, member.end))
  }
  parts.push(bytes.subarray(last.end))
  return Buffer.concat(parts)
}

function skipBlanks(bytes: Buffer, from: number): number {
  let at = from
  while (blanks.has(bytes[at] ?? 0)) at += 1
  return at
}

/** The index behind the closing quote of the string that begins at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at += 1) {
    if (bytes[at] === backslash) at += 1
    else if (bytes[at] === quote) return at + 1
  }
  return bytes.length
}

function endOfValue(bytes: Buffer, start: number): number {
  let depth = 0
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0
    if (byte === quote) at = endOfString(bytes, at) - 1
    else if (openers.has(byte)) depth += 1
    else if (closers.has(byte)) {
      if (depth === 0) return trimmedEnd(bytes, at)
      depth -= 1
    } else if (byte === comma && depth === 0) return trimmedEnd(bytes, at)
    if (depth === 0 && (byte === quote || closers.has(byte))) return at + 1
  }
  return bytes.length
}

function trimmedEnd(bytes: Buffer, end: number): number {
  let at = end
  while (blanks.has(bytes[at - 1] ?? 0)) at -= 1
  return at
}
