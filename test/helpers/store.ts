import { chmodSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder } from './temp.js'

/** Two session ids, and the hash parts of two backup names. */
export const S1 = '11111111-1111-4111-8111-111111111111'
export const S2 = '22222222-2222-4222-8222-222222222222'
export const H = 'aaaaaaaaaaaaaaaa'
export const H2 = 'bbbbbbbbbbbbbbbb'
/** A time for lines where the test does not care. */
export const T = '2026-11-01T09:00:00.000Z'

/** A record as a line holds it: a backup name, `null` for "did not exist", or the fields as they shall stand there. */
export type RawRecord = string | null | Readonly<Record<string, unknown>>

function recordOf(record: RawRecord, time: string, version?: number): unknown {
  if (typeof record === 'object' && record !== null) return record
  const inName = record === null ? undefined : /@v(\d+)$/.exec(record)?.[1]
  return { backupFileName: record, version: version ?? Number(inName ?? 1), backupTime: time }
}

/** One `file-history-snapshot` line. `outer` is the outer `messageId` of an update: the message that made the edit. */
export function snap(
  checkpoint: string,
  files: Readonly<Record<string, RawRecord>> = {},
  time: string = T,
  options: { readonly update?: boolean; readonly outer?: string } = {},
): string {
  const entries = Object.entries(files).map(([path, record]) => [path, recordOf(record, time)] as const)
  return JSON.stringify({
    type: 'file-history-snapshot',
    messageId: options.outer ?? checkpoint,
    snapshot: { messageId: checkpoint, trackedFileBackups: Object.fromEntries(entries), timestamp: time },
    isSnapshotUpdate: options.update ?? false,
  })
}

/** One `file-history-delta` line: `message` edited `path` under `checkpoint`. */
export function delta(
  message: string,
  checkpoint: string,
  path: string,
  record: RawRecord,
  options: { readonly version?: number; readonly time?: string } = {},
): string {
  const time = options.time ?? T
  return JSON.stringify({
    type: 'file-history-delta',
    messageId: message,
    snapshotMessageId: checkpoint,
    trackingPath: path,
    backup: recordOf(record, time, options.version),
    timestamp: time,
  })
}

export interface MessageFields {
  readonly parent?: string | null
  readonly time?: string
  readonly text?: string
  readonly session?: string
  readonly cwd?: string
  readonly version?: string
  readonly entrypoint?: string
}

function envelope(uuid: string, fields: MessageFields, kind: 'user' | 'assistant', content: unknown): Record<string, unknown> {
  return {
    parentUuid: fields.parent ?? null,
    isSidechain: false,
    type: kind,
    message: { role: kind, content },
    uuid,
    timestamp: fields.time ?? T,
    userType: 'external',
    entrypoint: fields.entrypoint ?? 'cli',
    cwd: fields.cwd ?? '/home/u/project',
    sessionId: fields.session ?? S1,
    version: fields.version ?? '2.1.332',
    gitBranch: 'HEAD',
  }
}

/** A message of the user's: what a checkpoint belongs to. */
export function userLine(uuid: string, fields: MessageFields = {}): string {
  return JSON.stringify(envelope(uuid, fields, 'user', [{ type: 'text', text: fields.text ?? 'note the sightings' }]))
}

export function assistantLine(uuid: string, fields: MessageFields = {}): string {
  return JSON.stringify(envelope(uuid, fields, 'assistant', [{ type: 'text', text: fields.text ?? 'done' }]))
}

/** A `user` line that carries the result of a tool (formats/claude-code section 9). */
export function toolResultLine(uuid: string, toolUseResult: Readonly<Record<string, unknown>>, fields: MessageFields = {}): string {
  const content = [{ tool_use_id: `toolu_${uuid}`, type: 'tool_result', content: 'done' }]
  return JSON.stringify({ ...envelope(uuid, fields, 'user', content), toolUseResult })
}

export interface FileTimes {
  /** Milliseconds since 1970 or ISO 8601. */
  readonly mtime?: number | string
  readonly mode?: number
}

/** Writes `projects/<slug>/<session>.jsonl`, mode 0600; lines get their line feeds, a Buffer is written as it is. */
export function writeTranscript(
  root: string,
  slug: string,
  session: string,
  content: readonly string[] | Buffer,
  options: FileTimes = {},
): string {
  const bytes = Buffer.isBuffer(content) ? content : Buffer.from(content.map((line) => `${line}\n`).join(''))
  return writeStoreFile(root, `projects/${slug}/${session}.jsonl`, bytes, options)
}

/** Writes `file-history/<session>/<name>`, mode 0644. */
export function writeBackup(root: string, session: string, name: string, bytes: Buffer | string, options: FileTimes = {}): string {
  return writeStoreFile(root, `file-history/${session}/${name}`, bytes, { mode: 0o644, ...options })
}

/** Writes any file of a store, folders on the way 0700. */
export function writeStoreFile(root: string, path: string, bytes: Buffer | string, options: FileTimes = {}): string {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(file, bytes)
  chmodSync(file, options.mode ?? 0o600)
  if (options.mtime !== undefined) setTime(file, options.mtime)
  return file
}

/** Sets mtime and atime; milliseconds since 1970 or ISO 8601. */
export function setTime(path: string, time: number | string): void {
  const at = new Date(time)
  utimesSync(path, at, at)
}

/** The root of a store with no session in it, in a temporary home. */
export async function emptyRoot(register?: Parameters<typeof temporaryFolder>[0]): Promise<string> {
  const root = join(await temporaryFolder(register), '.claude')
  for (const folder of ['projects', 'file-history']) mkdirSync(join(root, folder), { recursive: true, mode: 0o700 })
  return root
}
