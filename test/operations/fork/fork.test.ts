import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, realpathSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fork } from '../../../src/operations/fork/fork.js'
import type { Store } from '../../../src/formats/format.js'
import { corpusStores, extractStore } from '../../helpers/corpus.js'
import { flipBit, removeBackup, replaceBySymlink, unknownHistoryLine } from '../../helpers/damage.js'
import { emptyRoot, H, H2, S1, S2, snap, toolResultLine, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { snapshotTree, sameTree, type Tree } from '../../helpers/tree.js'
import { asNobody, giveAway, needs } from '../../helpers/unprivileged.js'
import { forkContext, now, openStore, resolved, sessionOf, target } from './fork-context.js'

const message = (number: number): string => `00000000-0000-4000-8000-00000000000${String(number)}`
const m = { 1: message(1), 2: message(2), 3: message(3), 4: message(4) } as const

/** S1: three checkpoints, two files; `b` is deleted at the third. */
async function threeCheckpoints(): Promise<{ root: string; store: Store }> {
  const root = await emptyRoot()
  writeTranscript(root, '-p', S1, [
    userLine(m[1]),
    snap(m[1], { a: `${H}@v1` }),
    userLine(m[2], { parent: m[1] }),
    snap(m[2], { a: `${H}@v2`, b: `${H2}@v1` }),
    userLine(m[3], { parent: m[2] }),
    snap(m[3], { a: `${H}@v3`, b: { backupFileName: null, version: 2, backupTime: '2026-11-01T09:00:00.000Z' } }),
  ])
  for (const [name, bytes, mode] of [[`${H}@v1`, 'one', 0o644], [`${H}@v2`, Buffer.from([0, 255, 10]), 0o755], [`${H}@v3`, '', 0o400], [`${H2}@v1`, 'b', 0o600]] as const) {
    writeBackup(root, S1, name, bytes, { mode, mtime: '2026-10-01T00:00:00Z' })
  }
  return { root, store: openStore(root) }
}

function backups(root: string, session: string): string[] {
  const folder = join(root, 'file-history', session)
  return existsSync(folder) ? readdirSync(folder).sort() : []
}

/** The tree of what must not change: the source session, link counts aside. */
function sourceTree(root: string): Tree {
  const { [join('projects', '-p', `${S1}.jsonl`)]: transcript } = snapshotTree(root)
  const folder = snapshotTree(join(root, 'file-history', S1))
  const plain = Object.entries(folder).map(([path, node]) => {
    return [path, { ...node, nlink: 0, inode: '' }]
  })
  return { ...(Object.fromEntries(plain) as Tree), ...(transcript === undefined ? {} : { transcript }) }
}

/** Nothing of a fork, and no temporary name, is anywhere in the store. */
function isUntouched(root: string): void {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes(target) || name.includes('.rewind-admin'))
  expect(names).toEqual([])
}

