import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fork } from '../../../src/operations/fork/fork.js'
import { corpusStores, extractStore } from '../../helpers/corpus.js'
import { cutToZero, flipBit, removeBackup, removeBackupFolder, replaceByFifo, replaceByFolder, replaceBySymlink } from '../../helpers/damage.js'
import { writeBackup, writeStoreFile } from '../../helpers/store.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { needs } from '../../helpers/unprivileged.js'
import { forkContext, openStore, target } from '../fork/fork-context.js'
import { factsOf, machine, run, runFile, scene, seal, twoEdits, type Scene } from './repair-context.js'

const binary = Buffer.from([0, 1, 2, 255, 254, 10, 13, 7])

/** Damages one backup of a scene, lets `repair` run, and compares with what was there. */
async function damaged(made: Scene, version: number, damage: (root: string, session: string, name: string) => void, path = 'notes.txt'): Promise<{ before: ReturnType<typeof factsOf>; place: string; name: string }> {
  const place = made.backup(path, version)
  const before = factsOf(place)
  const name = made.agent.backupName(path, version)
  damage(made.root, made.agent.session, name)
  return await Promise.resolve({ before, place, name })
}

function trashOf(root: string): string[] {
  return readdirSync(join(root, '.rewind-admin/trash'), { recursive: true, encoding: 'utf8' })
}

describe('a backup that the transcript proves', () => {
  it.each([
    ['missing', removeBackup],
    ['with a bit turned', (root, session, name) => { flipBit(root, session, name, 1) }],
    ['cut to no bytes', cutToZero],
    ['replaced by a link', (root, session, name) => { replaceBySymlink(root, session, name, '/etc/hostname') }],
    ['replaced by a folder', replaceByFolder],
  ] as const satisfies readonly (readonly [string, (root: string, session: string, name: string) => void])[])('for certain comes back when it is %s', async (_, damage) => {
    const made = await twoEdits()
    const { before, place, name } = await damaged(made, 1, damage)
    const report = await run(made.store)
    expect(report).toMatchObject({ exitCode: 0, applied: true, findings: [], errors: [], summary: { done: 1 } })
    expect(report.plan).toEqual([{ action: 'rebuild', path: `file-history/${made.agent.session}/${name}`, session: made.agent.session, bytes: 8, reason: expect.stringContaining('(certain proof)') as string }])
    expect([factsOf(place), statSync(place).nlink]).toEqual([before, 1])
  })

  it('for certain comes back when a pipe stands in its place', async (context) => {
    needs(context, 'fifo')
    const made = await twoEdits()
    const { before, place } = await damaged(made, 1, replaceByFifo)
    expect(await run(made.store)).toMatchObject({ exitCode: 0, summary: { done: 1 } })
    expect(factsOf(place)).toEqual(before)
  })

  it('strongly comes back when it is missing, with the mode of the nearest version', async () => {
    const made = await twoEdits()
    const { before, place } = await damaged(made, 2, removeBackup)
    const report = await run(made.store)
    expect(report.plan[0]?.reason).toContain('(strong proof)')
    expect(factsOf(place)).toEqual(before)
  })

  it('strongly is not replaced when it is there, unless that is asked for', async () => {
    const made = await twoEdits()
    const { before, place } = await damaged(made, 2, (root, session, name) => { flipBit(root, session, name, 1) })
    const after = factsOf(place)
    const report = await run(made.store)
    expect([report.exitCode, report.findings.map(({ id }) => id), report.findings[0]?.message]).toEqual([1, ['contradicts-transcript'], expect.stringContaining('the proof is strong, not certain')])
    expect(factsOf(place)).toEqual(after)
    expect(await run(made.store, { apply: true, force: true })).toMatchObject({ exitCode: 0 })
    expect(factsOf(place)).toEqual(before)
  })

  it('weakly stays a finding', async () => {
    const made = await twoEdits()
    const { place } = await damaged(made, 3, removeBackup)
    const report = await run(made.store)
    expect([report.exitCode, report.findings.map(({ id }) => id), report.plan]).toEqual([1, ['missing-backup'], []])
    expect(existsSync(place)).toBe(false)
  })

  it('comes back with its whole folder, and what nothing proves is named', async () => {
    const made = await twoEdits()
    const facts = [1, 2].map((version) => factsOf(made.backup('notes.txt', version)).sha256)
    removeBackupFolder(made.root, made.agent.session)
    const report = await run(made.store)
    expect([report.exitCode, report.plan.length, report.findings.length]).toEqual([1, 2, 2])
    expect([1, 2].map((version) => factsOf(made.backup('notes.txt', version)))).toEqual(facts.map((sha256) => ({ sha256, mode: '600' })))
    expect(readdirSync(made.agent.backups)).toHaveLength(2)
  })

  it('what was replaced waits in the trash', async () => {
    const made = await twoEdits()
    const { place, name } = await damaged(made, 1, (root, session, each) => { replaceBySymlink(root, session, each, '/etc/hostname') })
    const report = await run(made.store)
    const kept = trashOf(made.root).find((path) => path.endsWith(name)) ?? ''
    expect(kept.startsWith(report.runId ?? 'no run')).toBe(true)
    expect(readlinkSync(join(made.root, '.rewind-admin/trash', kept))).toBe('/etc/hostname')
    expect(lstatSync(place).isFile()).toBe(true)
  })

  it('has the time that was recorded for it, so that its session does not look active', async () => {
    const made = await twoEdits()
    const { place } = await damaged(made, 1, removeBackup)
    const folderTime = Math.floor(statSync(made.agent.backups).mtimeMs)
    await run(made.store)
    expect(statSync(place).mtimeMs).toBeLessThan(Date.parse('2026-11-02T00:00:00Z'))
    expect(Math.floor(statSync(made.agent.backups).mtimeMs)).toBe(folderTime)
  })
})

