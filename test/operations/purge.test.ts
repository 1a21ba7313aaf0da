import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pathProbe, type PathProbe } from '../../src/fs/path-probe.js'
import { BrakeError, LockedError, NoMatchError, UsageError } from '../../src/model/errors.js'
import { findDeadProjects } from '../../src/operations/purge/dead-projects.js'
import { leftBehind, planPurge, rewriteShared, type Purge, type PurgeOptions } from '../../src/operations/purge.js'
import { findTombstone } from '../../src/operations/tombstones.js'
import type { ApplyResult } from '../../src/plan/apply.js'
import { uuidOf } from '../helpers/identity.js'
import { carry, daysAgo, keptOf, machineWith, now, openStore, plannedSessions, restore, session, storeTree } from '../helpers/removal.js'
import { H, S1, S2, emptyRoot, userLine, writeBackup, writeStoreFile, writeTranscript } from '../helpers/store.js'
import { temporaryFolder } from '../helpers/temp.js'
import { snapshotTree } from '../helpers/tree.js'

const S3 = '33333333-3333-4333-8333-333333333333'
const S4 = '44444444-4444-4444-8444-444444444444'

/** A disk on which nothing is known but what a test says. */
function probeWith(real: Readonly<Record<string, string>> = {}, folds?: boolean): PathProbe {
  return { realPath: (path) => real[path], foldsCase: () => folds, presence: () => 'unknown' }
}

function plan(root: string, project: string | readonly string[], options: Partial<PurgeOptions> = {}, probe: PathProbe = probeWith()): Purge {
  const projects = typeof project === 'string' ? [project] : project
  const context = { now, machine: machineWith(), cwd: '/home/u', home: dirname(root), probe }
  return planPurge(openStore(root), { projects, quietPeriodMs: 0, ...options }, context)
}

let tokens = 0

/** Purges as the command does: sessions, then the shared files. */
async function purge(root: string, project: string, options: Partial<PurgeOptions> = {}): Promise<ApplyResult> {
  const store = openStore(root)
  const removal = plan(root, project, options)
  const result = await carry(store, removal)
  if (options.shared !== true) return result
  return rewriteShared(store, removal.matches, result, {
    now,
    token: () => `ab${String((tokens += 1))}`,
    apply: (each) => carry(store, each),
  })
}

