import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { atomicWrite } from '../fs/atomic-write.js'
import { NewerFormatError, systemErrorCode } from '../model/errors.js'
import { finding, type Finding } from '../model/finding.js'
import { membersOf, type SessionRef } from '../model/session.js'
import type { StorePlace } from '../plan/sidecar.js'
import { Sidecar } from '../plan/sidecar.js'

const schemaVersion = 1

interface Entry {
  /** Milliseconds since 1970; 0 for what was there when the ledger was made. */
  readonly seen: number
  /** Transcripts it had: one more is a session that came back. */
  readonly transcripts: number
}

/**
 * When each session was first seen (R04), in `<sidecar>/first-seen.jsonl`: a header line, then one line per session. Made at
 * the first run with what is there, which gets no grace. A session that gains a transcript counts as new: somebody put it
 * back. What a damaged ledger no longer says counts as seen now, so that nothing expires by the damage.
 */
export class FirstSeen {
  readonly #place: StorePlace
  readonly #entries: ReadonlyMap<string, Entry>
  readonly #exists: boolean
  readonly findings: readonly Finding[]

  private constructor(place: StorePlace, entries: ReadonlyMap<string, Entry>, exists: boolean, findings: readonly Finding[]) {
    this.#place = place
    this.#entries = entries
    this.#exists = exists
    this.findings = findings
  }

  /** @throws NewerFormatError when a newer version of ours wrote it */
  static read(place: StorePlace): FirstSeen {
    const path = ledgerPath(place)
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT' && !existsSync(path)) return new FirstSeen(place, new Map(), false, [])
      const code = systemErrorCode(error) ?? 'unknown error'
      return new FirstSeen(place, new Map(), true, [damage(path, `cannot be read (${code})`)])
    }
    const { entries, damaged } = parseLedger(text, path)
    return new FirstSeen(place, entries, true, damaged ? [damage(path, 'is damaged')] : [])
  }

  /** When the session appeared; `undefined` when it was there from the beginning and gets no grace. */
  seenAt(session: SessionRef, now: number): number | undefined {
    const seen = this.#entryOf(session, now).seen
    return seen === 0 ? undefined : seen
  }

  /**
   * Notes the sessions that are there, and forgets those that are gone. Atomic; hold the store's lock.
   * @param token hex digits, new for each call
   * @throws NoSpaceError, FenceError
   */
  write(sessions: readonly SessionRef[], now: number, token: string): void {
    const sidecar = new Sidecar(this.#place)
    sidecar.prepare()
    const lines = [JSON.stringify({ schemaVersion, writtenAt: new Date(now).toISOString() })]
    for (const session of sessions) {
      const { seen, transcripts } = this.#entryOf(session, now)
      lines.push(JSON.stringify([session.id, seen, transcripts]))
    }
    const path = ledgerPath(this.#place)
    atomicWrite(path, Buffer.from(`${lines.join('\n')}\n`), { token })
    sidecar.own(path)
  }

  #entryOf(session: SessionRef, now: number): Entry {
    const transcripts = membersOf(session, 'transcript').length
    const known = this.#entries.get(session.id)
    if (known !== undefined && transcripts <= known.transcripts) return { seen: known.seen, transcripts }
    return { seen: this.#exists ? now : 0, transcripts }
  }
}

function ledgerPath(place: StorePlace): string {
  return join(place.sidecar, 'first-seen.jsonl')
}

function parseLedger(text: string, path: string): { entries: Map<string, Entry>; damaged: boolean } {
  const entries = new Map<string, Entry>()
  const [head = '', ...lines] = text.split('\n')
  const header = parse(head)
  const version = typeof header === 'object' && header !== null && 'schemaVersion' in header ? header.schemaVersion : undefined
  if (typeof version === 'number' && version > schemaVersion) {
    throw new NewerFormatError(`${path} was written by a newer version of rewind-admin`, { hint: 'update rewind-admin; nothing was removed' })
  }
  let damaged = version !== schemaVersion
  for (const line of lines) {
    if (line === '') continue
    const value = parse(line)
    const [id, seen, transcripts] = Array.isArray(value) ? (value as unknown[]) : []
    if (typeof id === 'string' && typeof seen === 'number' && typeof transcripts === 'number') entries.set(id, { seen, transcripts })
    else damaged = true
  }
  return { entries, damaged: damaged || !text.endsWith('\n') }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function damage(path: string, what: string): Finding {
  return finding('sidecar-damaged', `${path} ${what}; sessions that it no longer names count as seen now and stay for a full period`, { path })
}
