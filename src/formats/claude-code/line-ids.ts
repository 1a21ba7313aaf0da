const sessionKey = Buffer.from('"sessionId":"')
const uuidKey = Buffer.from('"uuid":"')
const idLength = 36
const colon = 0x3a
const letterD = 0x64

/** Learns from the bytes of message lines which messages there are, and how many lines belong to another session. */
export class LineIds {
  readonly messages = new Set<string>()
  readonly #session: Buffer
  foreign = 0

  constructor(session: string) {
    this.#session = Buffer.from(session)
  }

  /** Takes the last `uuid` and the last `sessionId` of a line: those of nested objects stand before them. */
  add(line: Buffer): void {
    let uuid = -1
    let session = -1
    // From the end, byte by byte: both keys stand in the last few hundred bytes, less than a call out of here costs.
    for (let at = line.length - 3; at >= uuidKey.length - 2 && (uuid === -1 || session === -1); at -= 1) {
      if (line[at] !== colon || line[at - 2] !== letterD) continue
      if (uuid === -1 && endsAt(line, at + 2, uuidKey)) uuid = at + 2
      else if (session === -1 && endsAt(line, at + 2, sessionKey)) session = at + 2
    }
    if (uuid === -1) return
    this.messages.add(line.toString('latin1', uuid, uuid + idLength))
    if (session !== -1 && !this.#isOwn(line, session)) this.foreign += 1
  }

  #isOwn(line: Buffer, at: number): boolean {
    return endsAt(line, at + this.#session.length, this.#session)
  }
}

/** True when the bytes of `text` stand just before `end`. */
function endsAt(line: Buffer, end: number, text: Buffer): boolean {
  const start = end - text.length
  if (start < 0) return false
  for (let index = text.length - 1; index >= 0; index -= 1) if (line[start + index] !== text[index]) return false
  return true
}
