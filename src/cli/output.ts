/** The part of a writable stream that the command line needs. */
export interface OutputStream {
  write(text: string): unknown
  readonly isTTY?: boolean
  /** Width of the terminal in columns. */
  readonly columns?: number
}

/** Keeps what is written; what `runCli` writes to unless it is given real streams. */
export class CapturedStream implements OutputStream {
  readonly isTTY = false
  #parts: string[] = []

  get text(): string {
    return this.#parts.join('')
  }

  write(text: string): void {
    this.#parts.push(text)
  }
}
