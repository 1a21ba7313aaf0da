import { join } from 'node:path'
import { readJsonObject } from '../../fs/read-small.js'
import { parsePeriod, type RetentionLayer } from '../../model/retention.js'
import type { Gate, Surroundings } from '../format.js'
import { homesOf } from './place.js'

const policyFile = 'snapshot-cleanup.json'
const policyLimit = 1024 * 1024
/** Days of a policy that is switched on and names none (section 4.2). */
const policyDays = 30

const limitVariable = 'DSH_REWIND_MAX_FILE_BYTES'
/** Bytes above which a file is neither recorded nor restored (section 1.8). */
const defaultFileLimit = 8 * 1024 * 1024

/**
 * The cleanup policy as far as it stands in a file (section 4.2): switched off it says nothing, and without one sessions are
 * kept for ever, as the plugin does. Newer builds keep the policy in the settings of the host, whose place is not known; so
 * the file counts only where somebody switched it on, and one that cannot be used stops everything (R05).
 */
export function policyLayers(root: string, around: Surroundings): RetentionLayer[] {
  const moved = around.env.DSH_SNAPSHOT_CLEANUP_CONFIG
  const files = moved === undefined || moved.trim() === '' ? homesOf(root, around).map((home) => join(home, policyFile)) : [moved.trim()]
  return files.map((file) => ({ layer: 'user', file, state: policyState(file) }))
}

function policyState(file: string): RetentionLayer['state'] {
  const read = readJsonObject(file, { follow: true, limit: policyLimit })
  if (read.kind === 'missing') return { kind: 'missing' }
  if (read.kind === 'unusable') return { kind: 'unusable', reason: read.reason }
  const { enabled = false, maxAgeDays = policyDays } = read.value
  if (typeof enabled !== 'boolean') return { kind: 'unusable', reason: 'enabled: it is not true or false' }
  const period = parsePeriod(maxAgeDays)
  if (period.kind === 'unusable') return { kind: 'unusable', reason: `maxAgeDays: ${period.reason}` }
  return enabled ? period : { kind: 'silent' }
}

/** Bytes above which the plugin leaves a file alone; `undefined` when the limit is switched off (section 1.8). */
export function fileLimit(env: Surroundings['env']): number | undefined {
  const text = env[limitVariable]?.trim() ?? ''
  const bytes = text === '' ? Number.NaN : Number(text)
  if (!Number.isInteger(bytes)) return defaultFileLimit
  return bytes > 0 ? bytes : undefined
}

/** What decides which files are recorded. */
export function readGates(env: Surroundings['env']): Gate[] {
  const value = env[limitVariable]
  const limit = fileLimit(env)
  const effect = limit === undefined ? 'files of any size are recorded and restored' : `files above ${String(limit)} bytes are neither recorded nor restored`
  return [{ gate: limitVariable, value: value === undefined ? undefined : JSON.stringify(value), from: value === undefined ? undefined : 'environment', effect, stops: false }]
}
