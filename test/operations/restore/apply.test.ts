import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { applyRedo, planRedo } from '../../../src/operations/restore/redo.js'
import { cutToZero, removeBackup } from '../../helpers/damage.js'
import { H, H2, S1 } from '../../helpers/store.js'
import { sameTree, snapshotTree, withoutTimes } from '../../helpers/tree.js'
import { asNobody, giveAway, needs, nobody } from '../../helpers/unprivileged.js'
import { apply, backup, later, leftovers, makeScene, plan, read, type Scene } from './scene.js'

const [A, B] = [`${H}@v2`, `${H2}@v2`]

async function twoChanges(): Promise<Scene> {
  const scene = await makeScene({ 'a.txt': A, 'b.txt': B, 'new.txt': null })
  backup(scene, A, 'alpha\n')
  backup(scene, B, 'beta\n', 0o755)
  for (const name of ['a.txt', 'b.txt', 'new.txt', 'untracked.txt']) writeFileSync(join(scene.project, name), `now ${name}`)
  return scene
}

describe('applying a restore', () => {
  it('restores bytes and modes, deletes, leaves the rest and its own traces nowhere but in the sidecar', async () => {
    const scene = await twoChanges()
    const history = snapshotTree(join(scene.root, 'file-history'))
    const result = apply(scene)
    expect(result).toMatchObject({ failed: [], skipped: [], rolledBack: false, exitCode: 0, point: 1 })
    expect(result.changed.map((item) => item.path).sort()).toEqual(['a.txt', 'b.txt', 'new.txt'].map((name) => join(scene.project, name)))
    expect(readFileSync(join(scene.project, 'a.txt'), 'utf8')).toBe('alpha\n')
    expect(readFileSync(join(scene.project, 'b.txt'), 'utf8')).toBe('beta\n')
    expect(statSync(join(scene.project, 'b.txt')).mode & 0o7777).toBe(0o755)
    expect(existsSync(join(scene.project, 'new.txt'))).toBe(false)
    expect(readFileSync(join(scene.project, 'untracked.txt'), 'utf8')).toBe('now untracked.txt')
    expect(leftovers(scene.home)).toEqual([])
    sameTree(join(scene.root, 'file-history'), history)
  })

  it('a second time changes nothing and makes no redo point', async () => {
    const scene = await twoChanges()
    apply(scene)
    const before = snapshotTree(scene.home)
    expect(apply(scene)).toMatchObject({ changed: [], exitCode: 0 })
    sameTree(scene.home, before)
  })

  it.each([0o600, 0o755, 0o444, 0o000, 0o4755])('R54: sets the mode %o of the backup whatever the umask', async (mode) => {
    const scene = await makeScene({ 'a.txt': A, 'deep/er/b.txt': A })
    backup(scene, A, 'x', mode)
    const umask = process.umask(0o077)
    try {
      expect(apply(scene)).toMatchObject({ exitCode: 0 })
    } finally {
      process.umask(umask)
    }
    for (const name of ['a.txt', 'deep/er/b.txt']) expect(statSync(join(scene.project, name)).mode & 0o7777).toBe(mode)
  })

  it('R52: every byte comes back, in files smaller and larger than a block', async () => {
    const scene = await makeScene({ small: A, large: B })
    const small = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const large = Buffer.concat(Array.from({ length: 5000 }, () => small))
    backup(scene, A, small)
    backup(scene, B, large)
    apply(scene)
    expect(readFileSync(join(scene.project, 'small')).equals(small)).toBe(true)
    expect(readFileSync(join(scene.project, 'large')).equals(large)).toBe(true)
  })

  it('a file where folders have to be goes first when the same checkpoint has it go, and redo brings it back', async () => {
    const scene = await makeScene({ place: null, 'place/deep/a.txt': A })
    backup(scene, A, 'x')
    writeFileSync(join(scene.project, 'place'), 'a file now')
    const before = snapshotTree(scene.project)
    expect(apply(scene)).toMatchObject({ failed: [], exitCode: 0 })
    expect(readFileSync(join(scene.project, 'place/deep/a.txt'), 'utf8')).toBe('x')
    expect(apply(scene)).toMatchObject({ changed: [], exitCode: 0 })
    const redone = applyRedo(planRedo(scene.store, read(scene).reading), { sidecar: scene.store.sidecar, now: later })
    expect(redone).toMatchObject({ failed: [], exitCode: 0 })
    expect(withoutTimes(snapshotTree(scene.project))).toEqual(withoutTimes(before))
  })

  it('a file where folders have to be is left when nothing has it go', async () => {
    const scene = await makeScene({ 'place/a.txt': A })
    backup(scene, A, 'x')
    writeFileSync(join(scene.project, 'place'), 'a file now')
    expect(apply(scene)).toMatchObject({ changed: [], failed: [], skipped: [{ path: join(scene.project, 'place/a.txt') }] })
  })
})

