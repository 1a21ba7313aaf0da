import { lstatSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

interface Pick {
  readonly anchor: number
  readonly time: number
  readonly result: string
}

/** Reads a session as builds of one generation do, written from the format page alone. */
type Reader = (folder: string, target: number) => Record<string, string>

/** Of each path the lowest anchor from the target on, then the lowest time (section 3.1). */
function readWith(recordAt: (folder: string, group: number, name: string) => ({ readonly path: string } & Pick) | undefined): Reader {
  return (folder, target) => {
    const picks = new Map<string, Pick>()
    for (const group of readdirSync(folder).filter((name) => /^[0-9]+$/.test(name)).map(Number)) {
      if (group < target) continue
      for (const name of readdirSync(join(folder, String(group))).filter((each) => each.endsWith('.json')).sort()) {
        const found = recordAt(folder, group, name)
        if (found === undefined) continue
        const known = picks.get(found.path)
        if (known === undefined || found.anchor < known.anchor || (found.anchor === known.anchor && found.time < known.time)) picks.set(found.path, found)
      }
    }
    return Object.fromEntries([...picks].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, { result }]) => [path, result]))
  }
}

function fieldsAt(folder: string, group: number, name: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, String(group), name), 'utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

const timeOf = (value: unknown): number => (typeof value === 'number' ? value : 0)

function followed(folder: string, ref: unknown, contentAt: (folder: string, group: number, name: string) => string | undefined, seen: readonly string[] = []): string {
  if (typeof ref !== 'string' || !/^[0-9]+\/[A-Za-z0-9._-]+\.json$/.test(ref) || seen.includes(ref)) return 'failed'
  const [group = '', name = ''] = ref.split('/')
  const next = fieldsAt(folder, Number(group), name)
  if (next === undefined) return 'failed'
  return 'ref' in next ? followed(folder, next.ref, contentAt, [...seen, ref]) : (contentAt(folder, Number(group), name) ?? 'failed')
}

function textContent(folder: string, group: number, name: string): string | undefined {
  const before = fieldsAt(folder, group, name)?.before
  if (before === null) return 'absent'
  if (typeof before !== 'string') return undefined
  return `${before.includes('\ufffd') ? 'lossy ' : ''}${Buffer.from(before, 'utf8').toString('base64')}`
}

function byteContent(folder: string, group: number, name: string): string | undefined {
  const { blob, size, lossy } = fieldsAt(folder, group, name) ?? {}
  if (blob === null) return lossy === true || (typeof size === 'number' && size !== 0) ? undefined : 'absent'
  if (blob !== name.replace(/\.json$/, '.before')) return undefined
  const place = join(folder, String(group), blob)
  const status = lstatSync(place, { throwIfNoEntry: false })
  if (status?.isFile() !== true || status.size !== size) return 'failed'
  return `${lossy === true ? 'lossy ' : ''}${readFileSync(place).toString('base64')}`
}

/** The string era with links (G1d, G1e): whatever has no `path` and `anchorSeq` is passed over (section 2.2). */
export const readTextRecords: Reader = readWith((folder, group, name) => {
  const { path, anchorSeq, time, ref } = fieldsAt(folder, group, name) ?? {}
  if (typeof path !== 'string' || typeof anchorSeq !== 'number') return undefined
  const result = ref === undefined ? textContent(folder, group, name) : followed(folder, ref, textContent)
  return result === undefined ? undefined : { path, anchor: anchorSeq, time: timeOf(time), result }
})

/** Store version 2 (section 1.6); records of the string era are passed over. */
export const readByteRecords: Reader = readWith((folder, group, name) => {
  const { store, file, time, ref } = fieldsAt(folder, group, name) ?? {}
  if (store !== 2 || typeof file !== 'string') return undefined
  const either = (at: string, number: number, record: string): string | undefined => (fieldsAt(at, number, record)?.store === 2 ? byteContent : textContent)(at, number, record)
  const result = ref === undefined ? byteContent(folder, group, name) : followed(folder, ref, either)
  return result === undefined ? undefined : { path: file, anchor: group, time: timeOf(time), result }
})
