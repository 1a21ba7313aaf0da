import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { claudeCode } from '../../../src/formats/claude-code/index.js'
import { takeInventory } from '../../../src/formats/claude-code/inventory.js'
import type { Inventory } from '../../../src/formats/format.js'
import { extractStore } from '../../helpers/corpus.js'
import { addForeignFiles } from '../../helpers/damage.js'
import { emptyRoot, H, S1, S2, userLine, writeBackup, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { asNobody, giveAway, needs } from '../../helpers/unprivileged.js'

let root = ''

beforeEach(async ({ onTestFinished }) => {
  root = await emptyRoot(onTestFinished)
})

function members(inventory: Inventory, session = S1): string[] {
  return (inventory.sessions.find(({ id }) => id === session)?.members ?? []).map(({ kind, path }) => `${kind} ${path}`).sort()
}

const findings = (inventory: Inventory): string[] => inventory.findings.map(({ id, place }) => `${id} ${place?.path ?? ''}`).sort()

describe('a session is one unit (R11, R30)', () => {
  test('transcript, companion, flat subagents, backups and leftovers belong to it', () => {
    writeTranscript(root, '-p', S1, [userLine('m1')])
    writeStoreFile(root, `projects/-p/${S1}/subagents/agent-aa.jsonl`, '')
    writeStoreFile(root, 'projects/-p/agent-0011aabb.jsonl', `{"sessionId":"${S1}"}\n`)
    writeBackup(root, S1, `${H}@v1`, 'x')
    for (const path of [`session-env/${S1}/x`, `tasks/${S1}/1.json`, `image-cache/${S1}/1.png`, `todos/${S1}-agent-${S1}.json`, `debug/${S1}.txt`]) {
      writeStoreFile(root, path, '')
    }
    const inventory = takeInventory(root)
    expect(members(inventory)).toEqual([
      'agent projects/-p/agent-0011aabb.jsonl',
      `backups file-history/${S1}`,
      `companion projects/-p/${S1}`,
      `leftover debug/${S1}.txt`,
      `leftover image-cache/${S1}`,
      `leftover session-env/${S1}`,
      `leftover tasks/${S1}`,
      `leftover todos/${S1}-agent-${S1}.json`,
      `transcript projects/-p/${S1}.jsonl`,
    ])
    expect([inventory.sessions.length, inventory.findings, inventory.unrecognised]).toEqual([1, [], 0])
  })

  test('R76: the same id in two project folders is one session, and is reported', () => {
    for (const slug of ['-a', '-b']) writeTranscript(root, slug, S1, [userLine('m1')])
    const inventory = takeInventory(root)
    expect(members(inventory)).toEqual([`transcript projects/-a/${S1}.jsonl`, `transcript projects/-b/${S1}.jsonl`])
    expect(inventory.findings).toMatchObject([{ id: 'duplicate-session', session: S1, message: expect.stringContaining(`projects/-b/${S1}.jsonl`) as string }])
  })

  test('the flat subagent files of 2.0.64 belong to the session that they name', async () => {
    const store = await extractStore('2.0.64', 'basic')
    const inventory = takeInventory(store.root)
    const session = 'c82fa474-72e7-4d7c-a525-9bbb8c5a24e2'
    expect(members(inventory, session)).toEqual([
      'agent projects/-home-dev-project/agent-7ae67b30.jsonl',
      'agent projects/-home-dev-project/agent-e8cdb2c9.jsonl',
      `backups file-history/${session}`,
      `transcript projects/-home-dev-project/${session}.jsonl`,
    ])
    expect(inventory.sessions.map(({ id }) => id)).toEqual([session])
    expect(inventory.findings).toEqual([])
  })

  test('a flat subagent file that names nobody is foreign', () => {
    for (const [index, content] of ['', 'no json', '{"sessionId":"../../x"}'].entries()) writeStoreFile(root, `projects/-p/agent-0${String(index)}.jsonl`, content)
    const inventory = takeInventory(root)
    expect([inventory.sessions, inventory.unrecognised]).toEqual([[], 3])
  })
})

describe('sessions that are not whole', () => {
  test('R10: companion files without a transcript are reported, never garbage, and keep their backups', () => {
    writeStoreFile(root, `projects/-p/${S1}/subagents/agent-aa.jsonl`, '')
    writeBackup(root, S1, `${H}@v1`, 'x')
    const inventory = takeInventory(root)
    expect(members(inventory)).toEqual([`backups file-history/${S1}`, `companion projects/-p/${S1}`])
    expect(findings(inventory)).toEqual([`transcript-missing projects/-p/${S1}`])
  })

  test('backups of no session are orphans', () => {
    writeBackup(root, S1, `${H}@v1`, 'x')
    expect(findings(takeInventory(root))).toEqual([`orphan-backups file-history/${S1}`])
  })

  test('leftovers alone are no finding', () => {
    writeStoreFile(root, `debug/${S1}.txt`, '')
    const inventory = takeInventory(root)
    expect([members(inventory), inventory.findings]).toEqual([[`leftover debug/${S1}.txt`], []])
  })

  test('R108: below a project folder that cannot be listed nothing counts as orphan', async (context) => {
    needs(context, 'unprivileged')
    writeTranscript(root, '-closed', S1, [userLine('m1')])
    writeTranscript(root, '-open', S2, [userLine('m1')])
    for (const session of [S1, S2]) writeBackup(root, session, `${H}@v1`, 'x')
    chmodSync(join(root, 'projects/-closed'), 0o000)
    giveAway(join(root, '..'))
    const inventory = await asNobody(() => takeInventory(root))
    expect(findings(inventory)).toEqual(['unreadable projects/-closed'])
    expect(inventory.sessions.map(({ id }) => id).sort()).toEqual([S1, S2])
  })
})

describe('names of no known shape (R14)', () => {
  test('foreign files are listed and left; those among the backups are for verify to judge', () => {
    writeTranscript(root, '-p', S1, [userLine('m1')])
    writeBackup(root, S1, `${H}@v1`, 'x')
    addForeignFiles(root, S1)
    const before = snapshotTree(root)
    const inventory = takeInventory(root)
    expect(findings(inventory)).toEqual(['foreign-file file-history/README', `foreign-file projects/-p/${S1}/mine.txt`, 'foreign-file projects/-p/notes.md'])
    expect(inventory.unrecognised).toBe(2)
    sameTree(root, before)
  })

  test('auto memory and the session index are the agent\'s own', () => {
    writeStoreFile(root, 'projects/-p/memory/MEMORY.md', 'x')
    writeStoreFile(root, 'projects/-p/sessions-index.json', '{}')
    expect(takeInventory(root)).toEqual({ sessions: [], findings: [], unrecognised: 0 })
  })

  const strange = [
    `projects/-p/${S1}.jsonl.zst`, `projects/-p/${S1.toUpperCase().replaceAll('1', 'A')}.jsonl`, 'projects/-p/con.jsonl', 'projects/-p/x.jsonl', 'projects/stray.jsonl',
    'file-history/stray@v1', `file-history/${S1}`, 'file-history/1e5/x',
  ]
  test.each(strange)('%s is no session', (path) => {
    writeStoreFile(root, path, 'x')
    const inventory = takeInventory(root)
    expect([inventory.sessions, inventory.unrecognised]).toEqual([[], 1])
  })

  test('R101: a project folder in a project folder is reported, and its sessions count', () => {
    writeTranscript(root, '-n/-n', S1, [userLine('m1')])
    writeBackup(root, S1, `${H}@v1`, 'x')
    const inventory = takeInventory(root)
    expect(members(inventory)).toEqual([`backups file-history/${S1}`, `transcript projects/-n/-n/${S1}.jsonl`])
    expect(findings(inventory)).toEqual(['nested-slug projects/-n/-n'])
  })
})

describe('links and pipes (R55, R61)', () => {
  test('a linked project folder or backup folder is reported and never entered', () => {
    const outside = join(root, '..', 'outside')
    writeTranscript(root, '-p', S1, [userLine('m1')])
    writeBackup(root, S2, `${H}@v1`, 'x')
    mkdirSync(outside)
    renameSync(join(root, 'projects/-p'), join(outside, 'p'))
    renameSync(join(root, `file-history/${S2}`), join(outside, 'h'))
    symlinkSync(join(outside, 'p'), join(root, 'projects/-p'))
    symlinkSync(join(outside, 'h'), join(root, `file-history/${S2}`))
    const inventory = takeInventory(root)
    expect(findings(inventory)).toEqual([`not-regular file-history/${S2}`, 'not-regular projects/-p'])
    expect(inventory.sessions).toEqual([])
  })

  test('a link or a pipe in the place of a transcript leaves the session a session', (context) => {
    needs(context, 'fifo')
    mkdirSync(join(root, 'projects/-p'))
    symlinkSync('/etc/hostname', join(root, `projects/-p/${S1}.jsonl`))
    execFileSync('mkfifo', [join(root, `projects/-p/${S2}.jsonl`)])
    for (const session of [S1, S2]) writeBackup(root, session, `${H}@v1`, 'x')
    const inventory = takeInventory(root)
    expect(findings(inventory)).toEqual([])
    expect(members(inventory, S1)).toEqual([`backups file-history/${S1}`, `transcript projects/-p/${S1}.jsonl`])
    expect(members(inventory, S2)).toContain(`transcript projects/-p/${S2}.jsonl`)
  })

  test('a file where a folder should be is told', () => {
    rmSync(join(root, 'projects'), { recursive: true })
    writeFileSync(join(root, 'projects'), 'x')
    expect(findings(takeInventory(root))).toEqual(['foreign-file projects'])
  })
})

describe('where stores are', () => {
  test('CLAUDE_CONFIG_DIR, else ~/.claude', () => {
    const places = (env: Record<string, string>): string[] => claudeCode.places({ home: '/h', env, platform: 'linux' })
    expect([places({ CLAUDE_CONFIG_DIR: '/c' }), places({ CLAUDE_CONFIG_DIR: '' }), places({})]).toEqual([['/c'], ['/h/.claude'], ['/h/.claude']])
  })

  test('a folder with projects or file-history is a store, by its real path (R02)', () => {
    expect([claudeCode.detect(root), claudeCode.detect(join(root, 'projects')), claudeCode.detect(join(root, 'nowhere'))]).toEqual([true, false, false])
    const link = join(root, '..', 'link')
    symlinkSync(root, link)
    const store = claudeCode.open(link, { home: '/h', env: {}, platform: 'linux' })
    expect([store.root, store.sidecar]).toEqual([root, join(root, '.rewind-admin')])
  })

  test('R02: projects may itself be a link to another disk', () => {
    const outside = join(root, '..', 'disk')
    writeTranscript(root, '-p', S1, [userLine('m1')])
    renameSync(join(root, 'projects'), outside)
    symlinkSync(outside, join(root, 'projects'))
    expect(takeInventory(root).sessions.map(({ id }) => id)).toEqual([S1])
  })
})