describe('before anything is written', () => {
  it.each([
    ['missing', (scene: Scene) => { removeBackup(scene.root, S1, B) }],
    ['other than its seal', (scene: Scene) => { cutToZero(scene.root, S1, B) }],
  ])('a needed backup that is %s stops everything with code 3; --partial does the rest', async (_, damage) => {
    const scene = await twoChanges()
    damage(scene)
    const seal = createHash('sha256').update('beta\n').digest('hex')
    const options = { sealOf: (name: string): string | undefined => (name === B ? seal : undefined) }
    const before = snapshotTree(scene.home)
    const stopped = apply(scene, plan(scene, options))
    expect(stopped).toMatchObject({ changed: [], rolledBack: false, exitCode: 3 })
    expect(stopped.failed.map((failure) => failure.path)).toEqual([join(scene.project, 'b.txt')])
    sameTree(scene.home, before)

    const partial = apply(scene, plan(scene, options), { partial: true })
    expect(partial.exitCode).toBe(3)
    expect(partial.failed.map((failure) => failure.path)).toEqual([join(scene.project, 'b.txt')])
    expect(readFileSync(join(scene.project, 'a.txt'), 'utf8')).toBe('alpha\n')
    expect(readFileSync(join(scene.project, 'b.txt'), 'utf8')).toBe('now b.txt')
  })

  it('a backup that goes between plan and act stops everything, and no temporary file or folder is left', async () => {
    const scene = await makeScene({ 'a.txt': A, 'made/for/b.txt': B })
    backup(scene, A, 'alpha\n')
    backup(scene, B, 'beta\n')
    const made = plan(scene)
    removeBackup(scene.root, S1, B)
    const before = snapshotTree(scene.project)
    expect(apply(scene, made)).toMatchObject({ changed: [], exitCode: 3 })
    expect(withoutTimes(snapshotTree(scene.project))).toEqual(withoutTimes(before))
    expect(leftovers(scene.home)).toEqual([])
  })

  it('a file that was edited between plan and act is left, and so is all else', async () => {
    const scene = await twoChanges()
    const made = plan(scene)
    writeFileSync(join(scene.project, 'b.txt'), 'edited meanwhile')
    const before = snapshotTree(scene.project)
    expect(apply(scene, made)).toMatchObject({ changed: [], exitCode: 3, failed: [{ path: join(scene.project, 'b.txt') }] })
    sameTree(scene.project, before)
    expect(apply(scene, made, { partial: true })).toMatchObject({ exitCode: 3 })
    expect(readFileSync(join(scene.project, 'a.txt'), 'utf8')).toBe('alpha\n')
    expect(readFileSync(join(scene.project, 'b.txt'), 'utf8')).toBe('edited meanwhile')
  })
})

describe('when a path fails midway', () => {
  const names = Array.from({ length: 40 }, (_, index) => `f${String(index).padStart(2, '0')}`)

  async function manyFiles(): Promise<Scene> {
    const scene = await makeScene({ ...Object.fromEntries(names.map((name) => [name, A])), 'made/new': A, 'a-gone': null })
    backup(scene, A, 'then')
    for (const name of [...names, 'a-gone']) writeFileSync(join(scene.project, name), `now ${name}`, { mode: 0o640 })
    return scene
  }

  /** Called when all is prepared and nothing has been changed. */
  const spoil = (scene: Scene) => (): void => {
    rmSync(join(scene.project, 'f39'))
    mkdirSync(join(scene.project, 'f39'))
  }

  it('what was done is put back from the redo point: never half a rewind', async () => {
    const scene = await manyFiles()
    const before = snapshotTree(scene.project)
    const result = apply(scene, plan(scene), { syncFileSystem: spoil(scene) })
    expect(result).toMatchObject({ changed: [], rolledBack: true, notRolledBack: [], exitCode: 3 })
    expect(result.failed).toMatchObject([{ path: join(scene.project, 'f39') }])
    expect(result.point).toBeUndefined()
    const after = snapshotTree(scene.project)
    expect(after.f39?.type).toBe('folder')
    expect({ ...withoutTimes(after), f39: undefined }).toEqual({ ...withoutTimes(before), f39: undefined })
    expect(leftovers(scene.home)).toEqual([])
  })

  it('--partial keeps what was done, and the redo point', async () => {
    const scene = await manyFiles()
    const result = apply(scene, plan(scene), { syncFileSystem: spoil(scene), partial: true })
    expect(result).toMatchObject({ rolledBack: false, exitCode: 3, point: 1, failed: [{ path: join(scene.project, 'f39') }] })
    expect(result.changed).toHaveLength(41)
    expect(leftovers(scene.home)).toEqual([])
  })

  it('files are synced one by one when the file system cannot be', async () => {
    const scene = await manyFiles()
    const refuse = (): never => {
      throw new Error('no sync here')
    }
    expect(apply(scene, plan(scene), { syncFileSystem: refuse })).toMatchObject({ exitCode: 0 })
  })
})

