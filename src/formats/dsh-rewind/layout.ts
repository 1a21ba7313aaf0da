/** Newest store version that is read and written (formats/dsh-rewind section 1.7). */
export const storeVersion = 2

/** Name of the folder of snapshots in the agent's home. */
export const snapshotsFolder = 'rewind-snapshots'

export const storeMarker = 'store'
export const formatMarker = 'format'
export const pendingFolder = '.pending'
export const rescueFolder = 'rescue'

const groupPattern = /^(?:0|[1-9][0-9]*)$/
const cleanPattern = /^[A-Za-z0-9._-]+$/
const journalPattern = /^(?:restore-)?journal-([A-Za-z0-9._-]+)\.json$/
const refPattern = /^([0-9]+)\/([A-Za-z0-9._-]+\.json)$/
const blobPattern = /^[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+$/
const rescuePattern = /^rescue\/[A-Za-z0-9._-]+\/[0-9]+\.before$/

/** Number of an anchor group by the name of its folder; `undefined` for a name that the plugin does not make (section 1.3). */
export function groupNumber(name: string): number | undefined {
  if (!groupPattern.test(name)) return undefined
  const group = Number(name)
  return Number.isSafeInteger(group) ? group : undefined
}

/** True for a folder that the plugin counts as a group although its own reader opens another name, such as `007` or `1e1`. */
export function isOddGroup(name: string): boolean {
  return groupNumber(name) === undefined && name.trim() === name && name !== '' && Number.isSafeInteger(Number(name))
}

/** True for a name made of the characters that the plugin leaves in ids. */
export function isClean(name: string): boolean {
  return cleanPattern.test(name) && name !== '.' && name !== '..'
}

/** The folder of a session: each UTF-16 unit that is not plain becomes `_` (section 1.3). */
export function folderOfId(id: string): string {
  const folder = id.replaceAll(/[^A-Za-z0-9._-]/g, '_')
  return folder === '.' || folder === '..' ? 'session' : folder
}

/** True for the name of a record in a group. */
export function isRecordName(name: string): boolean {
  return isClean(name) && name.endsWith('.json')
}

/** True for the name of a side file in a group. */
export function isSideFileName(name: string): boolean {
  return isClean(name) && name.endsWith('.before')
}

/** The side file that a record of this name may have. */
export function sideFileOf(record: string): string {
  return `${record.slice(0, -'.json'.length)}.before`
}

/** Operation id in the name of a journal of either generation; `undefined` for any other name. */
export function journalId(name: string): string | undefined {
  return journalPattern.exec(name)?.[1]
}

/** A leftover of a crash between writing and renaming: never read. */
export function isTemporary(name: string): boolean {
  return isClean(name) && name.endsWith('.tmp')
}

/** A record within the session. */
export interface RecordPlace {
  readonly group: number
  readonly name: string
}

/**
 * The record that a link names; `undefined` when the text is not `<digits>/<name>.json` (section 1.5). The separator of Windows
 * is taken for a slash.
 */
export function parseRef(ref: string): RecordPlace | undefined {
  const match = refPattern.exec(ref.replaceAll('\\', '/'))
  const group = Number(match?.[1] ?? Number.NaN)
  const name = match?.[2]
  return name === undefined || !isClean(name) || !Number.isSafeInteger(group) ? undefined : { group, name }
}

/** True for the reference of a journal to bytes inside the session folder (section 1.9). */
export function isBlobRef(ref: string): boolean {
  return (blobPattern.test(ref) || rescuePattern.test(ref)) && ref.split('/').every((part) => part !== '.' && part !== '..')
}

/** Numbers of the groups that text of any kind names, damaged or not: `<digits>/<name>.json` or `.before`. */
export function groupsNamedIn(text: string): number[] {
  const found = [...text.matchAll(/(?<![A-Za-z0-9._-])([0-9]+)[\\/]+[A-Za-z0-9._-]+\.(?:json|before)/g)]
  return found.map((match) => Number(match[1])).filter(Number.isSafeInteger)
}

/** Path of a record or side file relative to its session, as backups are named. */
export function inGroup(group: number, name: string): string {
  return `${String(group)}/${name}`
}
