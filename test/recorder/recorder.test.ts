import { chmodSync, linkSync, mkdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { planCap } from '../../src/operations/cap.js'
import { carryOut } from '../../src/operations/removal/carry-out.js'
import { dayMs, machineWith } from '../helpers/removal.js'
import { startRecording } from '../helpers/recording.js'
import { temporaryFolder } from '../helpers/temp.js'

describe('what is recorded', () => {
  it('lets the first turn be undone: by its message, and by the baseline', async () => {
    const recording = await startRecording()
    await recording.recorder.beginTurn('m1')
    await recording.edit('new.txt', 'A')
    recording.byHand('old.txt', 'before')
    await recording.edit('old.txt', 'after')
    recording.rewind('m1')
    expect([recording.read('new.txt'), recording.read('old.txt')]).toEqual([null, 'before'])
    recording.byHand('new.txt', 'A')
    recording.byHand('old.txt', 'after')
    recording.rewind('baseline')
    expect([recording.read('new.txt'), recording.read('old.txt')]).toEqual([null, 'before'])
  })

  it.each([
    ['binary', 'b.bin', Buffer.from([0, 255, 254, 10, 13, 0, 195, 40])],
    ['empty', 'empty', Buffer.alloc(0)],
    ['of a composed and a decomposed name', 'n\u00e9-ne\u0301.txt', Buffer.from('é')],
    ['with a space at both ends', ' pad ', Buffer.from('x')],
    ['named __proto__', '__proto__', Buffer.from('p')],
    ['named constructor', 'constructor', Buffer.from('c')],
    ['with a backslash in its name', 'a\\b.txt', Buffer.from('w')],
    ['beginning with two dots', '..hidden', Buffer.from('h')],
    ['deep in folders that are made with it', 'x/y/z/deep.txt', Buffer.from('d')],
    ['larger than one block of reading', 'large.bin', Buffer.alloc(700_001, 'rewind')],
  ])('gives a file back exactly: %s', async (_what, path, bytes) => {
    const recording = await startRecording()
    recording.byHand(path, bytes)
    chmodSync(join(recording.project, path), 0o755)
    await recording.recorder.beginTurn('m1')
    await recording.edit(path, 'changed')
    await recording.recorder.beginTurn('m2')
    await recording.edit(path, null)
    await recording.recorder.beginTurn('m3')
    recording.rewind('m2')
    expect(recording.read(path)).toBe('changed')
    recording.rewind('m1')
    expect(readFileSync(join(recording.project, path)).equals(bytes)).toBe(true)
    expect(statSync(join(recording.project, path)).mode & 0o777).toBe(0o755)
    recording.rewind('m3')
    expect(recording.read(path)).toBeNull()
  })

  it('tracks a file outside of the working folder by its absolute path', async () => {
    const recording = await startRecording()
    const outside = join(await temporaryFolder(), 'o.txt')
    recording.byHand(outside, 'before')
    await recording.recorder.beginTurn('m1')
    expect(await recording.recorder.beforeEdit(outside)).toEqual({ outcome: 'recorded', path: outside })
    recording.byHand(outside, 'after')
    expect(recording.state.trackedFiles).toEqual([outside])
    recording.rewind('m1')
    expect(recording.read(outside)).toBe('before')
  })

  it('gives one file one key, however its folders are spelled (weakness 18)', async () => {
    const recording = await startRecording()
    mkdirSync(join(recording.project, 'real'))
    symlinkSync('real', join(recording.project, 'alias'))
    recording.byHand('real/f', 'A')
    await recording.recorder.beginTurn('m1')
    for (const spelled of ['real/f', 'alias/f', './real/../alias/f', join(recording.project, 'alias/f')]) await recording.recorder.beforeEdit(spelled)
    expect(recording.state.trackedFiles).toEqual(['real/f'])
    expect(recording.backups).toHaveLength(1)
  })

  it('keeps the folder that the session began in when a later call comes from another one', async () => {
    const recording = await startRecording()
    mkdirSync(join(recording.project, 'sub'))
    const later = recording.open({ cwd: join(recording.project, 'sub') })
    await later.beginTurn('m1')
    await recording.edit('a.txt', 'A', later)
    expect(recording.state.trackedFiles).toEqual(['a.txt'])
    expect(recording.store().reading.project).toBe(recording.project)
  })

  it('takes a change of the mode alone as a change, and gives it back (weakness 10)', async () => {
    const recording = await startRecording()
    recording.byHand('run.sh', '#!')
    chmodSync(join(recording.project, 'run.sh'), 0o644)
    await recording.recorder.beginTurn('m1')
    await recording.recorder.beforeEdit('run.sh')
    chmodSync(join(recording.project, 'run.sh'), 0o700)
    expect((await recording.recorder.beginTurn('m2')).changed).toEqual(['run.sh'])
    chmodSync(join(recording.project, 'run.sh'), 0o644)
    recording.rewind('m2')
    expect(statSync(join(recording.project, 'run.sh')).mode & 0o777).toBe(0o700)
  })

  it('sees a change of the same size although the old time was put back (weakness 9)', async () => {
    const recording = await startRecording()
    recording.byHand('f', 'old text')
    const { atime, mtime } = statSync(join(recording.project, 'f'))
    await recording.recorder.beginTurn('m1')
    await recording.recorder.beforeEdit('f')
    recording.byHand('f', 'new text')
    utimesSync(join(recording.project, 'f'), atime, mtime)
    await recording.recorder.beginTurn('m2')
    recording.byHand('f', 'else')
    recording.rewind('m2')
    expect(recording.read('f')).toBe('new text')
  })

  it('repeats the record of an unchanged file word for word and makes no second backup', async () => {
    const recording = await startRecording({ everyTurn: true })
    await recording.recorder.beginTurn('m1')
    recording.byHand('f', 'A')
    await recording.edit('f', 'B')
    await recording.recorder.beginTurn('m2')
    await recording.recorder.beginTurn('m3')
    const [, , second, third] = recording.state.snapshots
    expect(third?.files.get('f')).toEqual(second?.files.get('f'))
    expect(second?.key === 'm2' && third?.key === 'm3').toBe(true)
    expect(recording.backups).toHaveLength(2)
  })

  it('does not give an absent file a new record each turn (weakness 33)', async () => {
    const recording = await startRecording({ everyTurn: true })
    await recording.recorder.beginTurn('m1')
    await recording.recorder.beforeEdit('never.txt')
    for (const message of ['m2', 'm3', 'm4']) await recording.recorder.beginTurn(message)
    expect(recording.state.snapshots.at(-1)?.files.get('never.txt')).toEqual(recording.state.originals.get('never.txt'))
  })

  it('empties the stack of undone rewinds at a prompt, as the plugin does', async () => {
    const recording = await startRecording()
    await recording.recorder.beginTurn('m1')
    await recording.edit('f', 'A')
    const { state } = recording
    writeFileSync(recording.statePath, JSON.stringify({ ...state.from, redo: [{ type: 'code', restoreKey: 'baseline', oldLeafId: null, createdAt: '2026-11-01T09:00:00.000Z' }] }))
    expect(recording.state.redo).toHaveLength(1)
    await recording.recorder.beginTurn('m2')
    expect(recording.state.redo).toEqual([])
  })
})

describe('what is left out', () => {
  it('links and files with several names are not tracked, and are counted', async () => {
    const recording = await startRecording()
    recording.byHand('target', 'T')
    symlinkSync('target', join(recording.project, 'link'))
    linkSync(join(recording.project, 'target'), join(recording.project, 'second'))
    expect(await recording.recorder.beforeEdit('link')).toEqual({ outcome: 'left-out', path: 'link', reason: 'it was a symbolic link' })
    expect(await recording.recorder.beforeEdit('second')).toEqual({ outcome: 'left-out', path: 'second', reason: 'it had several names (hard links)' })
    expect(recording.state.trackedFiles).toEqual([])
    expect(recording.state.from?.recorder).toMatchObject({ leftOut: 2 })
    expect(recording.backups).toEqual([])
  })

  it('a tracked file that became a link is a gap: a rewind to it leaves the path alone', async () => {
    const recording = await startRecording()
    recording.byHand('f', 'A')
    await recording.recorder.beginTurn('m1')
    await recording.recorder.beforeEdit('f')
    recording.byHand('f', null)
    symlinkSync('elsewhere', join(recording.project, 'f'))
    expect((await recording.recorder.beginTurn('m2')).gaps).toEqual(['f'])
    recording.byHand('f', null)
    recording.byHand('f', 'later')
    recording.rewind('m2')
    expect(recording.read('f')).toBe('later')
    recording.rewind('m1')
    expect(recording.read('f')).toBe('A')
  })

  it.each([
    ['node_modules/p/i.js', 'excluded'],
    ['packages/a/node_modules/p/i.js', 'excluded'],
    ['.git/config', 'excluded'],
    ['dist/out.js', 'excluded'],
    ['src/dist/kept.js', 'recorded'],
    ['.env', 'excluded'],
    ['sub/.env.local', 'excluded'],
    ['yarn.lock', 'excluded'],
    ['package-lock.json', 'recorded'],
    ['src/a.ts', 'recorded'],
  ] as const)('by default %s is %s', async (path, outcome) => {
    const recording = await startRecording()
    recording.byHand(path, 'x')
    expect(await recording.recorder.beforeEdit(path)).toMatchObject({ outcome })
  })

  it('by patterns of the caller: the last one that matches decides, and ! takes back in', async () => {
    const recording = await startRecording({ exclude: ['*.tmp', '!keep.tmp', '!.env.example'] })
    const outcomes = []
    for (const path of ['a.tmp', 'keep.tmp', '.env.example', '.env']) {
      recording.byHand(path, 'x')
      outcomes.push((await recording.recorder.beforeEdit(path)).outcome)
    }
    expect(outcomes).toEqual(['excluded', 'recorded', 'recorded', 'excluded'])
  })

  it('nothing by default when the defaults are turned off', async () => {
    const recording = await startRecording({ excludeDefaults: false })
    recording.byHand('.env', 'x')
    expect(await recording.recorder.beforeEdit('.env')).toMatchObject({ outcome: 'recorded' })
  })

  it('the store itself', async () => {
    const recording = await startRecording()
    expect(await recording.recorder.beforeEdit(recording.statePath)).toMatchObject({ outcome: 'excluded' })
  })
})

describe('a file above the limit', () => {
  it('leaves a gap that nobody guesses across: small, large, small again', async () => {
    const recording = await startRecording({ maxFileBytes: 10 })
    recording.byHand('f', 'small')
    await recording.recorder.beginTurn('m1')
    await recording.edit('f', 'much larger than the limit')
    const second = await recording.recorder.beginTurn('m2')
    recording.byHand('f', 'tiny')
    await recording.recorder.beginTurn('m3')
    recording.byHand('f', 'now')
    expect(second.gaps).toEqual(['f'])
    recording.rewind('m2')
    expect(recording.read('f')).toBe('now')
    recording.rewind('m3')
    expect(recording.read('f')).toBe('tiny')
    recording.rewind('m1')
    expect(recording.read('f')).toBe('small')
  })

  it('is tracked with a gap for its original, so that what it becomes can be rewound', async () => {
    const recording = await startRecording({ maxFileBytes: 10 })
    recording.byHand('f', 'larger than ten bytes')
    await recording.recorder.beginTurn('m1')
    expect(await recording.recorder.beforeEdit('f')).toEqual({ outcome: 'gap', path: 'f', reason: 'it had 21 bytes, more than the limit of 10' })
    recording.byHand('f', 'short')
    await recording.recorder.beginTurn('m2')
    recording.byHand('f', 'other')
    recording.rewind('m1')
    expect(recording.read('f')).toBe('other')
    recording.rewind('m2')
    expect(recording.read('f')).toBe('short')
  })

  it('does not exist when the limit is 0; a file of exactly the limit is recorded', async () => {
    const without = await startRecording({ maxFileBytes: 0 })
    without.byHand('f', Buffer.alloc(9 * 1024 * 1024))
    expect(await without.recorder.beforeEdit('f')).toMatchObject({ outcome: 'recorded' })
    const exact = await startRecording({ maxFileBytes: 10 })
    exact.byHand('f', '0123456789')
    expect(await exact.recorder.beforeEdit('f')).toMatchObject({ outcome: 'recorded' })
  })

  it('is 8 MiB unless told otherwise', async () => {
    const recording = await startRecording()
    recording.byHand('f', Buffer.alloc(8 * 1024 * 1024 + 1))
    expect(await recording.recorder.beforeEdit('f')).toMatchObject({ outcome: 'gap' })
  })
})

describe('calls that overlap', () => {
  it('for one path make one backup, also from two recorders', async () => {
    const recording = await startRecording()
    recording.byHand('f', 'A')
    await recording.recorder.beginTurn('m1')
    const other = recording.open()
    const outcomes = await Promise.all([recording.recorder, other, recording.recorder, other].map(async (each) => (await each.beforeEdit('f')).outcome))
    expect(outcomes.filter((outcome) => outcome === 'recorded')).toHaveLength(1)
    expect(recording.backups).toHaveLength(1)
  })

  it('for many paths lose none', async () => {
    const recording = await startRecording()
    await recording.recorder.beginTurn('m1')
    const paths = Array.from({ length: 30 }, (_, index) => `f${String(index)}`)
    for (const path of paths) recording.byHand(path, path)
    const other = recording.open()
    await Promise.all(paths.map((path, index) => (index % 2 === 0 ? other : recording.recorder).beforeEdit(path)))
    expect([...recording.state.trackedFiles].sort()).toEqual([...paths].sort())
    expect(recording.backups).toHaveLength(30)
  })
})

describe('turns', () => {
  it('are begun once: the same message again makes nothing new', async () => {
    const recording = await startRecording()
    const first = await recording.recorder.beginTurn('m1')
    const again = await recording.open().beginTurn('m1')
    expect(again).toMatchObject({ snapshot: first.snapshot, own: true })
    expect(recording.state.snapshots).toHaveLength(2)
  })

  it('without an id of the message are named later, with a snapshot of their own or without', async () => {
    const recording = await startRecording()
    expect(await recording.recorder.nameTurn('early')).toBe(false)
    await recording.recorder.beginTurn(undefined, { text: 'first' })
    await recording.edit('f', 'A')
    expect(await recording.recorder.nameTurn('m1')).toBe(true)
    await recording.recorder.beginTurn('m2')
    await recording.recorder.beginTurn(undefined, { text: 'third' })
    await recording.open().nameTurn('m3')
    recording.byHand('f', 'X')
    recording.rewind('m3')
    expect(recording.read('f')).toBe('A')
    recording.rewind('m1')
    expect(recording.read('f')).toBeNull()
    const { store, ref } = recording.store()
    expect(store.messages(ref).map(({ id, text }) => [id, text])).toEqual([['m1', 'first'], ['m2', ''], ['m3', 'third']])
  })

  it('count on whatever the cap takes', async () => {
    const recording = await startRecording()
    for (let turn = 1; turn <= 6; turn += 1) {
      await recording.recorder.beginTurn(`m${String(turn)}`)
      await recording.edit('f', String(turn))
    }
    expect(recording.state.from?.snapshotSequence).toBe(7)
    await cap(recording, 3)
    expect(recording.state.snapshots).toHaveLength(3)
    expect(recording.state.from?.snapshotSequence).toBe(7)
    await recording.recorder.beginTurn('m7')
    expect(recording.state.from?.snapshotSequence).toBe(8)
    expect(recording.state.snapshots.at(-1)?.from?.sequence).toBe(8)
  })

  it('that the cap keeps give the same bytes after it, and originals stay', async () => {
    const recording = await startRecording()
    for (let turn = 1; turn <= 6; turn += 1) {
      await recording.recorder.beginTurn(`m${String(turn)}`)
      await recording.edit('f', `text ${String(turn)}`)
    }
    await cap(recording, 3)
    expect(recording.backups.length).toBe(2)
    recording.rewind('m6')
    expect(recording.read('f')).toBe('text 5')
    recording.rewind('baseline')
    expect(recording.read('f')).toBeNull()
  })
})

async function cap(recording: Awaited<ReturnType<typeof startRecording>>, max: number): Promise<void> {
  const { store } = recording.store()
  const now = Date.now() + dayMs
  const machine = machineWith()
  const removal = planCap(store, { max, quietPeriodMs: 3_600_000 }, { now, machine })
  const result = await carryOut(store, removal, { now, runId: '20261130T120000000Z-0a1b2c3d', machine })
  expect(result.errors).toEqual([])
}