describe('which sessions', () => {
  it('R23: the project alone, exactly; below it only with --recursive; a sibling with the same beginning never', async () => {
    const root = await emptyRoot()
    for (const [id, cwd] of [[S1, '/r'], [S2, '/r/a'], [S3, '/r/a/deep'], [S4, '/r-extra']] as const) session(root, cwd.replaceAll('/', '-'), id, 1, { cwd })
    expect(plannedSessions(plan(root, '/r'))).toEqual([S1])
    expect(plannedSessions(plan(root, '/r/'))).toEqual([S1])
    const below = plan(root, '/r', { recursive: true })
    expect(plannedSessions(below)).toEqual([S1, S2, S3])
    expect(below.summary.projects).toHaveLength(3)
  })

  it('R25: of a folder that two projects share only the matching session goes, and the memory stays', async () => {
    const root = await emptyRoot()
    session(root, '-home-u-my-app', S1, 1, { cwd: '/home/u/my_app' })
    const other = session(root, '-home-u-my-app', S2, 1, { cwd: '/home/u/my-app' })
    for (const id of [S1, S2]) writeBackup(root, id, `${H}@v1`, id)
    const memory = writeStoreFile(root, 'projects/-home-u-my-app/memory/MEMORY.md', 'shared')
    const index = writeStoreFile(root, 'projects/-home-u-my-app/sessions-index.json', '{}')
    const removal = plan(root, '/home/u/my_app', { memory: true })
    expect(removal.findings.map(({ message }) => message).join()).toContain('the memory stays')
    await carry(openStore(root), removal)
    for (const path of [other, memory, index, join(root, `file-history/${S2}/${H}@v1`)]) expect(existsSync(path)).toBe(true)
    expect(existsSync(join(root, `file-history/${S1}`))).toBe(false)
  })

  it('R15: the memory of a project goes only with a flag of its own', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 1, { cwd: '/p' })
    writeStoreFile(root, 'projects/-p/memory/MEMORY.md', 'mine')
    writeStoreFile(root, 'projects/-p/sessions-index.json', '{}')
    const without = await purge(root, '/p')
    expect(readdirSync(join(root, 'projects/-p'))).toEqual(['memory'])
    await restore(openStore(root), without.runId)
    await purge(root, '/p', { memory: true })
    expect(existsSync(join(root, 'projects/-p'))).toBe(false)
  })

  it('R76: a session that was also started elsewhere stays', async () => {
    const root = await emptyRoot()
    session(root, '-a', S1, 1, { cwd: '/a' })
    session(root, '-b', S1, 1, { cwd: '/b' })
    expect(keptOf(plan(root, '/a'))[S1]).toBe('it was also started in /b')
  })

  it('R94: Windows paths match without case and separator, and both stored spellings go', async () => {
    const root = await emptyRoot()
    session(root, 'c--p', S1, 1, { cwd: 'c:\\p' })
    session(root, 'C--p', S2, 1, { cwd: 'C:\\p' })
    session(root, 'C--p-x', S3, 1, { cwd: 'C:\\p-x' })
    expect(plannedSessions(plan(root, 'C:/p'))).toEqual([S1, S2])
  })

  it('R95: another case is the same project only where the file system says so', async () => {
    const root = await emptyRoot()
    session(root, '-a', S1, 1, { cwd: '/Users/me/Projects/r' })
    session(root, '-b', S2, 1, { cwd: '/Users/me/projects/r' })
    expect(plannedSessions(plan(root, '/Users/me/Projects/r', {}, probeWith({}, true)))).toEqual([S1, S2])
    expect(plannedSessions(plan(root, '/Users/me/Projects/r', {}, probeWith({}, false)))).toEqual([S1])
    const unknown = plan(root, '/Users/me/Projects/r')
    expect(plannedSessions(unknown)).toEqual([S1])
    expect(unknown.summary.nearMatches).toEqual(['/Users/me/projects/r'])
  })

  it('R96: a spelling that leads to the same folder through a link is named, and goes only with --follow', async () => {
    const root = await emptyRoot()
    session(root, '-srv-link', S1, 1, { cwd: '/srv/link' })
    session(root, '-data-p', S2, 1, { cwd: '/data/p' })
    const probe = probeWith({ '/srv/link': '/data/p', '/data/p': '/data/p' })
    const removal = plan(root, '/srv/link', {}, probe)
    expect(plannedSessions(removal)).toEqual([S1])
    expect(keptOf(removal)[S2]).toContain('--follow')
    expect(plannedSessions(plan(root, '/srv/link', { follow: true }, probe))).toEqual([S1, S2])
  })

  it('R98: two long folders of one project both go, whatever their suffix; a third with another cwd stays', async () => {
    const root = await emptyRoot()
    const cwd = `/h/${'x'.repeat(236)}`
    const slug = cwd.replaceAll('/', '-').slice(0, 200)
    session(root, `${slug}-abc12`, S1, 1, { cwd })
    session(root, `${slug}-9zz`, S2, 1, { cwd })
    session(root, `${slug}-q1`, S3, 1, { cwd: `${cwd}y` })
    expect(plannedSessions(plan(root, cwd))).toEqual([S1, S2])
  })

  it('R91: a list of projects is purged as one plan', async () => {
    const root = await emptyRoot()
    const runs = Array.from({ length: 40 }, (_, index) => `/tmp/run-${String(index).padStart(3, '0')}`)
    for (const cwd of runs) session(root, cwd.replaceAll('/', '-'), uuidOf(cwd), 1, { cwd })
    expect(plan(root, runs).plan.actions).toHaveLength(40)
    expect(plan(root, runs).summary.projects).toHaveLength(40)
  })

  it('a session is chosen by its first recorded folder, however far down it stands', async () => {
    const root = await emptyRoot()
    const filler = Array.from({ length: 3000 }, () => JSON.stringify({ type: 'queue-operation', content: 'x'.repeat(100) }))
    writeTranscript(root, '-p', S1, [...filler, userLine('m', { session: S1, cwd: '/p' }), userLine('n', { session: S1, cwd: '/q' })])
    writeTranscript(root, '-q', S2, ['{"damaged', userLine('m', { session: S2, cwd: '/q' })])
    expect(plannedSessions(plan(root, '/p'))).toEqual([S1])
    expect(plannedSessions(plan(root, '/q'))).toEqual([S2])
  })

  it('a session that only its subagents are left of is chosen by what they recorded', async () => {
    const root = await emptyRoot()
    writeStoreFile(root, `projects/-p/${S1}/subagents/agent-aa.jsonl`, `${userLine('m', { session: S1, cwd: '/p' })}\n`)
    expect(plannedSessions(plan(root, '/p'))).toEqual([S1])
  })

  it('nothing matched ends with exit 1 and names near matches', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 1, { cwd: '/P' })
    const act = (): unknown => plan(root, '/p')
    expect(act).toThrow(NoMatchError)
    try {
      act()
    } catch (error) {
      expect((error as NoMatchError).hint).toContain('/P')
    }
  })
})

