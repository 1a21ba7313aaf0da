import { chownSync, lstatSync, statfsSync, type Stats } from 'node:fs'

/** A privileged user who works on the store of another one leaves what it makes to that one. */
export function ownLike(path: string, like: Stats): void {
  const made = lstatSync(path)
  if (process.geteuid?.() === 0 && (made.uid !== like.uid || made.gid !== like.gid)) chownSync(path, like.uid, like.gid)
}

/** Bytes free for the user on the file system of a folder; `undefined` when nobody can tell. */
export function freeBytesOf(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return undefined
  }
}
