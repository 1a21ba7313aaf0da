import { join } from 'node:path'
import { readLines } from '../../fs/blocks.js'
import type { CheckpointTree } from '../../model/branches.js'
import { membersOf, type SessionRef } from '../../model/session.js'
import { isFields, textOf } from '../../model/fields.js'

const uuidNeedle = Buffer.from('"uuid":"')

/**
 * The checkpoints of a session that belong to a message, each with the one before it on its branch, by following the
 * `parentUuid` of the messages between them. Side ends without a checkpoint (parallel tool results, notices) are no
 * branches. A chain that is broken by a damaged line ends there: what was before becomes a branch of its own, so more
 * is kept. Throws the system error when a transcript cannot be read.
 */
export function readBranches(root: string, session: SessionRef, checkpoints: ReadonlySet<string>): CheckpointTree {
  const parents = new Map<string, string | undefined>()
  for (const { path } of membersOf(session, 'transcript')) {
    readLines(join(root, path), {
      lines(buffer, length) {
        for (const line of linesOf(buffer.subarray(0, length))) addMessage(line, parents)
      },
      oversized() {
        // What hangs off such a line begins a branch of its own.
      },
    })
  }
  const tree = new Map<string, string | undefined>()
  for (const id of checkpoints) {
    if (parents.has(id)) tree.set(id, checkpointAbove(id, parents, checkpoints))
  }
  return tree
}

function checkpointAbove(id: string, parents: ReadonlyMap<string, string | undefined>, checkpoints: ReadonlySet<string>): string | undefined {
  const seen = new Set([id])
  for (let at = parents.get(id); at !== undefined && !seen.has(at); at = parents.get(at)) {
    if (checkpoints.has(at)) return at
    seen.add(at)
  }
  return undefined
}

function addMessage(line: Buffer, parents: Map<string, string | undefined>): void {
  if (!line.includes(uuidNeedle)) return
  let value: unknown
  try {
    value = JSON.parse(line.toString('utf8'))
  } catch {
    return
  }
  if (!isFields(value) || value.isSidechain === true) return
  const id = textOf(value.uuid)
  // After a compaction the chain begins anew; the logical parent says what it goes on from.
  if (id !== undefined) parents.set(id, textOf(value.parentUuid) ?? textOf(value.logicalParentUuid))
}

function* linesOf(view: Buffer): Generator<Buffer> {
  for (let start = 0; start < view.length; ) {
    const feed = view.indexOf(0x0a, start)
    const end = feed === -1 ? view.length : feed
    if (end > start) yield view.subarray(start, end)
    start = end + 1
  }
}
