import { realpathSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { defaultCap } from '../../model/cap.js'
import { isUuid } from '../../model/names.js'
import { membersOf } from '../../model/session.js'
import type { Conversations } from '../conversation.js'
import type { Format, Store, Surroundings } from '../format.js'
import { readBranches } from './branches.js'
import { readContents, readProjectFiles } from './contents.js'
import { readEditTextsAt } from './edits.js'
import { checkGlobalFile } from './global-file.js'
import { forkTranscript } from './fork-lines.js'
import { readGates } from './gates.js'
import { readHead } from './head.js'
import { takeInventory } from './inventory.js'
import { backupFolderOf, dataFolder, historyFolder, projectsFolder } from './layout.js'
import { mendTranscript } from './mend.js'
import { readMessages } from './messages.js'
import { planMove } from './move.js'
import { readPrompt } from './prompt.js'
import { readSession } from './reading.js'
import { readRegistry } from './registry.js'
import { managedSettingsFile, retentionLayers } from './retention.js'
import { findSharedUses } from './shared-files.js'

/** Newest client that this version was tested with (formats/claude-code, head of the page). */
const testedClient = '2.1.332'

/** Claude Code: `$CLAUDE_CONFIG_DIR`, else `~/.claude` (formats/claude-code section 1). */
export const claudeCode: Format = {
  id: 'claude-code',

  places: (around) => [dataFolder(around)],

  detect(root) {
    return [projectsFolder, historyFolder].some((name) => isFolder(join(root, name))) && !isQwenCode(root)
  },

  open(root, around) {
    return openClaudeCode(root, around)
  },
}

/** Opens the store whose root is `root`. Throws the system error when the root cannot be resolved. */
export function openClaudeCode(root: string, around: Surroundings): Store {
  const real = realpathSync(root)
  const managed = managedSettingsFile(around.platform)
  return {
    format: 'claude-code',
    root: real,
    sidecar: join(real, '.rewind-admin'),
    cap: defaultCap,
    linksAreSafe: true,
    checkpointsInTranscript: true,
    testedClient,
    inventory: () => takeInventory(real),
    read: (session, options) => readSession(real, session, options),
    editTexts: (session, edit) => {
      const member = membersOf(session, 'transcript')[edit.source]
      return member === undefined ? undefined : readEditTextsAt(join(real, member.path), edit.offset)
    },
    messages: (session) => readMessages(real, session),
    live: (machine, now) => readRegistry(real, machine, now),
    globals: () => checkGlobalFile(real, around.home),
    retention: (project) => retentionLayers(real, project, managed),
    gates: (project) => readGates(real, project, managed, around.env),
    conversations: conversationsOf(real),
    migrate: (session, reading, { move }) => (move === undefined ? undefined : planMove(real, session, reading, move)),
    backupFolder: backupFolderOf,
    contents: (session) => readContents(real, session),
    head: (session) => readHead(real, session),
    branches: (session, checkpoints) => readBranches(real, session, checkpoints),
    shared: (matches) => findSharedUses(real, matches),
    projectFiles: (folder) => readProjectFiles(real, folder),
  }
}

function conversationsOf(root: string): Conversations {
  return {
    resume: (session) => `claude --resume ${session}`,
    isSessionId: isUuid,
    transcriptPath: (session, newId) => `${membersOf(session, 'transcript')[0]?.path.replace(/\/[^/]*$/, '') ?? projectsFolder}/${newId}.jsonl`,
    forkTranscript: (session, request, write) => forkTranscript(root, session, request, write),
    mendTranscript: (path, write) => mendTranscript(join(root, path), write),
    prompt: (session, message) => readPrompt(root, session, message),
  }
}

/** Qwen Code has folders of the same names; its transcripts lie one folder deeper (formats/qwen-code section 1). */
function isQwenCode(root: string): boolean {
  if (basename(root) === '.qwen' || statSync(join(root, '.file-history-cleanup'), { throwIfNoEntry: false }) !== undefined) return true
  return listFolder(join(root, projectsFolder)).entries.some((slug) => isFolder(join(root, projectsFolder, slug.name, 'chats')))
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
