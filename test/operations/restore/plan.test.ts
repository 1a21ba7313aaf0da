import { execFileSync } from 'node:child_process'
import { chmodSync, linkSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { NoMatchError, FenceError } from '../../../src/model/errors.js'
import { hasAnyChanges, planRestore } from '../../../src/operations/restore/plan.js'
import {
  cutToZero,
  removeBackupFolder,
  replaceBackupFolderBySymlink,
  replaceByFifo,
  replaceByFolder,
  replaceBySymlink,
} from '../../helpers/damage.js'
import { H, H2, S1, type RawRecord } from '../../helpers/store.js'
import { snapshotTree } from '../../helpers/tree.js'
import { needs } from '../../helpers/unprivileged.js'
import { backup, decisionOn, inFolder, makeScene, plan, read, writeLines, type Scene } from './scene.js'

const [A, B] = [`${H}@v2`, `${H2}@v2`]

async function twoFiles(): Promise<Scene> {
  const scene = await makeScene({ 'a.txt': A, 'b.txt': B })
  backup(scene, A, 'alpha\n')
  backup(scene, B, 'beta\n')
  writeFileSync(join(scene.project, 'a.txt'), 'other\n')
  writeFileSync(join(scene.project, 'b.txt'), 'beta\n')
  chmodSync(join(scene.project, 'b.txt'), 0o644)
  return scene
}

describe('a restore plan', () => {
  it('says what changes and what does not, and writes nothing', async () => {
    const scene = await twoFiles()
    const before = snapshotTree(scene.home)
    const made = plan(scene)
    expect(decisionOn(made, join(scene.project, 'a.txt'))).toEqual({ action: 'restore', backup: A, offset: 0, size: 6, mode: 0o644 })
    expect(decisionOn(made, join(scene.project, 'b.txt'))).toEqual({ action: 'unchanged' })
    expect(snapshotTree(scene.home)).toEqual(before)
  })

  it('is about the files that were asked for: by name, from the start folder, or as recorded', async () => {
    const scene = await twoFiles()
    for (const name of ['a.txt', './a.txt', join(scene.project, 'a.txt')]) {
      expect(plan(scene, { files: [name] }).items.map((item) => item.path)).toEqual([join(scene.project, 'a.txt')])
    }
    expect(() => plan(scene, { files: ['a.txt', 'c.txt'] })).toThrow(NoMatchError)
  })

  it('of the conversation alone touches no file', async () => {
    const scene = await twoFiles()
    expect(plan(scene, { scope: 'conversation' }).items).toEqual([])
    const { reading, checkpoint } = read(scene)
    expect(hasAnyChanges(scene.store, reading, checkpoint, { home: scene.home, scope: 'conversation' })).toBe(false)
  })

  it('compares bytes to the last one, also where sizes are equal and files are larger than a block', async () => {
    const scene = await makeScene({ 'a.bin': A, 'b.bin': B })
    const size = 256 * 1024
    const bytes = Buffer.alloc(size * 2, 7)
    backup(scene, A, bytes)
    backup(scene, B, bytes)
    writeFileSync(join(scene.project, 'a.bin'), bytes, { mode: 0o644 })
    const changed = Buffer.from(bytes)
    changed[changed.length - 1] = 8
    writeFileSync(join(scene.project, 'b.bin'), changed, { mode: 0o644 })
    const made = plan(scene)
    expect(decisionOn(made, join(scene.project, 'a.bin'))).toEqual({ action: 'unchanged' })
    expect(decisionOn(made, join(scene.project, 'b.bin'))).toMatchObject({ action: 'restore' })
  })

  it('"anything to change?" looks no further than the first file that differs', async () => {
    const scene = await twoFiles()
    const { reading, checkpoint } = read(scene)
    const asked: string[] = []
    const options = { home: scene.home, sealOf: (name: string) => void asked.push(name) }
    expect(hasAnyChanges(scene.store, reading, checkpoint, options)).toBe(true)
    expect(asked).toEqual([A])
    writeFileSync(join(scene.project, 'a.txt'), 'alpha\n')
    expect(hasAnyChanges(scene.store, reading, checkpoint, options)).toBe(false)
  })
})

describe('backups in a restore plan', () => {
  it.each([
    ['missing', (scene: Scene) => { removeBackupFolder(scene.root, S1) }, /missing/],
    ['a link', (scene: Scene) => { replaceBySymlink(scene.root, S1, A, join(scene.outside, 'secret')) }, /plain file/],
    ['a pipe', (scene: Scene) => { replaceByFifo(scene.root, S1, A) }, /plain file/],
    ['a folder', (scene: Scene) => { replaceByFolder(scene.root, S1, A) }, /plain file/],
  ])('R34: one that is %s makes its path fail, and is not opened', async (kind, damage, reason) => {
    const scene = await twoFiles()
    writeFileSync(join(scene.outside, 'secret'), 'not yours')
    damage(scene)
    const made = plan(scene)
    const decision = decisionOn(made, join(scene.project, 'a.txt'))
    expect(decision, kind).toMatchObject({ action: 'fail' })
    expect(decision?.action === 'fail' ? decision.reason : '').toMatch(reason)
  })

  it('one that differs from its seal fails its path, one that agrees does not, and an empty one without a seal is restored', async () => {
    const scene = await twoFiles()
    const seal = createHash('sha256').update('alpha\n').digest('hex')
    const sealOf = (name: string): string | undefined => (name === A ? seal : undefined)
    expect(decisionOn(plan(scene, { sealOf }), join(scene.project, 'a.txt'))).toMatchObject({ action: 'restore' })
    cutToZero(scene.root, S1, A)
    expect(decisionOn(plan(scene), join(scene.project, 'a.txt'))).toMatchObject({ action: 'restore', size: 0 })
    expect(decisionOn(plan(scene, { sealOf }), join(scene.project, 'a.txt'))).toMatchObject({ action: 'fail' })
  })

  it('R44: names that lead out of the folder are never joined to a path', async () => {
    const named = (backupFileName: string): RawRecord => ({ backupFileName, version: 1 })
    const scene = await makeScene({ 'a.txt': named('../../../outside/secret'), 'b.txt': named('/etc/hostname') })
    writeFileSync(join(scene.outside, 'secret'), 'not yours')
    expect(plan(scene).items.map((item) => item.decision.action)).toEqual(['unknown', 'unknown'])
  })

  it('R55: a backup folder that is a link is refused as a whole', async () => {
    const scene = await twoFiles()
    replaceBackupFolderBySymlink(scene.root, S1, scene.outside)
    expect(() => plan(scene)).toThrow(FenceError)
  })
})

describe('links among the folders of a target (section 4, rule 2; R55)', () => {
  it('a recorded parent that a link still leads to is followed, one that it no longer leads to is not', async () => {
    const scene = await makeScene({})
    mkdirSync(join(scene.project, 'real'))
    symlinkSync('real', join(scene.project, 'alias'))
    const [real, gone] = [join(scene.project, 'real'), join(scene.project, 'gone')]
    writeLines(scene, { 'alias/a.txt': inFolder(null, real), 'alias/b.txt': inFolder(null, gone) })
    writeFileSync(join(scene.project, 'real', 'a.txt'), 'x')
    writeFileSync(join(scene.project, 'real', 'b.txt'), 'x')
    const made = plan(scene)
    expect(decisionOn(made, join(scene.project, 'alias', 'a.txt'))).toEqual({ action: 'delete' })
    expect(decisionOn(made, join(scene.project, 'alias', 'b.txt'))).toMatchObject({ action: 'skip' })
  })

  it('without a recorded parent no link below the start folder is followed, above it they are', async () => {
    const scene = await makeScene({ 'alias/a.txt': null, 'b.txt': null })
    symlinkSync(scene.outside, join(scene.project, 'alias'))
    writeFileSync(join(scene.outside, 'a.txt'), 'x')
    writeFileSync(join(scene.project, 'b.txt'), 'x')
    renameSync(scene.project, join(scene.home, 'moved'))
    symlinkSync('moved', scene.project)
    const made = plan(scene)
    expect(decisionOn(made, join(scene.project, 'alias', 'a.txt'))).toMatchObject({ action: 'skip' })
    expect(made.items.find((item) => item.path === join(scene.project, 'b.txt'))).toMatchObject({
      decision: { action: 'delete' },
      place: { folder: join(scene.home, 'moved'), missing: 0, name: 'b.txt' },
    })
  })

  it('without a recorded parent no link below the home folder is followed to a file outside the start folder', async () => {
    const scene = await makeScene({ '../alias/a.txt': null, '../outside/b.txt': null })
    symlinkSync('outside', join(scene.home, 'alias'))
    for (const name of ['a.txt', 'b.txt']) writeFileSync(join(scene.outside, name), 'x')
    const made = plan(scene)
    expect(decisionOn(made, join(scene.home, 'alias', 'a.txt'))).toMatchObject({ action: 'skip' })
    expect(decisionOn(made, join(scene.outside, 'b.txt'))).toEqual({ action: 'delete' })
  })

  it('a link to nothing and a link in a circle are skipped', async () => {
    const scene = await makeScene({ 'nowhere/a.txt': inFolder(A, '/x'), 'circle/a.txt': inFolder(A, '/x') })
    backup(scene, A, 'x')
    symlinkSync('not-there', join(scene.project, 'nowhere'))
    symlinkSync('circle', join(scene.project, 'circle'))
    expect(plan(scene).items.map((item) => item.decision.action)).toEqual(['skip', 'skip'])
  })

  it('two paths that lead to one file are one path', async () => {
    const scene = await makeScene({})
    const real = join(scene.project, 'real')
    mkdirSync(real)
    symlinkSync('real', join(scene.project, 'alias'))
    writeFileSync(join(real, 'a.txt'), 'x')
    writeLines(scene, { 'real/a.txt': inFolder(null, real), 'alias/a.txt': inFolder(null, real) })
    expect(plan(scene).items).toMatchObject([{ keys: ['alias/a.txt', 'real/a.txt'], decision: { action: 'delete' } }])
    backup(scene, A, 'y')
    writeLines(scene, { 'real/a.txt': inFolder(null, real), 'alias/a.txt': inFolder(A, real, 2) })
    expect(plan(scene).items).toMatchObject([{ decision: { action: 'unknown' } }])
  })
})

describe('targets that are no plain files', () => {
  it('a link, a hard link, a folder and a pipe are skipped and counted, never opened', async (context) => {
    needs(context, 'fifo')
    const scene = await makeScene({ link: A, hard: A, folder: A, pipe: A, gone: null })
    backup(scene, A, 'x')
    writeFileSync(join(scene.outside, 'secret'), 'not yours')
    symlinkSync(join(scene.outside, 'secret'), join(scene.project, 'link'))
    linkSync(join(scene.outside, 'secret'), join(scene.project, 'hard'))
    mkdirSync(join(scene.project, 'folder'))
    execFileSync('mkfifo', [join(scene.project, 'pipe')])
    const made = plan(scene)
    expect(made.items.map((item) => [item.keys[0], item.decision.action])).toEqual([
      ['folder', 'skip'],
      ['gone', 'unchanged'],
      ['hard', 'skip'],
      ['link', 'skip'],
      ['pipe', 'skip'],
    ])
  })

  it('backups and our own folder are no targets, whatever a transcript tracks', async () => {
    const scene = await makeScene({})
    backup(scene, A, 'x')
    backup(scene, B, 'y')
    mkdirSync(scene.store.sidecar)
    writeFileSync(join(scene.store.sidecar, 'seals'), 's')
    writeFileSync(join(scene.root, 'CLAUDE.md'), 'notes')
    const inHistory = join(scene.root, 'file-history', S1, B)
    const [inSidecar, own] = [join(scene.store.sidecar, 'seals'), join(scene.root, 'CLAUDE.md')]
    writeLines(scene, { [inHistory]: A, [inSidecar]: null, [own]: null })
    const { reading, checkpoint } = read(scene)
    const made = planRestore(scene.store, reading, checkpoint, { home: scene.home })
    expect(decisionOn(made, inHistory)).toMatchObject({ action: 'skip' })
    expect(decisionOn(made, inSidecar)).toMatchObject({ action: 'skip' })
    expect(decisionOn(made, own)).toEqual({ action: 'delete' })
  })

  it('names that no file can have are left alone with their reason', async () => {
    const long = 'x'.repeat(300)
    const scene = await makeScene({ 'nul\0': A, [long]: A, 'C:\\p\\a.ts': A })
    backup(scene, A, 'x')
    const made = plan(scene)
    expect(decisionOn(made, 'nul\0')).toMatchObject({ action: 'unknown' })
    expect(decisionOn(made, 'C:\\p\\a.ts')).toMatchObject({ action: 'unknown' })
    expect(decisionOn(made, join(scene.project, long))).toMatchObject({ action: 'skip' })
  })
})
