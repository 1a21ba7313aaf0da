import type { BackupRecord } from './backup.js'
import type { Checkpoint, History } from './history.js'

/** What a path was at a checkpoint. `unknown` is never acted on: nobody guesses. */
export type Resolution =
  | { readonly state: 'absent'; readonly record: BackupRecord }
  | { readonly state: 'backup'; readonly name: string; readonly record: BackupRecord }
  | { readonly state: 'unknown'; readonly reason: string; /** Nothing of it was ever recorded, by rule. */ readonly gap?: true }

/**
 * What every path tracked anywhere in the session was at `checkpoint`: its own record, else the path's first record,
 * else left out (formats/claude-code section 4, rule 1).
 */
export function resolve(history: History, checkpoint: Checkpoint): Map<string, Resolution> {
  const resolved = new Map<string, Resolution>()
  for (const path of history.tracked) {
    const record = recordAt(history, checkpoint, path)
    if (record !== undefined) resolved.set(path, resolution(record))
  }
  return resolved
}

/** The record that a path resolves by at `checkpoint`; `undefined` when it is left out. */
export function recordAt(history: History, checkpoint: Checkpoint, path: string): BackupRecord | undefined {
  return checkpoint.files.get(path) ?? history.originals.get(path)
}

function resolution(record: BackupRecord): Resolution {
  if (record.unusable !== undefined) return { state: 'unknown', reason: record.unusable, ...(record.gap === true ? { gap: true } : {}) }
  if (record.name === null) return { state: 'absent', record }
  return { state: 'backup', name: record.name, record }
}

/**
 * The checkpoint that a word names: its id, else one of its other names (the last one counts where several have it), else
 * the only one that has an id or name beginning with it; `undefined` when none or several do.
 */
export function findCheckpoint(history: History, word: string): Checkpoint | undefined {
  const { checkpoints } = history
  const exact = checkpoints.find(({ id }) => id === word) ?? checkpoints.findLast(({ aliases }) => aliases?.includes(word) === true)
  if (exact !== undefined) return exact
  const matches = checkpointsBeginning(history, word)
  return matches.length === 1 ? matches[0] : undefined
}

/** The id that a word stands for: that of the checkpoint which has it as another name, else the word itself. */
export function idNamed({ checkpoints }: History, word: string): string {
  return checkpoints.findLast(({ aliases }) => aliases?.includes(word) === true)?.id ?? word
}

/** Every checkpoint that has an id or another name beginning with `prefix`. */
export function checkpointsBeginning({ checkpoints }: History, prefix: string): Checkpoint[] {
  return checkpoints.filter(({ id, aliases }) => id.startsWith(prefix) || aliases?.some((alias) => alias.startsWith(prefix)) === true)
}
