import { hash } from 'node:crypto'
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
import { backupFolderOf, sidecarOf } from './layout.js'
import { planMigration } from './migrate.js'
import { messagesOf } from './messages.js'
import { readSession } from './reading.js'
import { rebuildState } from './rebuild.js'
import { agentRedoOf } from './redo.js'
import { agentFolder, limitsOf, readGates, retentionLayers, storePlaces } from './settings.js'

/** Newest version of the plugin that this version was tested with (formats/pi-candy-undo, head of the page). */
const testedPlugin = '1.0.0'

/** pi keeps no list of running processes: only a quiet period protects an open session. */
const noRegistry: LiveRegistry = { live: [], findings: [], complete: false }

/** pi-candy-undo: `candyUndo.storageDir` of pi's global settings, else `~/.pi/file-history` (formats/pi-candy-undo section 1). */
export const piCandyUndo: Format = {
  id: 'pi-candy-undo',
  places: (around) => storePlaces(around),
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
      return conversation === undefined ? [] : messagesOf(conversation)
    },
    live: () => noRegistry,
    globals: () => [],
    retention: (project) => retentionLayers(around, project),
    gates: (project) => readGates(around, project),
    backupFolder: backupFolderOf,
    contents: (session) => readContents(real, session),
    head: (session) => headOf(conversations, session.id),
    conversations: forkRulesOf(real, conversations, baseFolder),
    // Setuid and its like are not restored (section 6).
    restoreRules: { modeBits: 0o777, modeCounts: true },
    fenced: [real, conversations.folder],
    isBackup: isBackupName,
    pathHash: (key) => hash('sha256', key, 'hex').slice(0, 16),
    check: (session, reading, { now }) => checkSession({ root: real, conversations }, session, reading, now),
    capSession: (session, _reading, max) => capSession(real, session, max),
    migrate: (session, reading, { move }) => planMigration(real, session, reading, { move, conversation: conversations.headersOf(session.id)[0]?.path }),
    rebuildRecords: (session, how) => rebuildState({ root: real, conversations, baseFolder }, session, how),
    agentRedo: agentRedoOf(real, limits.redoItems),
  }
}

function headOf(conversations: Conversations, session: string): SessionHead {
  const times = conversations.headersOf(session).map(({ header }) => Date.parse(header.timestamp ?? ''))
  const known = times.filter((time) => !Number.isNaN(time))
  return { folders: foldersOf(conversations, session), ...(known.length === 0 ? {} : { firstRecorded: Math.min(...known) }) }
}
