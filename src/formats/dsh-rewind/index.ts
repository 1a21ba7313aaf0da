import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { joinSafe } from '../../fs/safe-path.js'
import { finding, type Finding } from '../../model/finding.js'
import { NoMatchError } from '../../model/errors.js'
import type { Message, SessionReading, SessionRef } from '../../model/session.js'
import type { BackupFolder, Format, SessionHead, Store, Surroundings } from '../format.js'
import { chooseGroups, groupCap } from './cap.js'
import { checkFolder } from './check.js'
import { readContents } from './contents.js'
import { planCopy } from './copy.js'
import { takeInventory } from './inventory.js'
import { interrupted } from './journal-ways.js'
import { folderOfId, groupNumber, isClean, parseRef, storeMarker, storeVersion } from './layout.js'
import { isVisible, readLog, type Log } from './log.js'
import { readLogHead, type LogHead } from './log-head.js'
import { LogPlaces } from './log-places.js'
import { planMerge, type MergeSide } from './merge.js'
import { planLogRepairs, snapshotRoots } from './migrate-log.js'
import { planMove } from './migrate-move.js'
import { planUpgrade } from './migrate.js'
import { conversationFolders, looksLikeStore, snapshotsIn, storePlaces } from './place.js'
import { fileLimit, policyLayers, readGates } from './policy.js'
import { readingOf, readState, type SessionState } from './reading.js'
import { inlineBytesOf } from './record.js'
import { readMarker, readRecordBytes } from './records.js'
import { stampOfRecords } from './stamp.js'
import { anchorOf, checkpointAt } from './target.js'
import { findUnpacker, type Unpacker } from './zstd.js'
import { findPacker } from './zstd-write.js'

/** Newest plugin that this version was tested with (formats/dsh-rewind section 0). */
const testedClient = '0.16.0-alpha.1'

const backupPattern = /^(?:0|[1-9][0-9]*)\/[A-Za-z0-9._-]+\.before$/

/** The rewind plugin of the DSH agent: `DSH_REWIND_SNAPSHOT_DIR`, else the snapshots of `DSH_HOME` and `~/.dsh` (section 1.1). */
export const dshRewind: Format = {
  id: 'dsh-rewind',
  places: storePlaces,
  detect: looksLikeStore,
  open: (root, around) => openDshRewind(root, around),
}

/**
 * Opens the store whose root is `root`: a folder of snapshots, or the agent's home that holds one. Throws the system error
 * when it cannot be resolved.
 * @param unpacker for packed conversation logs; that of this Node, or the library, unless told otherwise
 */
export function openDshRewind(root: string, around: Surroundings, unpacker: Unpacker = findUnpacker()): Store {
  const real = realpathSync(snapshotsIn(realpathSync(root)))
  const logFolders = conversationFolders(real, around)
  const places = new LogPlaces(logFolders)
  const logs = new Logs(places, unpacker)
  const states = new States(real, logs)
  const limit = fileLimit(around.env)
  return {
    format: 'dsh-rewind',
    root: real,
    // The plugin's age sweep takes any folder under the root (section 4.1).
    sidecar: join(dirname(real), '.rewind-admin', basename(real)),
    cap: groupCap,
    linksAreSafe: false,
    testedClient,
    conversationsElsewhere: true,
    defaultRetentionDays: Number.POSITIVE_INFINITY,
    restoreRules: { modeBits: 0o7777, modeCounts: false, readOnlyKeepsMode: true, ...(limit === undefined ? {} : { liveLimit: limit }) },
    fenced: logFolders,
    inventory: () => {
      places.refresh()
      return takeInventory(real)
    },
    read: (session, { now }) => states.read(session, now, around.baseFolder),
    editTexts: () => undefined,
    messages: (session) => messagesOf(logs.of(session.id)),
    live: () => ({ live: [], findings: [], complete: false }),
    globals: () => uncheckedLogs(places, unpacker),
    retention: () => policyLayers(real, around),
    gates: () => readGates(around.env),
    backupFolder: (session) => session,
    backupFolders: (session) => groupFolders(real, session.id),
    isBackup: (name) => backupPattern.test(name),
    inlineBytes: (session, name) => inlineAt(joinSafe(real, session), name),
    contents: (session) => readContents(real, session),
    head: (session) => headOf(logs.head(session.id)),
    recordStamp: (session) => stampOfRecords(real, session.id, places.of(session.id)?.path),
    checkpointAt: (session, reading, word) => checkpointAt(states.of(session, reading), reading, word),
    check: (session, reading, { now }) => checkFolder(real, session, states.of(session, reading), { now, knowsLogs: places.isKnown }),
    capSession: (session, reading, max, context) => chooseGroups(real, session, states.of(session, reading), max, context),
    migrate: (session, reading, { move }) => {
      const state = states.of(session, reading)
      return move === undefined ? planUpgrade(real, session, state, places.hasOlder(session.id)) : planMove(real, session, state, move)
    },
    conversationRepairs: (markers) => planLogRepairs({ root: real, roots: snapshotRoots(real, storePlaces(around)), places, unpacker, pack: findPacker() }, markers),
    merge: (from, session, { now }) => {
      const converted = places.hasOlder(session.id)
      const side = (at: string): MergeSide => ({ root: at, state: readState(at, session, logs.of(session.id, now)), converted })
      return planMerge(session, side(real), side(from), now)
    },
    interruptedRestores: (session) => states.fresh(session).journals.map((journal) => interrupted(session.id, journal)).filter((each) => each !== undefined),
    copying: {
      isSessionId: (text) => isClean(text) && !text.startsWith('.'),
      plan: (session, newId, before) => {
        const state = states.fresh(session)
        return planCopy(real, session, state, before === undefined ? seedOf(logs.head(newId), session.id) : cutAt(state, session, before))
      },
    },
  }
}