describe('what cannot be proven is refused, not guessed', () => {
  it('latin-1: the text was decoded with losses', async () => {
    const made = await twoEdits(Buffer.from('one caf\xe9\ntwo\n', 'latin1'))
    const { place } = await damaged(made, 1, removeBackup)
    const report = await run(made.store)
    expect([report.exitCode, report.plan]).toEqual([1, []])
    expect(report.findings[0]?.message).toContain('decoded with losses')
    expect(existsSync(place)).toBe(false)
  })

  it('carriage returns: the text does not show them, another version does', async () => {
    const made = await twoEdits('one\r\ntwo\r\n')
    await damaged(made, 1, removeBackup)
    const report = await run(made.store)
    expect([report.plan, report.findings[0]?.message]).toEqual([[], expect.stringContaining('another version has carriage returns')])
  })

  it('a byte order mark', async () => {
    const made = await twoEdits('\ufeffone\ntwo\n')
    await damaged(made, 1, removeBackup)
    expect((await run(made.store)).findings[0]?.message).toContain('byte order mark')
  })

  it('line ends that no other version tells, unless they are taken for what they are', async () => {
    const made = await twoEdits()
    const { sha256 } = factsOf(made.backup('notes.txt', 1))
    removeBackupFolder(made.root, made.agent.session)
    made.agent.remove('notes.txt')
    const report = await run(made.store)
    expect([report.plan, report.findings.every(({ message }) => message.includes('cannot be rebuilt'))]).toEqual([[], true])
    await run(made.store, { apply: true, force: true })
    expect(factsOf(made.backup('notes.txt', 1)).sha256).toBe(sha256)
  })

  it('"did not exist" is never made of a missing backup, and no record changes (R34)', async () => {
    const made = await scene()
    made.agent.prompt('first')
    made.agent.write('new.txt', 'x\n')
    made.agent.external('other.bin', binary)
    made.agent.external('new.txt', binary)
    made.agent.prompt('second')
    made.agent.end()
    const before = readFileSync(made.agent.transcript)
    await damaged(made, 2, removeBackup, 'new.txt')
    expect(await run(made.store)).toMatchObject({ exitCode: 1, plan: [] })
    expect(readFileSync(made.agent.transcript)).toEqual(before)
  })
})

