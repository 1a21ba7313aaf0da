import { mkdirSync, readdirSync, rmSync, rmdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { hash } from 'node:crypto'
import { systemErrorCode } from '../model/errors.js'

const turnNote = /^turn-[0-9a-f]{16}$/

/**
 * Notes of what could not be recorded: the store was locked for too long, or its disk was full. A note is a link that leads
 * nowhere, since such a one needs no space for content and no lock: it appears at once or not at all. The next one who can
 * write the state takes them over.
 */
export class GapNotes {
  readonly #folder: string

  /** @param sidecar our own folder beside the store */
  constructor(sidecar: string, session: string) {
    this.#folder = join(sidecar, 'recorder', hash('sha256', session, 'hex').slice(0, 32))
  }

  /** Makes the folder while there is room: a full disk may have none for a folder. */
  prepare(): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
  }

  /** Notes that a file was edited before its state could be recorded. Returns whether the note could be made. */
  path(key: string): boolean {
    return this.#make(pathNote(key))
  }

  /** Notes that a turn began that has no checkpoint. `word` tells it from other turns. */
  turn(word: string): boolean {
    return this.#make(`turn-${hash('sha256', word, 'hex').slice(0, 16)}`)
  }

  /** The notes there are; reading them costs one look at a folder that is mostly empty. */
  read(): { has(key: string): boolean; readonly turns: readonly string[] } {
    let names: string[]
    try {
      names = readdirSync(this.#folder)
    } catch (error) {
      if (systemErrorCode(error) !== 'ENOENT') throw error
      names = []
    }
    const all = new Set(names)
    return { has: (key) => all.has(pathNote(key)), turns: names.filter((name) => turnNote.test(name)) }
  }

  /** Takes notes away whose gap stands in the state now. */
  settle(keys: readonly string[], turns: readonly string[]): void {
    for (const name of [...keys.map(pathNote), ...turns]) rmSync(join(this.#folder, name), { force: true })
  }

  /** Takes the folder away when no note is left in it. */
  close(): void {
    try {
      rmdirSync(this.#folder)
    } catch (error) {
      const code = systemErrorCode(error)
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOENT') throw error
    }
  }

  #make(name: string): boolean {
    try {
      this.prepare()
      symlinkSync('gap', join(this.#folder, name))
      return true
    } catch (error) {
      return systemErrorCode(error) === 'EEXIST'
    }
  }
}

function pathNote(key: string): string {
  return hash('sha256', key, 'hex').slice(0, 32)
}