describe('owners', () => {
  it('a file of somebody else keeps its owner and group when we may set them', async (context) => {
    needs(context, 'unprivileged')
    if (process.getuid?.() !== 0) context.skip()
    const scene = await makeScene({ 'a.txt': A })
    backup(scene, A, 'then', 0o4755)
    const file = join(scene.project, 'a.txt')
    writeFileSync(file, 'now')
    chownSync(file, nobody, nobody)
    expect(apply(scene)).toMatchObject({ exitCode: 0 })
    expect(lstatSync(file)).toMatchObject({ uid: nobody, gid: nobody })
    expect(lstatSync(file).mode & 0o7777).toBe(0o4755)
  })

  it('when we may not, it is written in place and stays the same file', async (context) => {
    needs(context, 'unprivileged')
    if (process.getuid?.() !== 0) context.skip()
    const scene = await makeScene({ 'a.txt': A, 'b.txt': B })
    backup(scene, A, 'then, and shorter', 0o666)
    backup(scene, B, 'then', 0o600)
    for (const name of ['a.txt', 'b.txt']) {
      writeFileSync(join(scene.project, name), 'now, which is a good deal longer')
      chmodSync(join(scene.project, name), 0o666)
    }
    giveAway(scene.home)
    for (const name of ['a.txt', 'b.txt']) chownSync(join(scene.project, name), 0, 0)
    const { ino } = lstatSync(join(scene.project, 'a.txt'))
    await asNobody(() => {
      expect(apply(scene, plan(scene, { files: ['a.txt'] }))).toMatchObject({ exitCode: 0, failed: [] })
    })
    expect(lstatSync(join(scene.project, 'a.txt'))).toMatchObject({ uid: 0, gid: 0, ino })
    expect(readFileSync(join(scene.project, 'a.txt'), 'utf8')).toBe('then, and shorter')
    // Its mode would have to change, which only the owner may: nothing is written.
    await asNobody(() => {
      expect(apply(scene)).toMatchObject({ exitCode: 3, rolledBack: true, notRolledBack: [] })
    })
    expect(readFileSync(join(scene.project, 'b.txt'), 'utf8')).toBe('now, which is a good deal longer')
    expect(leftovers(scene.home)).toEqual([])
  })

  it('a folder that takes no files and a file that cannot be read fail their paths, and nothing changes', async (context) => {
    needs(context, 'unprivileged')
    const scene = await makeScene({ 'closed/a.txt': A, 'b.txt': A, 'c.txt': B })
    backup(scene, A, 'then')
    backup(scene, B, 'then')
    mkdirSync(join(scene.project, 'closed'))
    for (const name of ['b.txt', 'c.txt']) writeFileSync(join(scene.project, name), 'now')
    giveAway(scene.home)
    chmodSync(join(scene.project, 'closed'), 0o555)
    await asNobody(() => {
      const closed = { path: join(scene.project, 'closed/a.txt'), code: 'EACCES' }
      expect(apply(scene)).toMatchObject({ exitCode: 3, changed: [], failed: [closed] })
      chmodSync(join(scene.project, 'c.txt'), 0o000)
      const both = plan(scene, { files: ['b.txt', 'c.txt'] })
      expect(apply(scene, both)).toMatchObject({ exitCode: 3, changed: [], failed: [{ code: 'EACCES' }] })
      expect(readFileSync(join(scene.project, 'b.txt'), 'utf8')).toBe('now')
    })
    expect(leftovers(scene.home)).toEqual([])
  })
})
