/** A JSON value and where it stands in its text. */
export interface JsonSpan {
  readonly start: number
  readonly end: number
  /** Values in it, in order; `start` of a member is that of its key. Empty for what is neither object nor list. */
  readonly children: readonly JsonChild[]
  /** What opens it, when it is an object or a list. */
  readonly opens: '{' | '[' | undefined
}

interface JsonChild {
  readonly key: string | undefined
  readonly start: number
  readonly end: number
  readonly value: JsonSpan
}

/** Where the values of a JSON text stand. @param text known to be valid */
export function jsonSpans(text: string): JsonSpan {
  const blanks = /[\s\ufeff]*/y
  const scalar = /"(?:[^"\\]|\\.)*"|[^\s,\]}]+/y
  const skip = (at: number): number => {
    blanks.lastIndex = at
    return at + (blanks.exec(text)?.[0].length ?? 0)
  }
  const plain = (start: number): JsonSpan => {
    scalar.lastIndex = start
    return { start, end: start + (scalar.exec(text)?.[0].length ?? 0), children: [], opens: undefined }
  }
  const read = (from: number): JsonSpan => {
    const start = skip(from)
    const opens = text[start]
    if (opens !== '{' && opens !== '[') return plain(start)
    const children: JsonChild[] = []
    let at = skip(start + 1)
    while (at < text.length && text[at] !== '}' && text[at] !== ']') {
      const key = opens === '{' ? plain(at) : undefined
      const value = read(key === undefined ? at : skip(key.end) + 1)
      children.push({ key: key === undefined ? undefined : (JSON.parse(text.slice(key.start, key.end)) as string), start: at, end: value.end, value })
      at = skip(value.end)
      if (text[at] === ',') at = skip(at + 1)
    }
    return { start, end: at + 1, children, opens }
  }
  return read(0)
}
