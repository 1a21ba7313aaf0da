import { diffArrays, formatPatch, structuredPatch } from 'diff'

/** Lines that a change adds and takes away. */
export interface LineStats {
  readonly insertions: number
  readonly deletions: number
  /** False when the texts differ so much that everything between their common head and tail was counted. */
  readonly exact: boolean
}

/** Git looks for a NUL in as many bytes to tell binary from text. */
const probe = 8000
/** Differences after which the search for the shortest diff is given up; its cost grows with their square. */
const maxEdits = 4000

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of `bytes`, or `undefined` when they are binary: a NUL among the first 8000, or not UTF-8. For display only. */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.subarray(0, probe).includes(0)) return undefined
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** Counts lines as `git diff --numstat` does: a line is its text with its line feed. */
export function lineStats(before: string, after: string): LineStats {
  const old = linesOf(before)
  const now = linesOf(after)
  let head = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1
  let tail = 0
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1
  const removed = old.slice(head, old.length - tail)
  const added = now.slice(head, now.length - tail)
  if (removed.length === 0 || added.length === 0) return { insertions: added.length, deletions: removed.length, exact: true }
  const changes = diffArrays(removed, added, { maxEditLength: maxEdits })
  if (changes === undefined) return { insertions: added.length, deletions: removed.length, exact: false }
  let insertions = 0
  let deletions = 0
  for (const change of changes) {
    if (change.added) insertions += change.count
    if (change.removed) deletions += change.count
  }
  return { insertions, deletions, exact: true }
}

function linesOf(text: string): string[] {
  const lines = text.split('\n')
  const last = lines.pop()
  const whole = lines.map((line) => `${line}\n`)
  if (last !== undefined && last !== '') whole.push(last)
  return whole
}

/** One side of a file in a unified diff: no file, text, or content that is not text. `mode` is `mode & 07777`. */
export type DiffSide =
  | { readonly kind: 'absent' }
  | { readonly kind: 'text'; readonly text: string; readonly mode: number }
  | { readonly kind: 'binary'; readonly mode: number }

/** A unified diff of one file as git writes it, three lines around each change; `name` has no leading slash. */
export function unifiedPatch(name: string, before: DiffSide, after: DiffSide): string {
  const oldName = before.kind === 'absent' ? '/dev/null' : `a/${name}`
  const newName = after.kind === 'absent' ? '/dev/null' : `b/${name}`
  const binary = before.kind === 'binary' || after.kind === 'binary'
  const [oldText, newText] = binary ? ['', ''] : [textOf(before), textOf(after)]
  const patch = structuredPatch(oldName, newName, oldText, newText, undefined, undefined, { context: 3, maxEditLength: maxEdits })
  const hunks = patch?.hunks ?? []
  const names = { oldFileName: oldName, newFileName: newName, oldHeader: undefined, newHeader: undefined }
  const text = formatPatch({ ...names, hunks, ...gitHeader(before, after) })
  if (binary) return `${text}Binary files ${printable(oldName)} and ${printable(newName)} differ\n`
  if (patch === undefined) return `${text}Files ${printable(oldName)} and ${printable(newName)} differ too much to be shown\n`
  return text
}

function textOf(side: DiffSide): string {
  return side.kind === 'text' ? side.text : ''
}

function gitHeader(before: DiffSide, after: DiffSide): GitHeader {
  const word = (mode: number): string => `10${mode.toString(8).padStart(4, '0')}`
  if (before.kind === 'absent') {
    return after.kind === 'absent' ? { isGit: true } : { isGit: true, isCreate: true, newMode: word(after.mode) }
  }
  if (after.kind === 'absent') return { isGit: true, isDelete: true, oldMode: word(before.mode) }
  return before.mode === after.mode ? { isGit: true } : { isGit: true, oldMode: word(before.mode), newMode: word(after.mode) }
}

interface GitHeader {
  readonly isGit: true
  readonly isCreate?: true
  readonly isDelete?: true
  readonly oldMode?: string
  readonly newMode?: string
}

function printable(name: string): string {
  return name.replace(/\p{Cc}/gu, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