describe('fork of the corpus', () => {
  it.each(['2.0.64', '2.1.112', '2.1.332'])('%s: from the old session alone every checkpoint resolves as in the fork of the client, through hard links', async (version) => {
    const { root } = await extractStore(version, 'fork')
    const store = openStore(root)
    const [old, theirs] = store.inventory().sessions.flatMap(({ id, members }) => (members.some(({ kind }) => kind === 'transcript') ? [{ id, count: store.read(sessionOf(store, id), { now }).history.checkpoints.length }] : [])).sort((a, b) => a.count - b.count)
    if (old === undefined || theirs === undefined) throw new Error('two sessions expected')
    const wanted = resolved(store, theirs.id)
    const report = await fork(store, old.id, target, {}, forkContext())
    const ours = resolved(store, target)
    expect(report).toMatchObject({ exitCode: 0, applied: true, findings: [], extra: { linked: 5, copied: 0, present: 0 } })
    expect(Object.keys(ours)).toHaveLength(6)
    for (const [checkpoint, files] of Object.entries(ours)) {
      // The client's fork went on and tracks one file more.
      const others = Object.entries(wanted[checkpoint] ?? {}).filter(([path]) => !path.endsWith('new-in-fork.txt'))
      expect(files).toEqual(Object.fromEntries(others))
    }
    const folder = join(root, 'file-history', target)
    expect(readdirSync(folder).map((name) => [statSync(join(folder, name)).ino, statSync(join(folder, name)).nlink])).toEqual(
      readdirSync(folder).map((name) => [statSync(join(root, 'file-history', old.id, name)).ino, 3]),
    )
  })

  it.each(corpusStores('claude-code').map(({ version, scenario }) => ({ version, scenario })))('$version/$scenario: every session forks to the same bytes, and its own are not touched', async ({ version, scenario }) => {
    const { root } = await extractStore(version, scenario)
    const store = openStore(root)
    for (const { id, members } of store.inventory().sessions) {
      if (!members.some(({ kind }) => kind === 'transcript')) continue
      const paths = members.map(({ path }) => join(root, path))
      const before = paths.map((path) => withoutLinks(snapshotTree(path)))
      const report = await fork(store, id, target, {}, forkContext())
      expect(report.exitCode).toBe(0)
      expect(resolved(store, target)).toEqual(resolved(store, id))
      expect(paths.map((path) => withoutLinks(snapshotTree(path)))).toEqual(before)
      for (const name of [join('file-history', target), ...store.inventory().sessions.flatMap((each) => (each.id === target ? each.members.map(({ path }) => path) : []))]) {
        rmSync(join(root, name), { recursive: true, force: true })
      }
    }
  })
})

function withoutLinks(tree: Tree): Tree {
  return Object.fromEntries(Object.entries(tree).map(([path, node]) => [path, { ...node, nlink: 0, inode: '' }]))
}

describe('fork fills in the backups of a transcript that the agent forked without them', () => {
  it('to the same table of digests (R62)', async () => {
    const { root, store } = await threeCheckpoints()
    const lines = readFileSync(join(root, 'projects/-p', `${S1}.jsonl`), 'utf8').replaceAll(S1, target)
    writeTranscript(root, '-p', target, Buffer.from(lines))
    const transcript = join(root, 'projects/-p', `${target}.jsonl`)
    const report = await fork(store, S1, target, {}, forkContext())
    expect(report).toMatchObject({ exitCode: 0, summary: { transcript: 'present' }, extra: { linked: 4, copied: 0, present: 0 } })
    expect(resolved(store, target)).toEqual(resolved(store, S1))
    expect(readFileSync(transcript, 'utf8')).toBe(lines)
    expect(backups(root, target)).toEqual(backups(root, S1))
  })

  it('and a second run changes nothing', async () => {
    const { root, store } = await threeCheckpoints()
    await fork(store, S1, target, {}, forkContext())
    const before = snapshotTree(root)
    expect(await fork(store, S1, target, {}, forkContext())).toMatchObject({ exitCode: 0, extra: { linked: 0, copied: 0, present: 4 } })
    sameTree(root, before)
  })

  it('exactly those it names, unless all are asked for', async () => {
    const { root, store } = await threeCheckpoints()
    writeBackup(root, S1, 'cccccccccccccccc@v9', 'named by nobody')
    writeBackup(root, S1, 'keep.me', 'not a backup')
    await fork(store, S1, target, {}, forkContext())
    expect(backups(root, target)).toEqual([`${H}@v1`, `${H}@v2`, `${H}@v3`, `${H2}@v1`])
    await fork(store, S1, target, { all: true }, forkContext())
    expect(backups(root, target)).toEqual([`${H}@v1`, `${H}@v2`, `${H}@v3`, `${H2}@v1`, 'cccccccccccccccc@v9'].sort())
  })

  it('an equal copy is done, one with other bytes is a finding and both stay', async () => {
    const { root, store } = await threeCheckpoints()
    writeBackup(root, target, `${H}@v1`, 'one')
    writeBackup(root, target, `${H}@v2`, 'not')
    const report = await fork(store, S1, target, {}, forkContext())
    expect(report).toMatchObject({ exitCode: 1, extra: { linked: 2, copied: 0, present: 1 } })
    expect(report.findings.map(({ id, place }) => [id, place?.path])).toEqual([['fork-differs', `file-history/${target}/${H}@v2`]])
    expect([readFileSync(join(root, 'file-history', target, `${H}@v2`), 'utf8'), readFileSync(join(root, 'file-history', S1, `${H}@v2`))]).toEqual(['not', Buffer.from([0, 255, 10])])
  })

  it('a backup of the same name that each session made for itself is nobody else\'s (R59)', async () => {
    const { root, store } = await threeCheckpoints()
    writeTranscript(root, '-p', S2, [userLine(m[4], { session: S2 }), snap(m[4], { a: `${H}@v1`, b: `${H2}@v1` }, '2026-11-05T00:00:00.000Z')])
    writeBackup(root, S2, `${H}@v1`, 'its own')
    const report = await fork(store, S1, S2, {}, forkContext())
    expect(report.errors.map(({ code, path }) => [code, path])).toEqual([['MISSING_BACKUP', `file-history/${S1}/${H2}@v1`]])
    expect(backups(root, S2)).toEqual([`${H}@v1`])
    expect(readFileSync(join(root, 'file-history', S2, `${H}@v1`), 'utf8')).toBe('its own')
  })
})

