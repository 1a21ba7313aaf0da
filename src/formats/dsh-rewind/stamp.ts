import { hash } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { stampOf } from '../../fs/probe.js'
import { groupNumber, isSideFileName } from './layout.js'

/**
 * One word for all that a reading of a session rests on: its records, markers and journals, and the conversation. The same
 * word means that nobody wrote to any of them. Side files have stamps of their own.
 */
export function stampOfRecords(root: string, session: string, log: string | undefined): string {
  const paths = [...filesIn(root, session), ...(log === undefined ? [] : [log])]
  const stamps = paths.map((path) => {
    const status = lstatSync(path, { throwIfNoEntry: false })
    return `${path} ${status === undefined ? 'gone' : stampOf(status)}`
  })
  return hash('sha256', stamps.join('\n'), 'hex')
}

function filesIn(root: string, session: string): string[] {
  const folder = join(root, session)
  return listFolder(folder).entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (!entry.isDirectory()) return [path]
    if (groupNumber(entry.name) === undefined) return [path]
    return [path, ...listFolder(path).entries.flatMap(({ name }) => (isSideFileName(name) ? [] : [join(path, name)]))]
  })
}