describe('what it refuses', () => {
  it('the home folder, a root, the store and what contains it, in any spelling', async () => {
    const root = await emptyRoot()
    const home = dirname(root)
    const links = await temporaryFolder()
    symlinkSync(home, join(links, 'h'))
    symlinkSync(root, join(links, 's'))
    symlinkSync('/', join(links, 'r'))
    mkdirSync(join(home, 'p'))
    symlinkSync(join(home, 'p'), join(links, 'p'))
    session(root, '-h', S1, 1, { cwd: home })
    const given = [
      '/', '//', '/..', '', ' ', home, `${home}/`, `${home}/.`, `${home}/p/..`, `${home}//`, root, `${root}/`, `${root}/projects/..`,
      dirname(home), join(links, 'h'), `${join(links, 'h')}/`, join(links, 's'), join(links, 'r'), `${join(links, 'p')}/..`,
      'C:\\', 'c:/', '\\\\server\\share', '\\\\server\\share\\', 'C:\\x\\..',
    ]
    for (const project of given) {
      for (const recursive of [false, true]) {
        expect(() => plan(root, project, { recursive }, pathProbe), JSON.stringify(project)).toThrow(UsageError)
      }
    }
    expect(() => planPurge(openStore(root), { projects: ['.'], quietPeriodMs: 0 }, { now, machine: machineWith(), cwd: home, home, probe: pathProbe })).toThrow(UsageError)
    expect(existsSync(join(root, `projects/-h/${S1}.jsonl`))).toBe(true)
  })

  it('R104: a live session; when nothing else is left it ends as locked', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 1, { cwd: '/p' })
    writeStoreFile(root, 'sessions/4242.json', JSON.stringify({ pid: 4242, sessionId: S1, procStart: '77', pidDomain: 'linux:test:pid:[1]' }))
    const context = { now, machine: machineWith({ 4242: '77' }), cwd: '/', home: dirname(root), probe: probeWith() }
    const removal = planPurge(openStore(root), { projects: ['/p'], quietPeriodMs: 0 }, context)
    expect(plannedSessions(removal)).toEqual([])
    expect(removal.refusal).toBeInstanceOf(LockedError)
    session(root, '-p', S2, 1, { cwd: '/p' })
    expect(planPurge(openStore(root), { projects: ['/p'], quietPeriodMs: 0 }, context).refusal).toBeUndefined()
  })

  it('a session within the quiet period, when one is asked for', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 0, { cwd: '/p', mtime: now - 1000 })
    expect(keptOf(plan(root, '/p', { quietPeriodMs: 60_000 }))[S1]).toContain('quiet period')
    expect(plannedSessions(plan(root, '/p'))).toEqual([S1])
  })

  it('R07: more sessions than the brake allows', async () => {
    const root = await emptyRoot()
    for (let index = 0; index < 51; index += 1) session(root, '-p', uuidOf(`brake/${String(index)}`), 1, { cwd: '/p' })
    expect(plan(root, '/p').refusal).toBeInstanceOf(BrakeError)
    expect(plan(root, '/p', { maxDelete: { count: 51 } }).refusal).toBeUndefined()
  })
})