describe('a backup with a seal', () => {
  /** A binary file that nobody edits as text: only seals and copies know it. */
  async function sealedBinary(): Promise<Scene & { place: string; name: string; before: ReturnType<typeof factsOf> }> {
    const made = await scene()
    made.agent.prompt('first')
    made.agent.write('data.bin', 'text\n')
    made.agent.external('data.bin', binary)
    made.agent.chmod('data.bin', 0o600)
    made.agent.prompt('second')
    made.agent.external('data.bin', 'gone on\n')
    made.agent.prompt('third')
    made.agent.end()
    await seal(made.store)
    const place = made.backup('data.bin', 2)
    return { ...made, place, name: made.agent.backupName('data.bin', 2), before: factsOf(place) }
  }

  it.each([['missing', removeBackup], ['changed', flipBit]] as const)('comes back from a forked session that agrees with it when it is %s', async (_, damage) => {
    const made = await sealedBinary()
    await fork(made.store, made.agent.session, target, { method: 'copy' }, forkContext())
    damage(made.root, made.agent.session, made.name)
    const report = await run(made.store)
    expect(report.plan[0]?.reason).toBe(`the same backup in session ${target}, which agrees with its seal`)
    expect([report.exitCode, factsOf(made.place)]).toEqual([0, made.before])
    // A new inode: the copy of the other session is not touched.
    expect(statSync(made.place).nlink).toBe(1)
  })

  it('is not rebuilt from a fork that shares the damaged inode (R67)', async () => {
    const made = await sealedBinary()
    await fork(made.store, made.agent.session, target, {}, forkContext())
    flipBit(made.root, made.agent.session, made.name)
    const report = await run(made.store, { apply: true, sessions: [made.agent.session] })
    expect([report.exitCode, report.plan, report.findings.map(({ id }) => id)]).toEqual([1, [], ['changed-after-seal']])
  })

  it('of the forked session alone is enough where the records say that it is the same backup', async () => {
    const made = await sealedBinary()
    await fork(made.store, made.agent.session, target, { method: 'copy' }, forkContext())
    rmSync(join(made.root, '.rewind-admin/seals'), { recursive: true })
    removeBackup(made.root, made.agent.session, made.name)
    // Nothing is sealed: the copy proves nothing.
    expect(await run(made.store)).toMatchObject({ exitCode: 1, plan: [] })
    await seal(made.store)
    expect(await run(made.store)).toMatchObject({ exitCode: 0, summary: { done: 1 } })
    expect(factsOf(made.place)).toEqual(made.before)
  })

  it('is not taken from a session that has another backup of that name (R59)', async () => {
    const made = await sealedBinary()
    writeBackup(made.root, target, made.name, 'something else')
    removeBackup(made.root, made.agent.session, made.name)
    expect((await run(made.store, { apply: true, sessions: [made.agent.session] })).plan).toEqual([])
  })

  it('comes back from the working file that has its digest', async () => {
    const made = await sealedBinary()
    made.agent.external('data.bin', binary)
    removeBackup(made.root, made.agent.session, made.name)
    const report = await run(made.store)
    expect(report.plan[0]?.reason).toBe(`the working file ${join(made.project, 'data.bin')}, whose digest is that of the seal`)
    expect(factsOf(made.place).sha256).toBe(made.before.sha256)
  })

  it('comes back from a git object that has its digest, and only where git may be run', async () => {
    const made = await sealedBinary()
    const git = (...args: string[]): void => { execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: made.project, stdio: 'ignore' }) }
    writeFileSync(join(made.project, 'elsewhere.bin'), binary)
    git('init')
    git('add', '.')
    git('commit', '-m', 'x')
    rmSync(join(made.project, 'elsewhere.bin'))
    removeBackup(made.root, made.agent.session, made.name)
    expect((await run(made.store)).plan).toEqual([])
    const report = await run(made.store, { apply: true }, { execFile: runFile })
    expect(report.plan[0]?.reason).toMatch(/^the git object [0-9a-f]{40,64}, whose digest is that of the seal$/)
    expect([report.exitCode, factsOf(made.place).sha256]).toEqual([0, made.before.sha256])
  })

  it('that nothing agrees with stays a finding, also without git on the machine', async () => {
    const made = await sealedBinary()
    removeBackup(made.root, made.agent.session, made.name)
    const execFile = (): Promise<Buffer> => Promise.reject(Object.assign(new Error('no git'), { code: 'ENOENT' }))
    const report = await run(made.store, { apply: true }, { execFile })
    expect([report.exitCode, report.plan, report.findings[0]?.message]).toEqual([1, [], expect.stringContaining('nothing was found that agrees with its seal')])
  })

  it('tells the line ends of a text', async () => {
    const made = await twoEdits('one\r\ntwo\r\n')
    await seal(made.store)
    const { before, place } = await damaged(made, 1, removeBackup)
    expect(await run(made.store)).toMatchObject({ exitCode: 0, summary: { done: 1 } })
    expect(factsOf(place)).toEqual(before)
  })

  it('refuses a text that does not agree with it', async () => {
    const made = await twoEdits(Buffer.from('one caf\xe9\ntwo\n', 'latin1'))
    await seal(made.store)
    await damaged(made, 1, removeBackup)
    expect(await run(made.store)).toMatchObject({ exitCode: 1, plan: [] })
  })
})

