import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isBackupName } from '../../model/names.js'
import type { Format, LiveRegistry, SessionHead, Store, Surroundings } from '../format.js'
import { capSession } from './cap.js'
import { checkSession } from './check.js'
import { readContents } from './contents.js'
import { Conversations, foldersOf } from './conversations.js'
import { forkRulesOf } from './fork.js'
import { looksLikeStore, takeInventory } from './inventory.js'
import { backupFolderOf, sidecarOf, statePathOf } from './layout.js'
import { planMigration } from './migrate.js'
import { messagesOf, recordedMessages } from './messages.js'
import { readSession } from './reading.js'
import { folderNoted, readStateFile, stateIn } from './state-file.js'
import { pathHashOf } from './versions.js'
import { rebuildState } from './rebuild.js'
import { agentRedoOf } from './redo.js'
import { agentFolder, limitsOf, readGates, recorderFolder, retentionLayers, storePlaces } from './settings.js'

/** Newest version of the plugin that this version was tested with (formats/pi-candy-undo, head of the page). */
const testedPlugin = '1.0.0'

/** pi keeps no list of running processes: only a quiet period protects an open session. */
const noRegistry: LiveRegistry = { live: [], findings: [], complete: false }

/** pi-candy-undo, and what our recorder writes in the same layout: `candyUndo.storageDir` of pi's global settings, else `~/.pi/file-history` (formats/pi-candy-undo section 1). */
export const piCandyUndo: Format = {
  id: 'pi-candy-undo',
  places: (around) => [...storePlaces(around), recorderFolder(around)],
  detect: (root) => looksLikeStore(root),
  open: (root, around) => openPiCandyUndo(root, around),
}

/** Opens the store whose root is `root`. Throws the system error when the root cannot be resolved. */
export function openPiCandyUndo(root: string, around: Surroundings): Store {
  const real = realpathSync(root)
  const agent = agentFolder(around)
  const conversations = new Conversations(around.conversations ?? join(agent, 'sessions'))
  const { baseFolder } = around
  const limits = limitsOf(around)
  // The settings of the plugin are not for what it does not write.
  const isOurs = isFolder(recorderFolder(around), real)
  return {
    format: 'pi-candy-undo',
    root: real,
    sidecar: sidecarOf(real),
    cap: limits.snapshots,
    linksAreSafe: true,
    testedClient: testedPlugin,
    inventory: () => {
      conversations.refresh()
      return takeInventory(real)
    },
    read: (session, { now }) => readSession({ root: real, conversations, baseFolder }, session, now),
    editTexts: () => undefined,
    messages: (session) => {
      const conversation = conversations.of(session.id, Number.POSITIVE_INFINITY)
      if (conversation !== undefined) return messagesOf(conversation)
      const state = stateIn(readStateFile(real, statePathOf(session.id)))
      return state === undefined ? [] : recordedMessages(state)
    },
    live: () => noRegistry,
    globals: () => [],
    retention: (project) => (isOurs ? [] : retentionLayers(around, project)),
    gates: (project) => (isOurs ? [] : readGates(around, project)),
    backupFolder: backupFolderOf,
    contents: (session) => readContents(real, session),
    head: (session) => headOf(real, conversations, session.id),
    conversations: forkRulesOf(real, conversations, baseFolder),
    // Setuid and its like are not restored (section 6).
    restoreRules: { modeBits: 0o777, modeCounts: true },
    fenced: [real, conversations.folder],
    isBackup: isBackupName,
    pathHash: pathHashOf,
    check: (session, reading, { now }) => checkSession({ root: real, conversations }, session, reading, now),
    capSession: (session, _reading, max, context) => capSession(real, session, max, context),
    migrate: (session, reading, { move }) => planMigration(real, session, reading, { move, conversation: conversations.headersOf(session.id)[0]?.path }),
    rebuildRecords: (session, how) => rebuildState({ root: real, conversations, baseFolder }, session, how),
    agentRedo: agentRedoOf(real, limits.redoItems),
  }
}

function headOf(root: string, conversations: Conversations, session: string): SessionHead {
  const times = conversations.headersOf(session).map(({ header }) => Date.parse(header.timestamp ?? ''))
  const known = times.filter((time) => !Number.isNaN(time))
  const said = foldersOf(conversations, session)
  // Without a conversation only a recorder of ours has noted where the session was started.
  const noted = said.length > 0 ? undefined : folderNoted(root, session)
  return { folders: noted === undefined ? said : [noted], ...(known.length === 0 ? {} : { firstRecorded: Math.min(...known) }) }
}

function isFolder(path: string, real: string): boolean {
  try {
    return realpathSync(path) === real
  } catch {
    return false
  }
}