describe('fork keeps its promises', () => {
  it('bytes, modes and mtimes of the source are what they were', async () => {
    const { root, store } = await threeCheckpoints()
    const before = sourceTree(root)
    for (const method of ['link', 'copy', 'reflink'] as const) {
      await fork(store, S1, target, { method }, forkContext())
      rmSync(join(root, 'file-history', target), { recursive: true })
      rmSync(join(root, 'projects/-p', `${target}.jsonl`))
    }
    expect(sourceTree(root)).toEqual(before)
  })

  it('copies have bytes, mode and mtime of their originals, and no inode is shared', async () => {
    const { root, store } = await threeCheckpoints()
    expect(await fork(store, S1, target, { method: 'copy' }, forkContext())).toMatchObject({ extra: { linked: 0, copied: 4 } })
    const facts = (session: string): unknown[] => backups(root, session).map((name) => {
      const path = join(root, 'file-history', session, name)
      const { mode, mtimeMs, nlink } = statSync(path)
      return [name, readFileSync(path).toString('hex'), mode, mtimeMs, nlink]
    })
    expect(facts(target)).toEqual(facts(S1))
  })

  it('folder and transcript of the fork are as private as those of the source', async () => {
    const { root, store } = await threeCheckpoints()
    chmodSync(join(root, 'file-history', S1), 0o700)
    await fork(store, S1, target, {}, forkContext())
    expect([statSync(join(root, 'file-history', target)).mode & 0o777, statSync(join(root, 'projects/-p', `${target}.jsonl`)).mode & 0o777]).toEqual([0o700, 0o600])
  })

  it('names what the source lacks, does the rest, and ends with 3', async () => {
    const { root, store } = await threeCheckpoints()
    removeBackup(root, S1, `${H}@v2`)
    replaceBySymlink(root, S1, `${H2}@v1`, '/etc/hostname')
    const report = await fork(store, S1, target, {}, forkContext())
    expect(report.exitCode).toBe(3)
    expect(report.errors.map(({ path, message }) => [path, message])).toEqual([
      [`file-history/${S1}/${H}@v2`, 'the source does not have it either'],
      [`file-history/${S1}/${H2}@v1`, 'a symbolic link stands in its place in the source'],
    ])
    expect(backups(root, target)).toEqual([`${H}@v1`, `${H}@v3`])
  })

  it('a source that cannot be read is an error, and the target is as before (R64)', async (context) => {
    needs(context, 'unprivileged')
    const { root, store } = await threeCheckpoints()
    chmodSync(join(root, 'file-history', S1, `${H}@v2`), 0o000)
    giveAway(join(root, '..'))
    const report = await asNobody(() => fork(store, S1, target, {}, forkContext()))
    expect(report).toMatchObject({ exitCode: 3, applied: false, errors: [{ code: 'EACCES', path: `file-history/${S1}/${H}@v2` }] })
    isUntouched(root)
  })

  it.each(['EXDEV', 'EPERM', 'EISDIR', 'EMLINK', 'ENOTSUP', 'ENOSYS'])('%s: all are copied, after one try (R65)', async (code) => {
    const { store } = await threeCheckpoints()
    let tries = 0
    const link = (): never => {
      tries += 1
      throw Object.assign(new Error(code), { code })
    }
    expect(await fork(store, S1, target, {}, forkContext({ acts: { link } }))).toMatchObject({ exitCode: 0, extra: { linked: 0, copied: 4 } })
    expect(tries).toBe(1)
    expect(resolved(store, target)).toEqual(resolved(store, S1))
  })

  it.each(['ENOSPC', 'EIO', 'EACCES'])('%s while linking: an error, and nothing of the fork is there (R65)', async (code) => {
    const { root, store } = await threeCheckpoints()
    const link = (): never => { throw Object.assign(new Error(code), { code }) }
    await expect(fork(store, S1, target, {}, forkContext({ acts: { link } }))).rejects.toMatchObject({ code: code === 'ENOSPC' ? 'NO_SPACE' : code })
    isUntouched(root)
  })

  it('a copy that fails at 50 % leaves nothing, of the files before it neither (R64, R65)', async () => {
    const { root, store } = await threeCheckpoints()
    let copies = 0
    const copy = (from: string, to: string): void => {
      const bytes = readFileSync(from)
      copies += 1
      writeFileSync(to, copies < 3 ? bytes : bytes.subarray(0, bytes.length / 2))
      if (copies === 3) throw Object.assign(new Error('EIO'), { code: 'EIO' })
    }
    await expect(fork(store, S1, target, { method: 'copy' }, forkContext({ acts: { copy } }))).rejects.toThrow('EIO')
    expect(copies).toBe(3)
    isUntouched(root)
  })

  it('a copy that silently holds other bytes is found by the proof and taken away', async () => {
    const { root, store } = await threeCheckpoints()
    const copy = (from: string, to: string): void => { writeFileSync(to, readFileSync(from).fill(7)) }
    await expect(fork(store, S1, target, { method: 'copy' }, forkContext({ acts: { copy } }))).rejects.toThrow('does not hold the bytes')
    isUntouched(root)
  })

  it('a copy without room for it is refused before the first byte (R87)', async () => {
    const { root, store } = await threeCheckpoints()
    writeBackup(root, S1, `${H}@v1`, Buffer.alloc(1024 * 1024))
    const freeBytes = (): number => 1024 * 1024 + 4096
    await expect(fork(store, S1, target, { method: 'copy' }, forkContext({ freeBytes }))).rejects.toMatchObject({ exitCode: 28 })
    isUntouched(root)
    expect(await fork(store, S1, target, {}, forkContext({ freeBytes }))).toMatchObject({ exitCode: 0, extra: { linked: 4 } })
  })

  it('a fork that is stopped leaves nothing', async () => {
    const { root, store } = await threeCheckpoints()
    await expect(fork(store, S1, target, {}, forkContext({ signal: AbortSignal.abort(new Error('stopped')) }))).rejects.toThrow('stopped')
    isUntouched(root)
  })

  it('on two file systems copies are made (R65)', async (context) => {
    needs(context, 'tmpfs')
    const { root, store } = await threeCheckpoints()
    // The backups of the source lie on another file system, mounted at their place.
    const folder = join(root, 'file-history', S1)
    const contents = backups(root, S1).map((name) => ({ name, bytes: readFileSync(join(folder, name)), mode: statSync(join(folder, name)).mode & 0o7777 }))
    try {
      execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', folder], { stdio: 'ignore' })
    } catch {
      process.stderr.write('skipped: on two file systems copies are made: mounting is not allowed here\n')
      context.skip('mounting is not allowed here')
    }
    onTestFinished(() => { execFileSync('umount', [folder]) })
    for (const { name, bytes, mode } of contents) writeBackup(root, S1, name, bytes, { mode })
    expect(await fork(store, S1, target, {}, forkContext())).toMatchObject({ exitCode: 0, extra: { linked: 0, copied: 4 } })
    expect(resolved(store, target)).toEqual(resolved(store, S1))
    expect(backups(root, target).map((name) => statSync(join(root, 'file-history', target, name)).mode & 0o7777)).toEqual(contents.map(({ mode }) => mode))
  })

  it('what the agent writes into the fork afterwards does not reach the source, and removing the fork leaves it whole (R67)', async () => {
    const { root, store } = await threeCheckpoints()
    const before = sourceTree(root)
    await fork(store, S1, target, {}, forkContext())
    writeBackup(root, target, `${H}@v4`, 'made in the fork')
    rmSync(join(root, 'file-history', target), { recursive: true })
    expect(sourceTree(root)).toEqual(before)
  })

  it('is no fork of what a newer client wrote (R70)', async () => {
    const { root, store } = await threeCheckpoints()
    unknownHistoryLine(root, S1, `${H}@v1`)
    await expect(fork(store, S1, target, {}, forkContext())).rejects.toMatchObject({ exitCode: 12 })
    isUntouched(root)
  })

  it.each([
    ['an id that is none', 'NOT-AN-ID', {}],
    ['a path as id', '../../../x', {}],
    ['the source itself', S1, {}],
  ])('refuses %s', async (_, id, options) => {
    const { root, store } = await threeCheckpoints()
    const before = snapshotTree(root)
    await expect(fork(store, S1, id, options, forkContext())).rejects.toMatchObject({ exitCode: 2 })
    sameTree(root, before)
  })

  it('does not cut a transcript that is there', async () => {
    const { root, store } = await threeCheckpoints()
    await fork(store, S1, target, {}, forkContext())
    const before = snapshotTree(root)
    await expect(fork(store, S1, target, { at: m[2] }, forkContext())).rejects.toMatchObject({ exitCode: 2 })
    sameTree(root, before)
  })

  it('follows no link in place of a backup folder (R55)', async () => {
    const { root, store } = await threeCheckpoints()
    const elsewhere = join(root, 'elsewhere')
    mkdirSync(elsewhere)
    symlinkSync(elsewhere, join(root, 'file-history', target))
    await expect(fork(store, S1, target, {}, forkContext())).rejects.toMatchObject({ code: 'FENCE' })
    expect(readdirSync(elsewhere)).toEqual([])
    rmSync(join(root, 'file-history', target))
    const real = realpathSync(join(root, 'file-history', S1))
    renameSync(real, join(elsewhere, 'moved'))
    symlinkSync(join(elsewhere, 'moved'), real)
    await expect(fork(store, S1, target, {}, forkContext())).rejects.toMatchObject({ code: 'FENCE' })
    isUntouched(root)
  })
})