describe('repair is careful', () => {
  it('without --apply nothing is written, the plan names proof and the next command', async () => {
    const made = await twoEdits()
    await damaged(made, 1, removeBackup)
    await damaged(made, 3, removeBackup)
    const before = snapshotTree(made.root)
    const report = await run(made.store, {})
    expect(report).toMatchObject({ applied: false, exitCode: 1, summary: { rebuildable: 1, notProven: 1, done: 0 }, next: 'rewind-admin repair --apply' })
    expect(report.plan[0]?.reason).toContain('proof')
    sameTree(made.root, before)
  })

  it('a second run finds nothing to do', async () => {
    const made = await twoEdits()
    await damaged(made, 1, removeBackup)
    await run(made.store)
    expect(await run(made.store)).toMatchObject({ exitCode: 0, plan: [], findings: [] })
    expect(readdirSync(join(made.root, '.rewind-admin/staging'))).toEqual([])
  })

  it('a live session is kept, with the reason', async () => {
    const made = await twoEdits()
    const { place } = await damaged(made, 1, removeBackup)
    writeStoreFile(made.root, 'sessions/4242.json', JSON.stringify({ pid: 4242, sessionId: made.agent.session }))
    const report = await run(made.store, { apply: true }, { machine: { ...machine, processExists: (pid) => pid === 4242 } })
    expect([report.plan, report.kept.map(({ session }) => session), existsSync(place)]).toEqual([[], [made.agent.session], false])
  })

  it('rebuilt backups can be read by no more users than the nearest version', async () => {
    const made = await twoEdits()
    for (const version of [2, 3, 4]) chmodSync(made.backup('notes.txt', version), 0o400)
    const { place } = await damaged(made, 1, removeBackup)
    await run(made.store)
    expect(factsOf(place).mode).toBe('400')
  })

  it('writes into the store and its sidecar only', async () => {
    const made = await twoEdits()
    mkdirSync(join(made.project, 'sub'))
    await damaged(made, 1, removeBackup)
    const before = snapshotTree(made.project)
    await run(made.store)
    sameTree(made.project, before)
  })
})

describe('the damage matrix of the corpus', () => {
  const cases = corpusStores('claude-code').filter(({ scenario }) => !scenario.startsWith('table-'))
  it.each(cases.map(({ version, scenario }) => ({ version, scenario })))('$version/$scenario: whatever is rebuilt has the digest it had, whatever is not stays reported', async ({ version, scenario }) => {
    const { root } = await extractStore(version, scenario)
    const store = openStore(root)
    let rebuilt = 0
    for (const { id } of store.inventory().sessions) {
      const folder = join(root, 'file-history', id)
      for (const name of existsSync(folder) ? readdirSync(folder) : []) {
        const place = join(folder, name)
        const [bytes, { sha256, mode }] = [readFileSync(place), factsOf(place)]
        rmSync(place)
        const report = await run(store, { apply: true, sessions: [id] })
        const about = report.findings.filter((found) => found.place?.path === `file-history/${id}/${name}`)
        if (existsSync(place)) {
          rebuilt += 1
          expect([name, factsOf(place).sha256, about.length]).toEqual([name, sha256, 0])
        }
        // A version 1 that no record names is no loss.
        else if (report.exitCode !== 0) expect([name, report.exitCode, about.length]).toEqual([name, 1, 1])
        rmSync(place, { force: true })
        writeFileSync(place, bytes)
        chmodSync(place, Number.parseInt(mode, 8))
      }
    }
    expect(rebuilt).toBeGreaterThan(0)
  })
})
