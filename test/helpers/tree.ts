import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, readdirSync, readlinkSync, type BigIntStats } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

export interface TreeNode {
  readonly type: 'file' | 'folder' | 'link' | 'fifo' | 'socket' | 'device'
  /** Permission bits in octal, `644`. */
  readonly mode: string
  /** Nanoseconds since 1970. */
  readonly mtime: string
  readonly nlink: number
  readonly sha256?: string
  readonly size?: number
  /** First path, in sorted order, of those in this tree that share the inode; only where the link count is above 1. */
  readonly inode?: string
  readonly target?: string
}

/** Relative path (`.` for the folder itself) to what is there. */
export type Tree = Readonly<Record<string, TreeNode>>

/** Everything in a folder that a change could show in. Links are not followed, only regular files are opened. */
export function snapshotTree(folder: string): Tree {
  const tree: Record<string, TreeNode> = {}
  const inodes = new Map<string, string>()
  const visit = (relative: string): void => {
    const path = join(folder, relative)
    const stat = lstatSync(path, { bigint: true })
    tree[relative] = nodeOf(path, relative, stat, inodes)
    if (!stat.isDirectory()) return
    for (const name of readdirSync(path).sort()) visit(relative === '.' ? name : `${relative}/${name}`)
  }
  visit('.')
  return tree
}

function nodeOf(path: string, relative: string, stat: BigIntStats, inodes: Map<string, string>): TreeNode {
  const common = { mode: (Number(stat.mode) & 0o7777).toString(8), mtime: stat.mtimeNs.toString(), nlink: Number(stat.nlink) }
  if (stat.isDirectory()) return { type: 'folder', ...common }
  if (stat.isSymbolicLink()) return { type: 'link', ...common, target: readlinkSync(path) }
  if (stat.isFIFO()) return { type: 'fifo', ...common }
  if (stat.isSocket()) return { type: 'socket', ...common }
  if (!stat.isFile()) return { type: 'device', ...common }
  const content = { sha256: createHash('sha256').update(readFileSync(path)).digest('hex'), size: Number(stat.size) }
  if (stat.nlink < 2n) return { type: 'file', ...common, ...content }
  const key = `${stat.dev.toString()}:${stat.ino.toString()}`
  const inode = inodes.get(key) ?? relative
  inodes.set(key, inode)
  return { type: 'file', ...common, ...content, inode }
}

/** Fails the test unless the folder is exactly as it was: names, bytes, modes, times, links. */
export function sameTree(folder: string, before: Tree): void {
  expect(snapshotTree(folder)).toEqual(before)
}

/** The tree without what even a careful copy changes: times, and link counts of folders. */
export function withoutTimes(tree: Tree): Record<string, TreeNode> {
  return Object.fromEntries(
    Object.entries(tree).map(([path, node]) => [path, { ...node, mtime: '', nlink: node.type === 'folder' ? 0 : node.nlink }]),
  )
}
