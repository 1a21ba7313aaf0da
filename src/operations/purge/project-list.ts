import { readSmallFile } from '../../fs/read-small.js'
import { UsageError } from '../../model/errors.js'
import { isFields, textOf } from '../../model/fields.js'

const listLimit = 64 * 1024 * 1024

/**
 * Projects from a file (R91): one a line, lines that begin with `#` left out, or what `report --json` printed, of which the projects
 * whose folder is gone are taken. Each once, in the order of the file.
 * @throws UsageError when the file cannot be read or names no project
 */
export function readProjectList(file: string): string[] {
  const read = readSmallFile(file, { follow: true, limit: listLimit })
  if (read.kind !== 'bytes') throw new UsageError(`--projects-from ${file}: ${read.kind === 'missing' ? 'it does not exist' : read.reason}`)
  const text = read.bytes.toString('utf8').replace(/^\uFEFF/, '')
  const projects = [...new Set(text.trimStart().startsWith('{') ? goneIn(text, file) : linesOf(text))]
  if (projects.length === 0) throw new UsageError(`--projects-from ${file} names no project`, { hint: 'give a file with one project a line, or what rewind-admin report --json printed' })
  return projects
}

/** A name may hold a `#` and end in a space; only the ends of lines are taken away. */
function linesOf(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.startsWith('#'))
}

function goneIn(text: string, file: string): string[] {
  let report: unknown
  try {
    report = JSON.parse(text)
  } catch (error) {
    throw new UsageError(`--projects-from ${file} is no JSON`, { cause: error })
  }
  const stores = isFields(report) && report.command === 'report' && Array.isArray(report.stores) ? (report.stores as unknown[]) : undefined
  if (stores === undefined) throw new UsageError(`--projects-from ${file} is no report of rewind-admin`, { hint: 'make one with: rewind-admin report --json' })
  const groups = stores.flatMap((store): unknown[] => (isFields(store) && Array.isArray(store.goneProjects) ? store.goneProjects : []))
  return groups.flatMap((group) => (isFields(group) && Array.isArray(group.projects) ? group.projects.flatMap((project) => textOf(project) ?? []) : []))
}