describe('fork --at', () => {
  it('has the checkpoints before the message, each with the same bytes, and their backups only', async () => {
    const { root, store } = await threeCheckpoints()
    expect(await fork(store, S1, target, { at: m[3] }, forkContext())).toMatchObject({ exitCode: 0, extra: { linked: 3 } })
    const wanted = resolved(store, S1)
    expect(resolved(store, target)).toEqual({ [m[1]]: wanted[m[1]], [m[2]]: wanted[m[2]] })
    expect(backups(root, target)).toEqual([`${H}@v1`, `${H}@v2`, `${H2}@v1`])
    expect(store.messages(sessionOf(store, target)).map(({ id }) => id)).toEqual([m[1], m[2]])
  })

  it('takes a unique prefix, and says when it is none', async () => {
    const { store } = await threeCheckpoints()
    await expect(fork(store, S1, target, { at: '0000' }, forkContext())).rejects.toMatchObject({ exitCode: 2 })
    await expect(fork(store, S1, target, { at: 'ffff' }, forkContext())).rejects.toMatchObject({ exitCode: 1 })
  })
})

describe('a fork that was killed', () => {
  it('in the middle of a copy: the next run removes what is left and finishes (R87)', async () => {
    const { root, store } = await threeCheckpoints()
    // What a process that is gone leaves: staged names of the backups, and half of a transcript.
    const child = spawn('true')
    await once(child, 'exit')
    const left = `.rewind-admin-${String(child.pid)}-ab12`
    for (const folder of [join(root, 'file-history', left), join(root, 'projects/-p', left)]) mkdirSync(folder)
    writeFileSync(join(root, 'file-history', left, `${H}@v1`), 'hal')
    writeFileSync(join(root, 'projects/-p', left, `${target}.jsonl`), '{"type":"user"')
    const processExists = (pid: number): boolean => pid !== child.pid
    expect(await fork(store, S1, target, {}, forkContext({ processExists }))).toMatchObject({ exitCode: 0, summary: { swept: 2 }, extra: { linked: 4 } })
    expect(resolved(store, target)).toEqual(resolved(store, S1))
    expect(readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.rewind-admin'))).toEqual([])
  })

  it('between backups and transcript: no transcript is without its backups, and the next run completes it (R71)', async () => {
    const { root, store } = await threeCheckpoints()
    await fork(store, S1, target, {}, forkContext())
    const transcript = join(root, 'projects/-p', `${target}.jsonl`)
    const whole = readFileSync(transcript)
    rmSync(transcript)
    expect(await fork(store, S1, target, {}, forkContext())).toMatchObject({ exitCode: 0, summary: { transcript: 'written' }, extra: { linked: 0, present: 4 } })
    expect(readFileSync(transcript)).toEqual(whole)
  })

  it('among the backups of a folder that was there: the next run does the rest (R71)', async () => {
    const { root, store } = await threeCheckpoints()
    await fork(store, S1, target, {}, forkContext())
    removeBackup(root, target, `${H}@v2`)
    expect(await fork(store, S1, target, {}, forkContext())).toMatchObject({ exitCode: 0, extra: { linked: 1, present: 3 } })
    expect(resolved(store, target)).toEqual(resolved(store, S1))
  })

  it('a transcript that appears meanwhile is not overwritten, and the backups go again', async () => {
    const { root, store } = await threeCheckpoints()
    const transcript = join(root, 'projects/-p', `${target}.jsonl`)
    const link = (from: string, to: string): void => {
      if (!existsSync(transcript)) appendFileSync(transcript, 'mine\n')
      writeFileSync(to, readFileSync(from))
    }
    // Copies through the link act: the point is the moment, not the inode.
    await expect(fork(store, S1, target, { method: 'copy' }, forkContext({ acts: { copy: link } }))).rejects.toThrow('was not overwritten')
    expect(readFileSync(transcript, 'utf8')).toBe('mine\n')
    expect(existsSync(join(root, 'file-history', target))).toBe(false)
  })
})

describe('a damaged source', () => {
  it('is forked as it is: the fork says of it what verify would', async () => {
    const { root, store } = await threeCheckpoints()
    flipBit(root, S1, `${H}@v1`)
    appendFileSync(join(root, 'projects/-p', `${S1}.jsonl`), `${toolResultLine('r1', { filePath: '/x' }).slice(0, 60)}\n`)
    const report = await fork(store, S1, target, {}, forkContext())
    expect([report.exitCode, report.findings.map(({ id }) => id)]).toEqual([0, ['damaged-line']])
    expect(resolved(store, target)).toEqual(resolved(store, S1))
  })
})
