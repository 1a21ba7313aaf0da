import * as fc from 'fast-check'
import type { BackupRecord } from '../../src/model/backup.js'
import type { DeltaEvent, HistoryEvent, SalvageEvent, SnapshotEvent } from '../../src/model/history.js'
import { H, H2 } from '../helpers/store.js'

let next = 0

/** A place that no other event has. */
function place(): { source: number; offset: number } {
  next += 100
  return { source: 0, offset: next }
}

/** `H@v3` becomes version 3, `null` version 1; any other record is given as it is. */
export function record(of: string | null | BackupRecord): BackupRecord {
  if (typeof of === 'object' && of !== null) return of
  return { name: of, version: Number(of?.split('@v')[1] ?? 1) }
}

export function snapshot(
  checkpoint: string,
  files: Readonly<Record<string, string | null | BackupRecord>> = {},
  options: { readonly update?: boolean; readonly time?: string } = {},
): SnapshotEvent {
  return {
    kind: 'snapshot',
    checkpoint,
    update: options.update ?? false,
    ...(options.time === undefined ? {} : { time: options.time }),
    files: new Map(Object.entries(files).map(([path, of]) => [path, record(of)])),
    ...place(),
  }
}

export function delta(checkpoint: string, path: string, of: string | null | BackupRecord): DeltaEvent {
  return { kind: 'delta', checkpoint, path, record: record(of), ...place() }
}

export function salvaged(...names: string[]): SalvageEvent {
  return { kind: 'salvage', names, ...place() }
}

const paths = fc.constantFrom('a.txt', 'src/b.ts', '/etc/c', '__proto__')
const checkpoints = fc.constantFrom('m1', 'm2', 'm3', 'm4', 'm5')
const names = fc.tuple(fc.constantFrom(H, H2), fc.integer({ min: 1, max: 6 })).map(([hash, version]) => `${hash}@v${String(version)}`)
const records: fc.Arbitrary<BackupRecord> = fc.oneof(
  { weight: 6, arbitrary: names.map((name) => record(name)) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 6 }).map((version): BackupRecord => ({ name: null, version })) },
  { weight: 1, arbitrary: fc.constant<BackupRecord>({ name: '../../x', version: 2, unusable: 'not a backup name' }) },
)

/** Any history line, sensible or not. */
export const anyEvent: fc.Arbitrary<HistoryEvent> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .tuple(checkpoints, fc.boolean(), fc.uniqueArray(fc.tuple(paths, records), { selector: ([path]) => path, maxLength: 4 }))
      .map(([checkpoint, update, files]): HistoryEvent => ({ kind: 'snapshot', checkpoint, update, files: new Map(files), ...place() })),
  },
  { weight: 3, arbitrary: fc.tuple(checkpoints, paths, records).map(([checkpoint, path, of]) => delta(checkpoint, path, of)) },
  { weight: 1, arbitrary: fc.array(names, { minLength: 1, maxLength: 3 }).map((found) => salvaged(...found)) },
)