/** The conversations of the sessions of a store. */
class Logs {
  readonly #places: LogPlaces
  readonly #unpacker: Unpacker

  constructor(places: LogPlaces, unpacker: Unpacker) {
    this.#places = places
    this.#unpacker = unpacker
  }

  /** @param now milliseconds since 1970; without it no time is in the future */
  of(session: string, now = Number.POSITIVE_INFINITY): Log | undefined {
    const file = this.#places.of(session)
    return file === undefined ? undefined : readLog(file, this.#unpacker, now)
  }

  head(session: string): LogHead {
    const file = this.#places.of(session)
    return file === undefined ? {} : readLogHead(file, this.#unpacker)
  }
}

/** Reads sessions, and knows what a reading was made from while somebody holds it. */
class States {
  readonly #root: string
  readonly #logs: Logs
  readonly #known = new WeakMap<SessionReading, SessionState>()

  constructor(root: string, logs: Logs) {
    this.#root = root
    this.#logs = logs
  }

  fresh(session: SessionRef, now?: number): SessionState {
    return readState(this.#root, session, this.#logs.of(session.id, now))
  }

  read(session: SessionRef, now: number, baseFolder: string | undefined): SessionReading {
    const state = this.fresh(session, now)
    const reading = readingOf(session, state, { now, baseFolder })
    this.#known.set(reading, state)
    return reading
  }

  of(session: SessionRef, reading: SessionReading): SessionState {
    return this.#known.get(reading) ?? this.fresh(session)
  }
}

function messagesOf(log: Log | undefined): Message[] {
  return (log?.messages ?? []).map(({ seq, id, time, text }, index, all) => {
    const before = all[index - 1]
    return {
      id: id ?? String(seq),
      ...(before === undefined ? {} : { parent: before.id ?? String(before.seq) }),
      ...(time === undefined ? {} : { time }),
      text,
      active: log !== undefined && isVisible(log, seq),
    }
  })
}

function headOf({ cwd, createdAt }: LogHead): SessionHead {
  return { folders: cwd === undefined ? [] : [cwd], ...(createdAt === undefined ? {} : { firstRecorded: createdAt }) }
}

/** The groups of a session; of one with a newer store version nothing is looked at. */
function groupFolders(root: string, session: string): BackupFolder[] {
  const store = readMarker(join(root, session, storeMarker))
  if (store.kind === 'number' && store.value > storeVersion) return []
  return listFolder(join(root, session)).entries.flatMap((entry) =>
    groupNumber(entry.name) === undefined || !entry.isDirectory() ? [] : [{ path: `${session}/${entry.name}`, prefix: `${entry.name}/` }],
  )
}

/** Where the events of a fork end that it has of its source, when its own conversation says so. */
function seedOf({ parentSession, seedLength }: LogHead, source: string): number | undefined {
  return parentSession !== undefined && folderOfId(parentSession) === source ? seedLength : undefined
}

function cutAt(state: SessionState, session: SessionRef, before: string): number {
  const anchor = anchorOf(before, state.log)
  if (anchor === undefined) throw new NoMatchError(`session ${session.id} has no message ${before}`, { hint: `rewind-admin show ${session.id}` })
  return anchor
}

/** Bytes of a text record; `undefined` for any other backup, and for one that is not there. */
function inlineAt(folder: string, name: string): Buffer | undefined {
  const place = parseRef(name)
  if (place === undefined) return undefined
  try {
    const bytes = readRecordBytes(folder, place.group, place.name)
    return bytes === undefined ? undefined : inlineBytesOf(bytes)
  } catch {
    // Gone or unreadable since it was read: then there is no such backup.
    return undefined
  }
}

/** The checksums of packed logs are compared only where this Node can. */
function uncheckedLogs(places: LogPlaces, unpacker: Unpacker): Finding[] {
  if (unpacker.checks || !places.hasPacked) return []
  return [finding('checksum-unchecked', 'the checksums of packed conversation logs cannot be compared by this version of Node; damage that they would show stays unseen')]
}
