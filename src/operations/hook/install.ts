import { constants, existsSync, lstatSync, mkdirSync, realpathSync, statSync, unlinkSync } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { atomicWrite } from '../../fs/atomic-write.js'
import { readSmallFile } from '../../fs/read-small.js'
import { FenceError, UsageError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { isFields } from '../../model/fields.js'
import { finding, type Finding } from '../../model/finding.js'
import { unifiedPatch, type DiffSide } from '../../model/line-diff.js'
import { noItems, type Report } from '../../model/report.js'
import { ownEntries, programOf, settingsIn, withEntries, withoutEntries, type HookEntry } from './entries.js'

const settingsLimit = 4 * 1024 * 1024
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A settings file as it is. */
interface SettingsText {
  /** The file itself, behind links. */
  readonly path: string
  /** `undefined` when there is none. */
  readonly text: string | undefined
  /** Permission bits. */
  readonly mode: number
}

export interface HookChange {
  /** The settings file, absolute; a link is followed to the file, and that one is written. */
  readonly file: string
  readonly apply: boolean
  /** Hex digits, new for each call. */
  readonly token: string
}

/**
 * Puts our hooks into the settings of an agent, in the place of older ones of ours. Without `apply` only shows how.
 * @throws UsageError for a file that cannot be read as JSON, FenceError when it changed meanwhile; it is as it was then
 */
export function installHooks(entries: readonly HookEntry[], change: HookChange): Report {
  return rewrite('hook install', change, (text) => withEntries(text, entries))
}

/** Takes our hooks out again, older ones included; throws as `installHooks` does. */
export function removeHooks(change: HookChange): Report {
  return rewrite('hook remove', change, (text) => (text === undefined ? undefined : withoutEntries(text)))
}

/** Which hooks of ours are in these files, and whether what they start is there. Exit code 1 when there are none, or it is not. */
export function hookStatus(files: readonly string[]): Report {
  const hooks = files.flatMap((file) => entriesIn(file).map(({ event, command }) => ({ file, event, command })))
  const findings = files.flatMap(lostHooks)
  return {
    command: 'hook status',
    roots: [],
    applied: false,
    summary: { installed: hooks.length },
    ...noItems,
    findings,
    exitCode: hooks.length === 0 || findings.length > 0 ? ExitCode.findings : ExitCode.done,
    extra: { hooks },
  }
}

/** Hooks of ours in a settings file that start what is not there any more. */
export function lostHooks(file: string): Finding[] {
  const paths = entriesIn(file).flatMap(({ command }) => programOf(command) ?? [])
  const gone = [...new Set(paths)].filter((path) => isAbsolute(path) && !existsSync(path))
  return gone.map((path) => finding('hook-path-gone', `hooks in ${file} start ${path}, which is not there: nothing is recorded`, { path: file }))
}

function entriesIn(file: string): HookEntry[] {
  try {
    const { text } = readSettings(file)
    return text === undefined ? [] : ownEntries(settingsIn(text))
  } catch {
    // What cannot be read is said where it is to be changed.
    return []
  }
}

function rewrite(command: string, { file, apply, token }: HookChange, change: (text: string | undefined) => string | undefined): Report {
  const before = readSettings(file)
  const after = refusing(before.path, () => change(before.text))
  const changes = after !== before.text
  if (changes && apply) write(file, before, after, token)
  const off = before.text !== undefined && isFields(settingsIn(before.text)) && settingsIn(before.text).disableAllHooks === true
  return {
    command,
    roots: [],
    applied: changes && apply,
    summary: { file: before.path, changes: changes ? 1 : 0, ...(off ? { disableAllHooks: true } : {}) },
    ...noItems,
    exitCode: ExitCode.done,
    extra: { diff: changes ? unifiedPatch(before.path.replace(/^\/+/, ''), side(before, before.text), side(before, after)) : '' },
  }
}

function side({ mode }: SettingsText, text: string | undefined): DiffSide {
  return text === undefined ? { kind: 'absent' } : { kind: 'text', text, mode }
}

function readSettings(file: string): SettingsText {
  const link = lstatSync(file, { throwIfNoEntry: false })
  if (link === undefined) return { path: file, text: undefined, mode: 0o600 }
  const found = readSmallFile(file, { follow: true, limit: settingsLimit })
  if (found.kind !== 'bytes') throw unusable(file, found.kind === 'unusable' ? found.reason : 'it is not there')
  const path = realpathSync(file)
  return refusing(path, () => ({ path, text: decoded(found.bytes), mode: statSync(path).mode & 0o777 }))
}

function decoded(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new UsageError('it is no valid UTF-8')
  }
}

function refusing<T>(path: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (error instanceof UsageError) throw unusable(path, error.message)
    throw error
  }
}

function unusable(path: string, reason: string): UsageError {
  return new UsageError(`${path} cannot be changed: ${reason}; it was left as it is`, { hint: 'mend it first, then run again' })
}

/** Writes what the file shall be, unless it is no longer what was read. */
function write(file: string, before: SettingsText, after: string | undefined, token: string): void {
  const now = readSettings(file)
  if (now.path !== before.path || now.text !== before.text) {
    throw new FenceError(`${before.path} changed meanwhile; it was left as it is`, { hint: 'run again' })
  }
  if (after === undefined) {
    unlinkSync(before.path)
    return
  }
  mkdirSync(dirname(before.path), { recursive: true, mode: constants.S_IRWXU })
  atomicWrite(before.path, Buffer.from(after), { mode: before.mode, token })
}
