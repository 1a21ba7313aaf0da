import * as v from 'valibot'
import { unsafePathReason } from '../fs/safe-path.js'
import { NewerFormatError, UsageError } from '../model/errors.js'
import type { Action, Plan } from './action.js'
import { planSchemaVersion } from './action.js'

const decimal = v.pipe(v.string(), v.regex(/^-?[0-9]{1,24}$/))
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
/** A path that may be joined to a root; anything else is refused before it comes near a disk. */
const safePath = v.pipe(
  v.string(),
  v.check((path) => unsafePathReason(path) === undefined, 'is not a path below the root'),
)
export const sessionSchema = v.pipe(v.string(), v.minLength(1), v.maxLength(1024))
const kindSchema = v.picklist(['transcript', 'companion', 'agent', 'backups', 'leftover'])

export const identitySchema = v.object({ dev: decimal, ino: decimal, size: count, mtimeNs: decimal })

export const itemSchema = v.object({
  path: safePath,
  kind: kindSchema,
  type: v.picklist(['file', 'folder', 'link', 'other']),
  mode: count,
  identity: identitySchema,
  tree: v.exactOptional(v.object({ entries: count, bytes: count, newestNs: decimal })),
})

const base = { reason: v.string(), bytes: count, witnesses: v.exactOptional(v.array(itemSchema)) }

const removeSchema = v.object({
  ...base,
  kind: v.picklist(['trash-session', 'trash-backups']),
  session: sessionSchema,
  project: v.exactOptional(v.string()),
  lastActivity: v.exactOptional(v.number()),
  items: v.pipe(
    v.array(itemSchema),
    v.check((items) => !overlap(items.map((item) => item.path)), 'holds one path inside another, or twice'),
  ),
  emptied: v.exactOptional(v.array(safePath)),
  needs: v.exactOptional(v.array(safePath)),
})

const replaceSchema = v.object({
  ...base,
  kind: v.literal('replace'),
  session: v.exactOptional(sessionSchema),
  path: safePath,
  beside: v.exactOptional(v.literal(true)),
  old: v.exactOptional(itemSchema),
  staged: v.exactOptional(safePath),
  stagedIdentity: v.exactOptional(identitySchema),
  content: v.exactOptional(v.pipe(v.string(), v.base64())),
  mode: v.exactOptional(v.pipe(count, v.maxValue(0o7777))),
  appendOnly: v.exactOptional(v.literal(true)),
})

const actionSchema = v.variant('kind', [removeSchema, replaceSchema])

const planSchema = v.object({
  schemaVersion: v.literal(planSchemaVersion),
  format: v.picklist(['claude-code', 'pi-candy-undo', 'dsh-rewind', 'qwen-code']),
  root: v.string(),
  sidecar: v.string(),
  createdAt: v.number(),
  command: v.string(),
  storeSessions: count,
  actions: v.array(actionSchema),
  kept: v.array(v.object({ session: v.string(), reason: v.string() })),
})

/** True when a path stands twice in the list, or one lies inside another. */
function overlap(paths: readonly string[]): boolean {
  const known = new Set(paths)
  if (known.size !== paths.length) return true
  return paths.some((path) => {
    for (let cut = path.lastIndexOf('/'); cut > 0; cut = path.lastIndexOf('/', cut - 1)) {
      if (known.has(path.slice(0, cut))) return true
    }
    return false
  })
}

/**
 * Checks a plan that was read from somewhere.
 * @param from what to call it in errors
 * @throws NewerFormatError when a newer version of ours wrote it; UsageError when it is no plan
 */
export function parsePlan(value: unknown, from: string): Plan {
  refuseNewer(value, from)
  const parsed = v.safeParse(planSchema, value)
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  throw new UsageError(`${from} is not a plan: ${v.getDotPath(issue) ?? 'it'}: ${issue.message}; nothing was changed`, {
    hint: 'make the plan again with --plan-out',
  })
}

/** Checks one action of a journal; `undefined` when it is none. */
export function parseAction(value: unknown): Action | undefined {
  const parsed = v.safeParse(actionSchema, value)
  return parsed.success ? parsed.output : undefined
}

/** @throws NewerFormatError when `schemaVersion` is higher than ours */
export function refuseNewer(value: unknown, from: string): void {
  if (typeof value !== 'object' || value === null || !('schemaVersion' in value)) return
  const version = value.schemaVersion
  if (typeof version !== 'number' || version <= planSchemaVersion) return
  throw new NewerFormatError(`${from} was written in version ${String(version)}, and this program knows ${String(planSchemaVersion)}`, {
    hint: 'update rewind-admin; nothing was changed',
  })
}
