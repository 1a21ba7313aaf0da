import { createHash } from 'node:crypto'
import { lstatSync, lutimesSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A session id as the host names them, and the project that its log says. */
export const dshSession = 'session-00000000-0000-4000-8000-000000000001'

/** The base of a record's file name: the cleaned call id and eight digits of its digest (formats/dsh-rewind section 1.3). */
function dshBase(callId: string): string {
  return `${callId.replaceAll(/[^A-Za-z0-9._-]/g, '_')}-${createHash('sha256').update(callId).digest('hex').slice(0, 8)}`
}

/** One change of a file: what it held before, or `null` when it did not exist. */
export interface DshChange {
  readonly anchor: number
  readonly call: string
  readonly file: string
  readonly before: string | Buffer | null
  readonly time: number
  readonly mode?: number
  readonly parent?: string
}

/** Writes stores of dsh-rewind file by file, as its builds do. */
export class DshStore {
  readonly home: string
  readonly root: string

  /** @param home the agent's home, `~/.dsh` of some user */
  constructor(home: string) {
    this.home = home
    this.root = join(home, 'rewind-snapshots')
    mkdirSync(this.root, { recursive: true })
  }

  folder(session = dshSession): string {
    return join(this.root, session)
  }

  /** Writes any file of a session. */
  put(path: string, content: string | Buffer, session = dshSession): string {
    const full = join(this.folder(session), path)
    mkdirSync(dirname(full), { recursive: true })
    writeFileSync(full, content)
    return full
  }

  putJson(path: string, value: unknown, session = dshSession): string {
    return this.put(path, JSON.stringify(value), session)
  }

  /** A text record of the string era (section 2.2). Returns its name as links have it. */
  text({ anchor, call, file, before, time }: DshChange, session = dshSession): string {
    const path = `${String(anchor)}/${call}.json`
    this.putJson(path, { callId: call, anchorSeq: anchor, path: file, before: before === null ? null : before.toString('utf8'), time }, session)
    return path
  }

  /** A record with its side file (section 1.4). */
  bytes({ anchor, call, file, before, time, mode, parent }: DshChange, session = dshSession): string {
    const base = dshBase(call)
    const blob = before === null ? null : `${base}.before`
    if (before !== null) this.put(`${String(anchor)}/${base}.before`, before, session)
    const pin = parent === undefined ? {} : { parent }
    const bits = mode === undefined ? {} : { mode }
    this.putJson(`${String(anchor)}/${base}.json`, { store: 2, callId: call, file, time, ...pin, ...bits, blob, size: before === null ? 0 : Buffer.from(before).length }, session)
    return `${String(anchor)}/${base}.json`
  }

  /** A link to another record; of the string era when `era` is 1. */
  link(change: Omit<DshChange, 'before'> & { readonly ref: string; readonly era?: 1 | 2 }, session = dshSession): string {
    const { anchor, call, file, ref, time, parent, era = 2 } = change
    const path = `${String(anchor)}/${era === 1 ? call : dshBase(call)}.json`
    const pin = parent === undefined ? {} : { parent }
    this.putJson(path, era === 1 ? { callId: call, anchorSeq: anchor, path: file, ref, time } : { store: 2, callId: call, file, ref, time, ...pin }, session)
    return path
  }

  markers(format = 3, session = dshSession): void {
    this.put('store', '2', session)
    this.put('format', String(format), session)
  }

  /** A log of format 3 with a message of a human at each anchor. */
  log(cwd: string, messages: readonly { readonly seq: number; readonly text: string; readonly time: number }[], session = dshSession, header: object = {}): string {
    const lines: unknown[] = [{ type: 'session', version: 3, id: session, createdAt: messages[0]?.time ?? 0, cwd, delegationDepth: 0, ...header }]
    for (const { seq, text, time } of messages) {
      const data = { content: [{ type: 'text', text }], source: { kind: 'user' }, role: 'user', id: `msg-${String(seq)}` }
      lines.push({ type: 'user/message', seq, time, data, surfaceOp: 'append' })
    }
    const path = join(this.home, 'sessions', '--p--', session, 'session.v3.jsonl')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    return path
  }
}

/** Sets the time of everything below a path, children before parents; links are not followed. */
export function ageAll(path: string, ms: number): void {
  if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) ageAll(join(path, name), ms)
  lutimesSync(path, ms / 1000, ms / 1000)
}
