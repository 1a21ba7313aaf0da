const sessionKey = Buffer.from('"sessionId":"')
const uuidKey = Buffer.from('"uuid":"')
const idLength = 36

/** Learns from the bytes of message lines which messages there are, and how many lines belong to another session. */
export class LineIds {
  readonly messages = new Set<string>()
  readonly #session: string
  foreign = 0

  constructor(session: string) {
    this.#session = session
  }

  /** Takes the last `uuid` and the last `sessionId` of a line: those of nested objects stand before them. */
  add(line: Buffer): void {
    // Backwards, because both keys stand in the last few hundred bytes.
    const uuid = line.lastIndexOf(uuidKey)
    if (uuid === -1) return
    this.messages.add(idAt(line, uuid + uuidKey.length))
    const session = line.lastIndexOf(sessionKey)
    if (session !== -1 && idAt(line, session + sessionKey.length) !== this.#session) this.foreign += 1
  }
}

function idAt(line: Buffer, start: number): string {
  return line.toString('latin1', start, start + idLength)
}
