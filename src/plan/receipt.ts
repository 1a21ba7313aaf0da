import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import type { Identity } from '../fs/identity.js'
import { statusOf } from '../fs/identity.js'
import { foldersAbove } from '../fs/safe-path.js'
import type { Action, PlannedItem, RemoveAction, StagedAction } from './action.js'
import { inOrderOfRemoval, planSchemaVersion } from './action.js'
import type { FolderTimes } from './folder-times.js'
import { identitySchema, itemSchema, refuseNewer, sessionSchema } from './schema.js'

/** A folder that something was moved out of, so that it can be made again. */
export interface FolderRecord {
  readonly path: string
  readonly mode: number
  readonly mtimeNs: string
  readonly uid: number
  readonly gid: number
}

/** What the trash knows of one action of one run: enough to put everything back exactly. */
export interface Receipt {
  readonly schemaVersion: typeof planSchemaVersion
  readonly runId: string
  readonly command: string
  /** ISO 8601; the grace period counts from it (R20). */
  readonly trashedAt: string
  readonly kind: Action['kind']
  readonly session?: string
  readonly project?: string
  /** Milliseconds since 1970. */
  readonly lastActivity?: number
  readonly reason: string
  readonly bytes: number
  /** In the order they were moved; the transcript last. */
  readonly items: readonly PlannedItem[]
  /** Every folder above the items, the outermost first. */
  readonly folders: readonly FolderRecord[]
  /** What was put in the place of the item, or where nothing was; `made` are the folders that had to be made for it. */
  readonly published?: { readonly path: string; readonly beside?: true; readonly identity: Identity; readonly made?: readonly string[] }
}

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

const receiptSchema = v.object({
  schemaVersion: v.literal(planSchemaVersion),
  runId: v.string(),
  command: v.string(),
  trashedAt: v.pipe(v.string(), v.isoTimestamp()),
  kind: v.picklist(['trash-session', 'trash-backups', 'replace']),
  session: v.exactOptional(sessionSchema),
  project: v.exactOptional(v.string()),
  lastActivity: v.exactOptional(v.number()),
  reason: v.string(),
  bytes: count,
  items: v.array(itemSchema),
  folders: v.array(v.object({ path: itemSchema.entries.path, mode: count, mtimeNs: v.string(), uid: count, gid: count })),
  published: v.exactOptional(
    v.object({
      path: itemSchema.entries.path,
      beside: v.exactOptional(v.literal(true)),
      identity: identitySchema,
      made: v.exactOptional(v.array(itemSchema.entries.path)),
    }),
  ),
})

export interface RunFacts {
  readonly runId: string
  readonly command: string
  /** Milliseconds since 1970. */
  readonly now: number
}

/** The receipt for an action that is about to be done, with the items and the folders above them as they are now. */
export function receiptFor(action: RemoveAction | StagedAction, items: readonly PlannedItem[], root: string, run: RunFacts, times: FolderTimes): Receipt {
  const { session } = action
  const extra = action.kind === 'replace' ? replaceFields(action, root) : removeFields(action)
  const beside = action.kind === 'replace' && action.beside === true
  return {
    schemaVersion: planSchemaVersion,
    runId: run.runId,
    command: run.command,
    trashedAt: new Date(run.now).toISOString(),
    kind: action.kind,
    ...(session === undefined ? {} : { session }),
    ...extra,
    reason: action.reason,
    bytes: action.bytes,
    items: inOrderOfRemoval(items),
    folders: beside ? [] : folderRecords(root, action.kind === 'replace' ? [action.path] : items.map((item) => item.path), times),
  }
}

function removeFields(action: RemoveAction): Pick<Receipt, 'project' | 'lastActivity'> {
  return {
    ...(action.project === undefined ? {} : { project: action.project }),
    ...(action.lastActivity === undefined ? {} : { lastActivity: action.lastActivity }),
  }
}

function replaceFields(action: StagedAction, root: string): Pick<Receipt, 'published'> {
  const made = action.beside === true ? [] : foldersAbove(action.path).filter((folder) => statusOf(join(root, folder)) === undefined)
  return {
    published: {
      path: action.path,
      ...(action.beside === undefined ? {} : { beside: true }),
      identity: action.stagedIdentity,
      ...(made.length === 0 ? {} : { made }),
    },
  }
}

function folderRecords(root: string, paths: readonly string[], times: FolderTimes): FolderRecord[] {
  const records: FolderRecord[] = []
  for (const path of new Set(paths.flatMap((each) => foldersAbove(each)))) {
    const status = statusOf(join(root, path))
    if (status === undefined) continue
    const mtimeNs = times.before(join(root, path), undefined, status) ?? status.mtimeNs
    const owner = { uid: Number(status.uid), gid: Number(status.gid) }
    records.push({ path, mode: Number(status.mode & 0o7777n), mtimeNs: mtimeNs.toString(), ...owner })
  }
  return records
}

/**
 * Reads a receipt; `undefined` when it is missing or damaged: then the place of each file in the trash says where it was.
 * @throws NewerFormatError when a newer version of ours wrote it
 */
export function readReceipt(path: string): Receipt | undefined {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
  refuseNewer(value, path)
  const parsed = v.safeParse(receiptSchema, value)
  return parsed.success ? parsed.output : undefined
}
