import { lstatSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { membersOf, type SessionRef } from '../../model/session.js'
import type { Conversations } from '../conversation.js'
import type { Format, Gate, Store, Surroundings } from '../format.js'
import { mendLines } from '../mend-lines.js'
import { takeCleanupLock } from './agent-lock.js'
import { chooseForCap } from './cap.js'
import { checkSession } from './check.js'
import { readContents } from './contents.js'
import { forkTranscript } from './fork-lines.js'
import { readHead } from './head.js'
import { takeInventory } from './inventory.js'
import { archiveFolder, backupFolderOf, chatsFolder, cleanupMarker, historyFolder, isSessionId, projectsFolder } from './layout.js'
import { readMessages, readPrompt } from './messages.js'
import { withoutMetadata } from './migrate.js'
import { planMove } from './move.js'
import { productDifference } from './product-restore.js'
import { readSession } from './reading.js'
import { recordsIn } from './record-bytes.js'
import { readRegistry, type KnownEntries } from './registry.js'
import { homeRoot, outsideTranscripts, rootsOf } from './roots.js'
import { retentionLayers } from './settings.js'
import { findPrompts } from './shared-files.js'
import { snapshotCap } from './timeline.js'
import { transcriptsOf, type TranscriptFile } from './transcripts.js'

/** Newest client that this version was tested with (formats/qwen-code, head of the page). */
const testedClient = '0.24.4'

/** Qwen Code: backups under `$QWEN_HOME`, else `~/.qwen`; transcripts there or under the runtime root (formats/qwen-code section 1). */
export const qwenCode: Format = {
  id: 'qwen-code',

  places(around) {
    return [homeRoot(around)]
  },

  detect(root) {
    if (holdsChats(root) || isThere(join(root, cleanupMarker))) return true
    // Transcripts may lie in another root: then the name is what tells.
    return basename(root) === '.qwen' && [historyFolder, projectsFolder].some((name) => isThere(join(root, name)))
  },

  open(root, around) {
    return openQwenCode(root, around)
  },
}

/** Opens the store whose home root is `root`. Throws the system error when it cannot be resolved. */
export function openQwenCode(root: string, around: Surroundings): Store {
  const real = realpathSync(root)
  const roots = rootsOf(real, around)
  const bases = [...roots.inside.map((prefix) => join(real, prefix)), ...(roots.outside === undefined ? [] : [roots.outside])]
  const entries: KnownEntries = new Map()
  // Once the sessions of a project are gone only this says which folder its prompts are in.
  const projects = new Set<string>()
  // Listed anew with every inventory.
  let beyond = outsideTranscripts(roots)
  const filesOf = (session: SessionRef): TranscriptFile[] => transcriptsOf(real, session, beyond)
  const inventory: Store['inventory'] = () => {
    beyond = outsideTranscripts(roots)
    return takeInventory(roots, beyond)
  }
  return {
    format: 'qwen-code',
    root: real,
    sidecar: join(real, '.rewind-admin'),
    cap: snapshotCap,
    linksAreSafe: false,
    testedClient,
    inventory,
    read: (session, options) => readSession(session.id, filesOf(session), around.baseFolder, options.now),
    // The results of tools are shortened in the transcript: they prove nothing.
    editTexts: () => undefined,
    messages: (session) => readMessages(filesOf(session)),
    live: (machine) => readRegistry(real, bases, machine, entries),
    globals: () => [],
    retention: (project) => retentionLayers(real, project, around),
    gates: () => [gate],
    conversations: conversationsOf(real, filesOf),
    backupFolder: backupFolderOf,
    contents: (session) => readContents(real, session, beyond.get(session.id) ?? []),
    head: (session) => readHead(filesOf(session)),
    shared: (matches) => {
      for (const session of inventory().sessions) for (const folder of readHead(filesOf(session)).folders) projects.add(folder)
      return roots.inside.flatMap((prefix) => findPrompts(real, prefix, projects, matches))
    },
    check: (session, reading) => checkSession(real, session, reading, filesOf(session).length > 0),
    capSession: (session, reading, max, { spared }) => chooseForCap(real, session, reading, max, spared, beyond.get(session.id)?.[0]),
    migrate: (session, reading, { move }) =>
      move === undefined ? withoutMetadata(real, session, reading, filesOf(session).length > 0) : planMove(real, session, reading, beyond.get(session.id) ?? [], move),
    takeAgentLock: (now) => takeCleanupLock(real, now),
    agentDifference: productDifference,
  }
}

function conversationsOf(root: string, filesOf: (session: SessionRef) => TranscriptFile[]): Conversations {
  return {
    resume: (session) => `qwen --resume ${session}`,
    isSessionId,
    refusal: (session) => {
      const [file] = filesOf(session)
      if (file === undefined || membersOf(session, 'transcript').some(({ path }) => path === file.shown)) return undefined
      return `its transcript ${file.shown} lies outside of the store, where nothing is written`
    },
    transcriptPath: (session, newId) => {
      const [path = projectsFolder] = filesOf(session).map(({ shown }) => shown)
      const folder = path.replace(/\/[^/]*$/, '')
      return `${folder.endsWith(`/${chatsFolder}/${archiveFolder}`) ? folder.slice(0, -archiveFolder.length - 1) : folder}/${newId}.jsonl`
    },
    forkTranscript: (session, request, write) => forkTranscript(session.id, filesOf(session), request, write),
    mendTranscript: (path, write) => mendLines(join(root, path), recordsIn, write),
    prompt: (session, message) => readPrompt(filesOf(session), message),
  }
}

/** Nothing switches checkpoints off; where they are made depends on the front end (section 3). */
const gate: Gate = {
  gate: 'file history',
  value: undefined,
  from: undefined,
  effect: 'checkpoints are made in the terminal UI and in ACP sessions; headless runs and sandboxed tools make none',
  stops: false,
}

function holdsChats(root: string): boolean {
  return listFolder(join(root, projectsFolder)).entries.some((slug) => slug.isDirectory() && isThere(join(root, projectsFolder, slug.name, chatsFolder)))
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