describe('what is left', () => {
  it('R30: no path with the id remains in any known folder, and only the tombstone names it', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 1, { cwd: '/p' })
    for (const path of [`projects/-p/${S1}/subagents/agent-a.jsonl`, `todos/${S1}-agent-${S1}.json`, `tasks/${S1}/1.json`, `session-env/${S1}/x`, `debug/${S1}.txt`, `image-cache/${S1}/1.png`]) {
      writeStoreFile(root, path, 'x')
    }
    writeStoreFile(root, 'projects/-p/agent-0a1b2c3d.jsonl', `${userLine('m', { session: S1, cwd: '/p' })}\n`)
    writeBackup(root, S1, `${H}@v1`, 'x')
    const store = openStore(root)
    const removal = plan(root, '/p')
    expect(removal.summary.items).toMatchObject({ transcript: 1, companion: 1, agent: 1, backups: 1, leftover: 5 })
    const result = await carry(store, removal, { noTrash: true })
    expect(result.errors).toEqual([])
    expect(leftBehind(store, removal.sessions)).toEqual([])
    expect(Object.keys(storeTree(root)).filter((path) => path.includes(S1))).toEqual([])
    expect(findTombstone(store, S1)).toMatchObject({ command: 'purge', project: '/p' })
  })

  it('R30: a path that appears again is named', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 1, { cwd: '/p' })
    const removal = plan(root, '/p')
    await carry(openStore(root), removal)
    writeStoreFile(root, `debug/${S1}.txt`, 'late')
    expect(leftBehind(openStore(root), removal.sessions)).toEqual([expect.objectContaining({ path: `debug/${S1}.txt` })])
  })

  it('R22: the working tree of the project stays byte for byte', async () => {
    const root = await emptyRoot()
    const project = await temporaryFolder()
    writeFileSync(join(project, 'dirty.txt'), 'uncommitted')
    session(root, '-p', S1, 1, { cwd: project })
    const before = snapshotTree(project)
    await purge(root, project)
    expect(snapshotTree(project)).toEqual(before)
  })

  it('R60: purge and restore give the same tree', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 1, { cwd: '/p' })
    writeStoreFile(root, 'projects/-p/memory/MEMORY.md', 'mine', { mtime: daysAgo(1) })
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(1) })
    const before = storeTree(root)
    const result = await purge(root, '/p', { memory: true })
    await restore(openStore(root), result.runId)
    expect(storeTree(root)).toEqual(before)
  })
})

