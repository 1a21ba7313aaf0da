import { chmodSync, existsSync, linkSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDshRewind } from '../../../src/formats/dsh-rewind/index.js'
import { applyRestore } from '../../../src/operations/restore/apply.js'
import { planRestore } from '../../../src/operations/restore/plan.js'
import { DshStore } from '../../helpers/dsh.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { snapshotTree } from '../../helpers/tree.js'

const now = Date.parse('2026-11-30T12:00:00Z')

/** Contents of the files named, `null` for one that is not there. */
type Disk = Readonly<Record<string, string | null>>

class Case {
  readonly store: DshStore
  readonly project: string
  #time = 1000

  constructor(readonly folder: string) {
    this.store = new DshStore(join(folder, '.dsh'))
    this.store.markers()
    this.project = join(folder, 'p')
    mkdirSync(this.project)
  }

  path(name: string): string {
    return join(this.project, name)
  }

  disk(disk: Disk): this {
    for (const [name, content] of Object.entries(disk)) {
      if (content === null) continue
      mkdirSync(dirname(this.path(name)), { recursive: true })
      writeFileSync(this.path(name), content)
    }
    return this
  }

  /** A byte record with the pin that its builds write. */
  record(anchor: number, name: string, before: string | Buffer | null, fields: { mode?: number; parent?: string } = {}): string {
    this.#time += 1
    return this.store.bytes({ anchor, call: `c${String(this.#time)}`, file: this.path(name), before, time: this.#time, parent: dirname(this.path(name)), ...fields })
  }

  restore(target: number, env: Record<string, string> = {}): Record<'restore' | 'delete' | 'skip' | 'fail' | 'unknown' | 'unchanged', string[]> {
    const store = openDshRewind(this.store.root, { home: this.folder, env, platform: 'linux' })
    const [session] = store.inventory().sessions
    if (session === undefined) throw new Error('no session')
    const reading = store.read(session, { now })
    const checkpoint = store.checkpointAt?.(session, reading, String(target))
    if (checkpoint === undefined) throw new Error('no checkpoint')
    const plan = planRestore(store, reading, checkpoint, { home: this.folder })
    const outcome = { restore: [], delete: [], skip: [], fail: [], unknown: [], unchanged: [] } as Record<string, string[]>
    for (const { path, decision } of plan.items) outcome[decision.action]?.push(path.slice(this.project.length + 1))
    applyRestore(plan, { sidecar: store.sidecar, now, partial: true })
    return outcome
  }

  expectDisk(disk: Disk): void {
    for (const [name, content] of Object.entries(disk)) expect([name, existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : null]).toEqual([name, content])
  }
}

async function newCase(): Promise<Case> {
  return new Case(await temporaryFolder())
}

/** The vectors of formats/dsh-rewind section 3.5 that are records, a disk and a target; the number is theirs. */
const vectors: readonly (readonly [number, string, readonly (readonly [number, string, string | null])[], Disk, number, Disk])[] = [
  [1, 'restores what differs', [[5, 'f', 'original']], { f: 'rewritten' }, 5, { f: 'original' }],
  [2, 'deletes what was created and leaves what is equal', [[5, 'keep', 'x'], [6, 'new', null]], { keep: 'x', new: 'n' }, 5, { keep: 'x', new: null }],
  [3, 'makes a file again, with its folders', [[5, 'a/b/f', 'content']], {}, 5, { 'a/b/f': 'content' }],
  [4, 'takes the first record of the first message', [[5, 'f', 'v1'], [6, 'f', 'v2'], [6, 'f', 'v3']], { f: 'v4' }, 5, { f: 'v1' }],
  [5, 'leaves files alone that only earlier messages changed', [[5, 'f1', 'a'], [7, 'f2', 'b']], { f1: 'a2', f2: 'b2' }, 7, { f1: 'a2', f2: 'b' }],
  [6, 'does nothing about a file that is gone already', [[6, 'f', null]], {}, 5, { f: null }],
  [7, 'does nothing about a file that is equal', [[5, 'f', 'x']], { f: 'x' }, 5, { f: 'x' }],
  [9, 'takes the first of two records of one message', [[5, 'f', 'v0'], [5, 'f', 'v1']], { f: 'v2' }, 5, { f: 'v0' }],
  [11, 'takes the state at the message boundary for it', [[5, 'f', 'original'], [7, 'f', 'ext']], { f: 'else' }, 7, { f: 'ext' }],
  [12, 'makes a file again that was deleted by hand', [[5, 'f', 'original'], [7, 'f', null]], {}, 5, { f: 'original' }],
  [18, 'makes an empty file again', [[5, 'f', '']], {}, 5, { f: '' }],
]

describe('a restore', () => {
  it.each(vectors)('%i: %s', async (_number, _words, records, disk, target, expected) => {
    const each = (await newCase()).disk(disk)
    for (const [anchor, name, before] of records) each.record(anchor, name, before)
    each.restore(target)
    each.expectDisk(expected)
  })

  it.each([
    ['random bytes', Buffer.from(Array.from({ length: 4096 }, (_, index) => index & 0xff))],
    ['half a PNG', Buffer.from('89504e470d0a1a0a00ff', 'hex')],
    ['GBK', Buffer.from('d6d0cec4d2bb', 'hex')],
    ['UTF-16', Buffer.from('fffe61000d000a00', 'hex')],
    ['2 MiB', Buffer.alloc(2 * 1024 * 1024, 7)],
  ])('17, R52: gives %s back byte by byte', async (_, bytes) => {
    const each = (await newCase()).disk({ f: 'clobbered' })
    each.record(5, 'f', bytes)
    each.restore(5)
    expect(readFileSync(each.path('f')).equals(bytes)).toBe(true)
  })

  it('8: leaves a symbolic and a hard link alone, and what they lead to', async () => {
    const each = (await newCase()).disk({ real: 'live', other: 'live' })
    symlinkSync('real', each.path('link'))
    linkSync(each.path('other'), each.path('hard'))
    each.record(5, 'link', 'text')
    each.record(5, 'hard', 'text')
    expect(each.restore(5).skip).toEqual(['hard', 'link'])
    each.expectDisk({ real: 'live', other: 'live', hard: 'live' })
  })

  it.each([
    ['is gone', (path: string) => { rmSync(path) }],
    ['is cut short', (path: string) => { writeFileSync(path, 'or') }],
    ['has grown', (path: string) => { writeFileSync(path, 'originals') }],
    ['is a link', (path: string) => { rmSync(path); symlinkSync('/etc/hostname', path) }],
    ['is a folder', (path: string) => { rmSync(path); mkdirSync(path) }],
  ])('20: fails where the side file %s, and never deletes', async (_, damage) => {
    const each = (await newCase()).disk({ f: 'rewritten' })
    const record = each.record(5, 'f', 'original')
    damage(join(each.store.folder(), record.replace('.json', '.before')))
    expect(each.restore(5)).toMatchObject({ fail: ['f'], delete: [] })
    each.expectDisk({ f: 'rewritten' })
  })

  it('22, R55: leaves a file alone whose folder is another one now, also when it would be deleted', async () => {
    const each = (await newCase()).disk({ 'd/f': 'x', 'elsewhere/f': 'theirs', 'elsewhere/n': 'theirs' })
    each.record(5, 'd/f', 'original')
    each.record(5, 'd/n', null)
    renameSync(each.path('d'), each.path('old'))
    symlinkSync('elsewhere', each.path('d'))
    expect(each.restore(5)).toMatchObject({ skip: ['d/f', 'd/n'], restore: [], delete: [] })
    each.expectDisk({ 'elsewhere/f': 'theirs', 'elsewhere/n': 'theirs' })
  })

  it('23: restores through a link that was there when the file was recorded', async () => {
    const each = (await newCase()).disk({ 'real/f': 'changed' })
    symlinkSync('real', each.path('d'))
    each.record(5, 'd/f', 'original', { parent: each.path('real') })
    expect(each.restore(5).restore).toEqual(['d/f'])
    each.expectDisk({ 'real/f': 'original' })
  })

  it('24: leaves a file alone whose folder was removed and is a link now', async () => {
    const each = (await newCase()).disk({ 'elsewhere/x': 'theirs' })
    each.record(5, 'd/f', 'original')
    symlinkSync('elsewhere', each.path('d'))
    expect(each.restore(5).skip).toEqual(['d/f'])
    expect(existsSync(each.path('elsewhere/f'))).toBe(false)
  })

  it.each([
    [26, 'gives the recorded mode with the content', 'f', 0o600, 0o640, 'changed', 0o640],
    [27, 'leaves a mode alone where only that differs', 'f', 0o600, 0o640, 'original', 0o600],
    [28, 'writes a read-only file and gives the recorded mode', 'f', 0o400, 0o444, 'changed', 0o444],
    [29, 'writes a read-only file and leaves it read-only where no mode is recorded', 'f', 0o444, undefined, 'changed', 0o444],
  ])('%i: %s', async (_number, _words, name, live, mode, content, expected) => {
    const each = (await newCase()).disk({ [name]: content })
    chmodSync(each.path(name), live)
    each.record(5, name, 'original', mode === undefined ? {} : { mode })
    each.restore(5)
    each.expectDisk({ [name]: 'original' })
    expect(lstatSync(each.path(name)).mode & 0o7777).toBe(expected)
  })

  it('gives the bits of the side file where no mode is recorded (section 3.2)', async () => {
    const each = (await newCase()).disk({ 'run.sh': 'T' })
    const record = each.record(1, 'run.sh', 'S')
    chmodSync(join(each.store.folder(), record.replace('.json', '.before')), 0o755)
    each.restore(1)
    expect(lstatSync(each.path('run.sh')).mode & 0o7777).toBe(0o755)
  })

  it('30, 31: leaves a live file above the limit alone, and restores one exactly at it', async () => {
    const each = (await newCase()).disk({ big: 'x'.repeat(65), edge: 'x'.repeat(64) })
    each.record(5, 'big', 'small')
    each.record(5, 'edge', 'small')
    expect(each.restore(5, { DSH_REWIND_MAX_FILE_BYTES: ' 64 ' })).toMatchObject({ skip: ['big'], restore: ['edge'] })
    expect(each.restore(5, { DSH_REWIND_MAX_FILE_BYTES: '0' }).restore).toEqual(['big'])
  })

  it('R52: compares text that lost bytes with the live file and never writes it', async () => {
    const each = (await newCase()).disk({ same: '', other: 'changed' })
    writeFileSync(each.path('same'), Buffer.from([0xd6, 0xd0, 0x0a]))
    const lost = Buffer.from([0xd6, 0xd0, 0x0a]).toString('utf8')
    for (const name of ['same', 'other']) each.store.text({ anchor: 5, call: name, file: each.path(name), before: lost, time: 1 })
    expect(each.restore(5)).toMatchObject({ unchanged: ['same'], skip: ['other'] })
    expect(readFileSync(each.path('same'))).toEqual(Buffer.from([0xd6, 0xd0, 0x0a]))
  })

  it('R59: touches nothing that another session recorded', async () => {
    const each = (await newCase()).disk({ mine: '2', theirs: '2' })
    each.record(5, 'mine', '1')
    each.store.bytes({ anchor: 5, call: 'c1001', file: each.path('theirs'), before: '1', time: 1 }, 'session-of-somebody')
    const before = snapshotTree(each.store.folder('session-of-somebody'))
    expect(each.restore(5).restore).toEqual(['mine'])
    each.expectDisk({ mine: '1', theirs: '2' })
    expect(snapshotTree(each.store.folder('session-of-somebody'))).toEqual(before)
  })

  it('never writes into the store, its sidecar, or the conversations, whatever a record names', async () => {
    const each = await newCase()
    const log = each.store.log(each.project, [{ seq: 5, text: 'hello', time: 1 }])
    const [inStore, inSidecar] = [each.store.put('5/x.before', 'kept'), join(each.folder, '.dsh', '.rewind-admin', 'rewind-snapshots', 'y')]
    for (const [index, file] of [log, inStore, inSidecar].entries()) each.store.bytes({ anchor: 5, call: `h${String(index)}`, file, before: 'evil', time: 1 })
    const before = readFileSync(log, 'utf8')
    each.restore(5)
    expect(readFileSync(log, 'utf8')).toBe(before)
    expect(readFileSync(inStore, 'utf8')).toBe('kept')
    expect(existsSync(inSidecar)).toBe(false)
  })
})
