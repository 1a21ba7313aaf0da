import { isAbsolute, join, posix, relative, resolve } from 'node:path'
import { readLines } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { isFields } from '../../model/fields.js'
import type { Conversation } from './conversations.js'

/** Names looked at in a working folder when paths are looked for. */
const namesLookedAt = 50_000
/** Folders in which agents edit nothing that is worth the time. */
const passedOver: ReadonlySet<string> = new Set(['.git', 'node_modules'])

/** The path that the plugin stores for what a tool was given (formats/pi-candy-undo section 3). */
function storedPath(given: string, folder: string): string {
  const path = resolve(folder, given.startsWith('@') ? given.slice(1) : given)
  const inside = relative(folder, path)
  return inside.startsWith('..') || isAbsolute(inside) ? path : inside
}

/** Paths that tools of a conversation were given, as the plugin stores them. None when it cannot be read. */
export function pathsInConversation(conversation: Conversation, folder: string): Set<string> {
  const paths = new Set<string>()
  try {
    readLines(conversation.path, {
      lines(buffer, length) {
        for (const line of buffer.toString('utf8', 0, length).split('\n')) if (line.includes('"path"')) gather(line, folder, paths)
      },
      oversized: () => undefined,
    })
  } catch {
    // It is gone or changing: then it says nothing.
  }
  return paths
}

/** Paths of the files in a working folder, as the plugin stores them; links are not followed. */
export function pathsInFolder(folder: string): Set<string> {
  const paths = new Set<string>()
  let left = namesLookedAt
  const waiting = ['']
  for (let below = waiting.shift(); below !== undefined && left > 0; below = waiting.shift()) {
    for (const entry of listFolder(join(folder, below)).entries) {
      left -= 1
      const path = posix.join(below, entry.name)
      if (entry.isDirectory() && !passedOver.has(entry.name)) waiting.push(path)
      else if (entry.isFile()) paths.add(path.startsWith('..') ? join(folder, path) : path)
    }
  }
  return paths
}

function gather(line: string, folder: string, paths: Set<string>): void {
  try {
    visit(JSON.parse(line), folder, paths)
  } catch {
    // A damaged line names no path for sure.
  }
}

function visit(value: unknown, folder: string, paths: Set<string>): void {
  if (Array.isArray(value)) for (const each of value as unknown[]) visit(each, folder, paths)
  else if (isFields(value)) {
    if (typeof value.path === 'string' && !value.path.includes('\0')) paths.add(storedPath(value.path, folder))
    for (const each of Object.values(value)) visit(each, folder, paths)
  }
}
