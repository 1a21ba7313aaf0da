import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { readJsonObject } from '../../fs/read-small.js'
import type { Json } from '../../model/report.js'

const statusLimit = 1024 * 1024

/** Where the last scheduled run of a store leaves its result. */
export function statusFile(store: Pick<Store, 'sidecar'>): string {
  return join(store.sidecar, 'status.json')
}

/** What the last scheduled run left, or null: only fields of JSON, as they are. */
export function lastRun(store: Pick<Store, 'sidecar'>): Json {
  const read = readJsonObject(statusFile(store), { follow: false, limit: statusLimit })
  return read.kind === 'object' ? (read.value as Json) : null
}
