import { createHash } from 'node:crypto'
import { lstatSync, realpathSync, type BigIntStats } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { NotRegularError } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { LockedError, systemErrorCode } from '../../model/errors.js'
import { finding, type Finding } from '../../model/finding.js'
import type { ConversationRepair, ConversationRepairs } from '../format.js'
import { isOddGroup, groupNumber, journalId } from './layout.js'
import { readLogLines } from './log-lines.js'
import type { LogFile, LogPlaces } from './log-places.js'
import { repairLog, type MarkerRepair, type RepairedLog } from './log-repair.js'
import { isVisible, readLog } from './log.js'
import type { Unpacker } from './zstd.js'
import { packLog, type Packer } from './zstd-write.js'

/** What the repair of logs needs to know. */
export interface LogWorld {
  /** Real path of the folder of snapshots. */
  readonly root: string
  /** All folders of snapshots of this machine, this one among them. */
  readonly roots: readonly string[]
  readonly places: LogPlaces
  readonly unpacker: Unpacker
  readonly pack: Packer
}

/** Ends the name of the lock that the plugin itself takes while it repairs a log (section 5.4). */
const lockEnding = '.rewind-fix.lock'

/** The two repairs of old markers (sections 5.3 and 5.4) for every log in the home of a store, with or without snapshots. */
export function planLogRepairs(world: LogWorld, markers: MarkerRepair): ConversationRepairs {
  const repairs: ConversationRepair[] = []
  const findings: Finding[] = []
  for (const { session, file } of world.places.each()) {
    const home = dirname(world.root)
    const own = isOwn(home, file)
    // The store of another home does it.
    if (!own && world.roots.some((root) => root !== world.root && isOwn(dirname(root), file))) continue
    const planned = planOne(world, session, file, markers)
    if (planned === undefined) continue
    if ('refusal' in planned) findings.push(finding('marker-left', `left as it is: ${planned.refusal}`, { session, path: file.path }))
    else if (own) repairs.push(repairOf(world, session, file, markers, planned))
    else findings.push(finding('marker-left', `left as it is: it does not lie in ${home}; ${planned.reason} would do`, { session, path: file.path }))
  }
  return { repairs, findings }
}

function isOwn(home: string, { path }: LogFile): boolean {
  try {
    const folder = join(home, 'sessions')
    return realpathSync(folder) === folder && path.startsWith(`${folder}/`)
  } catch {
    return false
  }
}

function planOne(world: LogWorld, session: string, file: LogFile, markers: MarkerRepair): RepairedLog | { readonly refusal: string } | undefined {
  const repaired = read(world, file, markers)
  if (repaired === undefined || 'refusal' in repaired) return repaired
  if (lstatSync(`${file.path}${lockEnding}`, { throwIfNoEntry: false }) !== undefined) return { refusal: `the plugin repairs it, or was stopped while it did (${file.path}${lockEnding})` }
  const { moved } = repaired
  const stale = moved === undefined ? undefined : world.roots.find((root) => hasNumbersFrom(join(root, session), moved))
  if (stale === undefined) return repaired
  return { refusal: `events from ${String(moved)} on would be counted anew, and snapshots in ${join(stale, session)} are kept by their numbers` }
}

function read({ unpacker }: LogWorld, file: LogFile, markers: MarkerRepair): RepairedLog | { readonly refusal: string } | undefined {
  try {
    const { lines, trouble } = readLogLines(file, unpacker)
    const repaired = repairLog(lines, markers)
    // What is wrong with a log that needs no repair is said where it is read for its store.
    return repaired === undefined || trouble === undefined ? repaired : { refusal: trouble }
  } catch (error) {
    if (error instanceof NotRegularError || systemErrorCode(error) !== undefined) return undefined
    throw error
  }
}

/** True for a session with a group behind an event, or with a journal, which names groups. */
function hasNumbersFrom(folder: string, seq: number): boolean {
  return listFolder(folder).entries.some(({ name }) => journalId(name) !== undefined || isOddGroup(name) || (groupNumber(name) ?? -1) >= seq)
}

function repairOf(world: LogWorld, session: string, file: LogFile, markers: MarkerRepair, { reason }: RepairedLog): ConversationRepair {
  const before = lstatSync(file.path, { bigint: true })
  const said = messagesIn(file, world.unpacker)
  let digest: string | undefined
  return {
    session,
    reason,
    lastWritten: Number(before.mtimeNs / 1_000_000n),
    file: {
      path: relative(dirname(world.root), file.path),
      mtimeMs: Number(before.mtimeNs / 1_000_000n),
      write: (take) => {
        const repaired = read(world, file, markers)
        if (repaired === undefined || 'refusal' in repaired || !isSame(before, lstatSync(file.path, { bigint: true }))) {
          throw new LockedError(`${file.path} changed while it was read; it was left as it was`, { hint: 'run again when the session is quiet' })
        }
        digest = digestOf(repaired.lines)
        if (file.packed) take(packLog(repaired.lines, world.pack))
        else for (const line of repaired.lines) take(Buffer.concat([line, Buffer.from('\n')]))
      },
    },
    check: () => {
      const { lines, trouble } = readLogLines(file, world.unpacker)
      if (trouble !== undefined) return trouble
      if (digestOf(lines) !== digest) return 'it is not what was written'
      return messagesIn(file, world.unpacker) === said ? undefined : 'its messages would not be what they were'
    },
  }
}

function isSame(before: BigIntStats, now: BigIntStats): boolean {
  return now.ino === before.ino && now.size === before.size && now.mtimeNs === before.mtimeNs
}

/** The messages of the human with whether they are still part of the conversation; their numbers may change. */
function messagesIn(file: LogFile, unpacker: Unpacker): string {
  const log = readLog(file, unpacker, Number.POSITIVE_INFINITY)
  return JSON.stringify(log.messages.map(({ seq, id, text, time }) => [id, text, time, isVisible(log, seq)]))
}

function digestOf(lines: readonly Buffer[]): string {
  const hash = createHash('sha256')
  for (const line of lines) hash.update(line).update('\n')
  return hash.digest('hex')
}

/** Folders of snapshots that stand at some places of this machine, by their real paths. */
export function snapshotRoots(root: string, places: readonly string[]): string[] {
  const found = places.flatMap((place) => {
    try {
      const real = realpathSync(place)
      return lstatSync(real).isDirectory() ? [real] : []
    } catch {
      return []
    }
  })
  return [...new Set([root, ...found])]
}
