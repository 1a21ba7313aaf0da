import { dirname } from 'node:path'
import * as v from 'valibot'
import type { TargetPlace } from '../../model/restore-plan.js'

/** Version of the layout of `point.json` that this version writes and the newest that it reads. */
export const pointVersion = 1

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const fileName = v.pipe(v.string(), v.regex(/^[a-z0-9-]+$/))

const placed = {
  /** Absolute path as tracked. */
  path: v.string(),
  /** Real path of its folder, and its name in it. */
  folder: v.string(),
  name: v.string(),
}

const entrySchema = v.variant('state', [
  v.object({ state: v.literal('absent'), ...placed }),
  v.object({
    state: v.literal('file'),
    ...placed,
    mode: v.pipe(count, v.maxValue(0o7777)),
    size: count,
    sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
    /** The file in the point's folder that holds the bytes, and where in it they begin. */
    blob: fileName,
    offset: count,
  }),
  v.object({ state: v.literal('skipped'), path: v.string(), reason: v.string() }),
])

const pointSchema = v.object({
  schemaVersion: v.literal(pointVersion),
  session: v.string(),
  /** The checkpoint that the rewind went to. */
  checkpoint: v.string(),
  /** When the point was made, ISO 8601. */
  createdAt: v.pipe(v.string(), v.isoTimestamp()),
  /** Temporary files of the rewind are named `.rewind-admin-<token>-<number>`. */
  token: v.pipe(v.string(), v.regex(/^[0-9a-f]+$/)),
  /** Real paths of the folders that the rewind had to make, the outermost first. */
  folders: v.array(v.string()),
  entries: v.array(entrySchema),
})

/** State of one path just before a rewind. Sizes and offsets are bytes, modes `mode & 07777`. */
export type PointEntry = v.InferOutput<typeof entrySchema>
/** What a redo point says; its bytes lie beside it. */
export type RedoPoint = v.InferOutput<typeof pointSchema>

/** A parsed `point.json`, or why it cannot be used. */
export function parsePoint(value: unknown): { readonly point: RedoPoint } | { readonly newer: true } | { readonly reason: string } {
  const version = v.safeParse(v.object({ schemaVersion: count }), value)
  if (version.success && version.output.schemaVersion > pointVersion) return { newer: true }
  const parsed = v.safeParse(pointSchema, value)
  if (parsed.success) return { point: parsed.output }
  const issue = parsed.issues[0]
  return { reason: `${v.getDotPath(issue) ?? 'it'}: ${issue.message}` }
}

/** How temporary files of one run are named. */
export function temporaryPrefix(token: string): string {
  return `.rewind-admin-${token}-`
}

/** Every folder that has to be made for a place, the outermost first. */
export function missingFolders({ folder, missing }: TargetPlace): string[] {
  const folders: string[] = []
  for (let path = folder; folders.length < missing; path = dirname(path)) folders.unshift(path)
  return folders
}