describe('shared files', () => {
  const lines = [
    `{"display":"one","project":"/p","sessionId":"${S1}"}\n`,
    '{"display":"two","project":"/q"}\n',
    '{"display":"three \\u00e9 é","project":"/p"}\n',
    '{"display":"four","project":"/q"}',
  ]
  const [, two = '', , four = ''] = lines
  const config = '{\n  "numStartups": 1e3,\n  "projects": {\n    "/q": {"a": [1, {"x": "}"}]},\n    "/p": {\n      "history": []\n    },\n    "/p/deep": {}\n  },\n  "big": 12345678901234567890\n}\n'

  async function scene(): Promise<string> {
    const root = await emptyRoot()
    session(root, '-p', S1, 1, { cwd: '/p' })
    writeStoreFile(root, 'history.jsonl', lines.join(''))
    writeFileSync(join(dirname(root), '.claude.json'), config, { mode: 0o600 })
    return root
  }

  it('R29, R32: without --shared both files keep their bytes, and the plan names what is in them', async () => {
    const root = await scene()
    const removal = plan(root, '/p')
    expect(removal.summary.shared).toEqual([
      { path: 'history.jsonl', what: 'line', count: 2, keys: [] },
      { path: '.claude.json', what: 'key', count: 1, keys: ['/p'] },
    ])
    await purge(root, '/p')
    expect(readFileSync(join(root, 'history.jsonl'), 'utf8')).toBe(lines.join(''))
    expect(readFileSync(join(dirname(root), '.claude.json'), 'utf8')).toBe(config)
  })

  it('R29: with --shared only the lines and keys of the project go, every other byte stays, the last line without a line feed too', async () => {
    const root = await scene()
    const result = await purge(root, '/p', { shared: true })
    expect(result.errors).toEqual([])
    expect(readFileSync(join(root, 'history.jsonl'), 'utf8')).toBe(two + four)
    expect(readFileSync(join(dirname(root), '.claude.json'), 'utf8')).toBe(config.replace('    "/p": {\n      "history": []\n    },\n', ''))
    expect(result.done.map(({ action, path }) => [action, path])).toEqual([
      ['trash-session', `projects/-p/${S1}.jsonl`],
      ['replace', 'history.jsonl'],
      ['replace', '.claude.json'],
    ])
  })

  it('the last line of the prompt history goes when it is of the project', async () => {
    const root = await scene()
    await purge(root, '/p', { shared: true })
    session(root, '-q', S2, 1, { cwd: '/q' })
    await purge(root, '/q', { shared: true })
    expect(readFileSync(join(root, 'history.jsonl'), 'utf8')).toBe('')
    expect(JSON.parse(readFileSync(join(dirname(root), '.claude.json'), 'utf8'))).toMatchObject({ projects: { '/p/deep': {} } })
  })

  it('R29: lines that others append while the file is rewritten are never lost', async () => {
    const root = await scene()
    const store = openStore(root)
    const path = join(root, 'history.jsonl')
    const removal = plan(root, '/p', { shared: true })
    const before = await carry(store, removal)
    let appended = 0
    const racing = {
      ...store,
      shared: (matches: (project: string) => boolean) => {
        const uses = store.shared?.(matches) ?? []
        // Somebody writes after each of the first looks: before the new file is made, and after it was.
        if (appended < 3) appendFileSync(path, `${appended === 0 ? '\n' : ''}{"display":"late ${String((appended += 1))}","project":"/q"}\n`)
        return uses
      },
    }
    const result = await rewriteShared(racing, removal.matches, before, {
      now,
      token: () => `cd${String((tokens += 1))}`,
      apply: async (each) => {
        if (appended < 5) appendFileSync(path, `{"display":"late ${String((appended += 1))}","project":"/q"}\n`)
        return carry(store, each)
      },
    })
    expect(result.errors).toEqual([])
    const text = readFileSync(path, 'utf8')
    expect(text).not.toContain('"/p"')
    for (let index = 1; index <= appended; index += 1) expect(text).toContain(`late ${String(index)}`)
    expect(text).toContain('two')
    expect(text).toContain('four')
  })

  it('R32: a global file that cannot be taken apart is left alone and named, and so is one the agent has locked', async () => {
    const root = await scene()
    writeFileSync(join(dirname(root), '.claude.json'), config.slice(0, 40))
    mkdirSync(join(root, 'history.jsonl.lock'))
    const result = await purge(root, '/p', { shared: true })
    expect(result.errors.map(({ path }) => path).sort()).toEqual(['.claude.json', 'history.jsonl'])
    expect(result.exitCode).toBe(3)
    expect(readFileSync(join(root, 'history.jsonl'), 'utf8')).toBe(lines.join(''))
  })

  it('a project that only the shared files still name can be purged from them', async () => {
    const root = await scene()
    await purge(root, '/p')
    expect(() => plan(root, '/p')).toThrow(NoMatchError)
    await purge(root, '/p', { shared: true })
    expect(readFileSync(join(root, 'history.jsonl'), 'utf8')).toBe(two + four)
  })
})

describe('projects that are gone', () => {
  it('R91: a hundred folders of a tool that are gone are one row, and the row can be purged', async () => {
    const root = await emptyRoot()
    const base = await temporaryFolder()
    const runs = Array.from({ length: 100 }, (_, index) => join(base, `run-${String(index).padStart(3, '0')}`))
    for (const cwd of runs) session(root, `-run${cwd.slice(-3)}`, uuidOf(cwd), 1, { cwd })
    session(root, '-there', S1, 1, { cwd: base })
    const [row, ...others] = findDeadProjects(openStore(root), pathProbe)
    expect(row).toMatchObject({ pattern: join(base, 'run-*'), sessions: 100 })
    expect(others).toEqual([])
    expect(plan(root, row?.projects ?? []).plan.actions).toHaveLength(100)
  })

  it('R28: a folder on a disk that is not mounted is not gone, and no name of a folder is decoded', async () => {
    const root = await emptyRoot()
    const base = await temporaryFolder()
    session(root, '-Volumes-usb-p', S1, 1, { cwd: '/Volumes/usb/p' })
    session(root, '-home-u-gone', S2, 1, { cwd: join(base, 'gone') })
    writeStoreFile(root, `projects/-home-u-other/${S3}.jsonl`, '{"type":"summary"}\n')
    expect(findDeadProjects(openStore(root), pathProbe).flatMap(({ projects }) => projects)).toEqual([join(base, 'gone')])
  })
})
