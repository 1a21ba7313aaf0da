import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { nodeWord, NotRegularError, readPlain } from '../../fs/blocks.js'
import { systemErrorCode } from '../../model/errors.js'
import { statePathOf } from './layout.js'
import { recordedFolder } from './recorded.js'
import { parseState, type ParsedState, type State } from './state.js'

/** A state of more than this many bytes is not read. */
const stateLimit = 256 * 1024 * 1024

/** What stands where the state of a session should be. Sizes in bytes, times in milliseconds since 1970. */
export type StateFile =
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-regular'; readonly found: string }
  | { readonly kind: 'unreadable'; readonly reason: string }
  | {
      readonly kind: 'read'
      readonly parsed: ParsedState
      readonly bytes: Buffer
      readonly mtimeMs: number
      /** What it was before it was read. */
      readonly stamp: { readonly size: number; readonly mtimeNs: string }
      /** Permission bits. */
      readonly mode: number
      /** True when it was replaced or written to while it was read. */
      readonly changed: boolean
    }

/** Reads the state at `path` below `root`. Follows no link, opens plain files only, never throws for what stands there. */
export function readStateFile(root: string, path: string): StateFile {
  const place = join(root, path)
  try {
    const before = lstatSync(place, { bigint: true })
    const bytes = readPlain(place, stateLimit)
    if (bytes === undefined) return { kind: 'unreadable', reason: `it has more than ${String(stateLimit)} bytes` }
    const after = lstatSync(place, { bigint: true, throwIfNoEntry: false })
    const changed = after?.ino !== before.ino || after.dev !== before.dev || after.size !== before.size || after.mtimeNs !== before.mtimeNs
    const stamp = { size: Number(before.size), mtimeNs: before.mtimeNs.toString() }
    return { kind: 'read', parsed: parseState(bytes), bytes, mtimeMs: Number(before.mtimeNs / 1_000_000n), stamp, mode: Number(before.mode) & 0o777, changed }
  } catch (error) {
    if (error instanceof NotRegularError) return { kind: 'not-regular', found: error.found }
    const code = systemErrorCode(error)
    if (code === 'ENOENT') return { kind: 'missing' }
    if (code === 'ENOTDIR' || code === 'ELOOP') return { kind: 'not-regular', found: whatStands(place) }
    return { kind: 'unreadable', reason: `it cannot be read (${code ?? 'unknown error'})` }
  }
}

/** The state in a file, whole or with faults; `undefined` when there is none. */
export function stateIn(file: StateFile): State | undefined {
  return file.kind === 'read' && file.parsed.kind === 'state' ? file.parsed.state : undefined
}

/** The working folder that a recorder noted in the state of a session, as far as the state can be read. */
export function folderNoted(root: string, session: string): string | undefined {
  const state = stateIn(readStateFile(root, statePathOf(session)))
  return state === undefined ? undefined : recordedFolder(state)
}

/** Why what stands there is no state that may be acted on; `undefined` for a state that is whole. */
export function stateTrouble(file: StateFile): string | undefined {
  if (file.kind === 'missing') return 'its state.json is missing'
  if (file.kind === 'not-regular') return `its state.json is ${file.found}`
  if (file.kind === 'unreadable') return `its state.json cannot be used: ${file.reason}`
  const { parsed } = file
  if (parsed.kind === 'newer') return `its state.json is of version ${String(parsed.version)}, which is newer than this version knows`
  if (parsed.kind === 'unusable') return `its state.json cannot be used: ${parsed.at}: ${parsed.reason}`
  const [fault] = parsed.faults
  return fault === undefined ? undefined : `its state.json is damaged: ${fault.at}: ${fault.reason}`
}

function whatStands(path: string): string {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    return found === undefined ? 'behind something that is no folder' : nodeWord(found)
  } catch {
    return 'behind something that is no folder'
  }
}
