import { accessSync, closeSync, constants, lstatSync, readdirSync, unlinkSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { openPlain } from '../../fs/blocks.js'
import { digestStretch } from '../../fs/content.js'
import { FenceError } from '../../model/errors.js'

/** The folder held open, `undefined` when it is not there. Throws `FenceError` when it is a link. */
export function openIfThere(path: string): AnchoredFolder | undefined {
  return lstatSync(path, { throwIfNoEntry: false }) === undefined ? undefined : AnchoredFolder.open(path)
}

/**
 * A second name of a file has its bytes; whether anybody can read them is another question (R64). Hands back the look at one
 * name, which throws EACCES; a privileged user needs none.
 */
export function readabilityCheck(folder: AnchoredFolder): (name: string) => void {
  const user = process.geteuid?.()
  if (user === 0) return () => undefined
  // The system answers for the real user, who is mostly the one that acts.
  if (user === process.getuid?.()) return (name) => { accessSync(folder.at(name), constants.R_OK) }
  return (name) => { closeSync(openPlain(folder.at(name))) }
}

/** Makes sure that everything in a folder of ours is a plain file, and that all is there. @throws FenceError */
export function assertPlain(folder: AnchoredFolder, names: readonly string[]): void {
  const plain = new Set<string>()
  for (const entry of readdirSync(folder.at('.'), { withFileTypes: true })) if (entry.isFile()) plain.add(entry.name)
  const other = names.find((name) => !plain.has(name))
  if (other !== undefined) throw new FenceError(`the backup ${other} was replaced while it was linked; nothing was made`, { hint: 'run again' })
}

/** True when both are one file or folder. */
export function isSameNode(a: Stats, b: Stats): boolean {
  return a.ino === b.ino && a.dev === b.dev
}

/** True when the file can be opened for reading. */
export function isReadable(folder: AnchoredFolder, name: string): boolean {
  try {
    closeSync(openPlain(folder.at(name)))
    return true
  } catch {
    return false
  }
}

/** Compares a copy with its original by digest. Returns its size in bytes. @throws FenceError when they differ */
export function assertCopied(source: AnchoredFolder, staged: AnchoredFolder, name: string): number {
  const { size } = lstatSync(source.at(name))
  const stretch = { offset: 0, size }
  if (lstatSync(staged.at(name)).size === size && digestStretch(source, name, stretch) === digestStretch(staged, name, stretch)) return size
  throw new FenceError(`the copy of the backup ${name} does not hold the bytes of the original; nothing was made`, { hint: 'run again' })
}

/** Makes sure that the file that was staged is the one that was published. @throws FenceError when it is not */
export function assertSame(folder: AnchoredFolder, name: string, made: Stats): void {
  const there = lstatSync(folder.at(name), { throwIfNoEntry: false })
  if (there === undefined || !isSameNode(there, made) || there.size !== made.size) throw changedWhilePublished(join(folder.path, name))
}

/** Something came between staging and publishing. */
export function changedWhilePublished(path: string): FenceError {
  return new FenceError(`${path} was changed while it was published; the fork was taken away again`, { hint: 'run again' })
}

/** Takes away a name that was published, unless another file has it by now. */
export function takeBack(path: string, made: Stats): void {
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there !== undefined && isSameNode(there, made)) unlinkSync(path)
}
