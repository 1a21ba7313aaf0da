import { chmodSync, existsSync, lstatSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { NewerFormatError } from '../../src/model/errors.js'
import { lockStore } from '../../src/plan/sidecar.js'
import { thisMachine } from '../../src/fs/machine.js'
import { Recording, startRecording } from '../helpers/recording.js'
import { temporaryFolder } from '../helpers/temp.js'
import { snapshotTree } from '../helpers/tree.js'

/** The session with one file that was A and is B. */
async function begun(): Promise<Recording> {
  const recording = await startRecording()
  recording.byHand('f', 'A')
  await recording.recorder.beginTurn('m1')
  await recording.edit('f', 'B')
  await recording.recorder.beginTurn('m2')
  return recording
}

async function findingsOf(recording: Recording): Promise<readonly string[]> {
  return (await recording.findings()).map(({ id }) => id)
}

describe('the state', () => {
  it('is one that pi-candy-undo reads: version 1, its six fields, two spaces, a final newline, one baseline first', async () => {
    const recording = await begun()
    const text = readFileSync(recording.statePath, 'utf8')
    const value = JSON.parse(text) as Record<string, unknown>
    expect(text).toBe(`${JSON.stringify(value, undefined, 2)}\n`)
    expect(value).toMatchObject({ version: 1, sessionId: recording.session, trackedFiles: ['f'], redo: [] })
    expect((value.snapshots as { kind: string; key: string }[]).map(({ kind, key }) => [kind, key])).toEqual([['baseline', 'baseline'], ['operation', 'm1'], ['operation', 'm2']])
    // First 16 hex digits of the SHA-256 of "f" (formats/pi-candy-undo section 3).
    expect(recording.backups).toEqual(['252f10c83610ebca@v1', '252f10c83610ebca@v2'])
  })

  it('says of every backup what its bytes are', async () => {
    const { state } = await begun()
    // SHA-256 of "A".
    expect(state.originals.get('f')?.from).toEqual(expect.objectContaining({ sha256: '559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd', size: 1, mode: 0o644 }))
  })

  it('and the backups are for the owner only, as are the folders; a backup has the mode of its file', async () => {
    const recording = await startRecording()
    recording.byHand('f', 'A')
    chmodSync(join(recording.project, 'f'), 0o640)
    await recording.recorder.beforeEdit('f')
    const mode = (path: string): number => statSync(path).mode & 0o777
    expect([recording.root, join(recording.root, recording.session), join(recording.root, recording.session, 'backups')].map(mode)).toEqual([0o700, 0o700, 0o700])
    expect(mode(recording.statePath)).toBe(0o600)
    expect(mode(join(recording.root, recording.session, 'backups', '252f10c83610ebca@v1'))).toBe(0o640)
  })

  it('before the present one stays as .bak, byte for byte', async () => {
    const recording = await begun()
    const before = readFileSync(recording.statePath)
    await recording.edit('g', 'G')
    expect(readFileSync(`${recording.statePath}.bak`).equals(before)).toBe(true)
    expect(lstatSync(recording.statePath).nlink).toBe(1)
  })

  it('keeps fields of others at every level', async () => {
    const recording = await begun()
    const value = JSON.parse(readFileSync(recording.statePath, 'utf8')) as { snapshots: Record<string, unknown>[]; originals: Record<string, object>; recorder: object }
    writeFileSync(
      recording.statePath,
      JSON.stringify({
        ...value,
        theirs: [1],
        recorder: { ...value.recorder, later: true },
        snapshots: value.snapshots.map((each) => ({ ...each, note: 'n' })),
        originals: { f: { ...value.originals.f, tag: 't' } },
      }),
    )
    await recording.edit('g', 'G')
    await recording.recorder.beginTurn('m3')
    const after = JSON.parse(readFileSync(recording.statePath, 'utf8')) as typeof value & { theirs: unknown }
    expect(after.theirs).toEqual([1])
    expect(after.recorder).toMatchObject({ later: true })
    expect(after.snapshots.slice(0, 3).map(({ note }) => note)).toEqual(['n', 'n', 'n'])
    expect(after.originals.f).toMatchObject({ tag: 't' })
  })

  it('leaves no temporary file behind', async () => {
    const recording = await begun()
    await recording.recorder.endSession()
    expect(readdirSync(join(recording.root, recording.session)).sort()).toEqual(['backups', 'state.json', 'state.json.bak'])
  })

  it('with everything recorded verifies clean', async () => {
    const recording = await begun()
    expect(await findingsOf(recording)).toEqual([])
  })
})

describe('a state that cannot be used makes the session read-only, and nothing of it changes:', () => {
  it.each([
    ['cut off', (bytes: Buffer) => bytes.subarray(0, bytes.length - 40)],
    ['empty', () => Buffer.alloc(0)],
    ['of another version', (bytes: Buffer) => Buffer.from(bytes.toString().replace('"version": 1,\n  "sessionId"', '"version": 0,\n  "sessionId"'))],
    ['without a field', (bytes: Buffer) => Buffer.from(bytes.toString().replace('"redo"', '"undo"'))],
    ['of another session', (bytes: Buffer) => Buffer.from(bytes.toString().replace(/"sessionId": "[^"]+"/, '"sessionId": "other"'))],
  ])('%s', async (_what, damage) => {
    const recording = await begun()
    const damaged = damage(readFileSync(recording.statePath))
    expect(damaged.equals(readFileSync(recording.statePath))).toBe(false)
    writeFileSync(recording.statePath, damaged)
    const before = snapshotTree(join(recording.root, recording.session))
    recording.byHand('g', 'G')
    await expect(recording.recorder.beforeEdit('g')).rejects.toMatchObject({ code: 'LOCKED', hint: expect.stringContaining('rewind-admin') as string })
    await expect(recording.recorder.beginTurn('m3')).rejects.toMatchObject({ code: 'LOCKED' })
    await expect(recording.recorder.sessionStart()).rejects.toMatchObject({ code: 'LOCKED' })
    await expect(recording.recorder.endSession()).rejects.toMatchObject({ code: 'LOCKED' })
    expect(snapshotTree(join(recording.root, recording.session))).toEqual(before)
  })

  it('lost while its backups are there', async () => {
    const recording = await begun()
    rmSync(recording.statePath)
    expect(() => recording.open()).toThrow(/missing/)
    expect(existsSync(recording.statePath)).toBe(false)
    expect(recording.backups).toHaveLength(2)
  })

  it('newer', async () => {
    const recording = await begun()
    writeFileSync(recording.statePath, readFileSync(recording.statePath, 'utf8').replace('"version": 1,\n  "sessionId"', '"version": 2,\n  "sessionId"'))
    const before = snapshotTree(join(recording.root, recording.session))
    expect(() => recording.open()).toThrow(NewerFormatError)
    await expect(recording.recorder.beginTurn('m3')).rejects.toThrow(/version 2/)
    expect(snapshotTree(join(recording.root, recording.session))).toEqual(before)
  })

  it('and what was edited meanwhile is a gap once it is mended', async () => {
    const recording = await begun()
    const good = readFileSync(recording.statePath)
    writeFileSync(recording.statePath, '')
    recording.byHand('g', 'before')
    await expect(recording.recorder.beforeEdit('g')).rejects.toThrow()
    recording.byHand('g', 'after')
    writeFileSync(recording.statePath, good)
    expect(await recording.recorder.beforeEdit('g')).toMatchObject({ outcome: 'gap', path: 'g' })
    recording.rewind('m1')
    expect(recording.read('g')).toBe('after')
  })
})

describe('a leftover backup that has the name which comes next (weakness 7)', () => {
  it('with other bytes is not taken: the number above it is', async () => {
    const recording = await begun()
    writeFileSync(join(recording.root, recording.session, 'backups', '252f10c83610ebca@v3'), 'leftover')
    recording.byHand('f', 'C')
    await recording.recorder.beginTurn('m3')
    expect(recording.state.snapshots.at(-1)?.files.get('f')?.backupFileName).toBe('252f10c83610ebca@v4')
    recording.byHand('f', 'D')
    recording.rewind('m3')
    expect(recording.read('f')).toBe('C')
  })

  it('with the same bytes and mode is taken after it was compared', async () => {
    const recording = await begun()
    writeFileSync(join(recording.root, recording.session, 'backups', '252f10c83610ebca@v3'), 'C', { mode: 0o644 })
    recording.byHand('f', 'C')
    await recording.recorder.beginTurn('m3')
    expect(recording.state.snapshots.at(-1)?.files.get('f')?.backupFileName).toBe('252f10c83610ebca@v3')
    expect(recording.backups).toHaveLength(3)
  })

  it('that is a link is never followed, opened or replaced', async () => {
    const recording = await begun()
    symlinkSync(join(recording.project, 'f'), join(recording.root, recording.session, 'backups', '252f10c83610ebca@v3'))
    recording.byHand('f', 'C')
    await recording.recorder.beginTurn('m3')
    expect(recording.state.snapshots.at(-1)?.files.get('f')?.backupFileName).toBe('252f10c83610ebca@v4')
  })
})

describe('what cannot be recorded in time', () => {
  async function locked<T>(recording: Recording, act: () => Promise<T>): Promise<T> {
    const { store } = recording.store()
    const held = await lockStore(store, { pid: process.pid, host: 'test', command: 'test', now: Date.now(), token: 'c0ffee', waitMs: 0, processes: thisMachine() })
    try {
      return await act()
    } finally {
      held.release()
    }
  }

  it('a file that was edited while the store was locked is a gap, not the state after the edit', async () => {
    const recording = await begun()
    const hurried = recording.open({ waitMs: 20 })
    recording.byHand('g', 'before')
    await locked(recording, async () => {
      await expect(hurried.beforeEdit('g')).rejects.toMatchObject({ code: 'LOCKED' })
    })
    recording.byHand('g', 'after')
    expect(await hurried.beforeEdit('g')).toEqual({ outcome: 'gap', path: 'g', reason: 'it was edited before its state could be recorded' })
    recording.rewind('m2')
    expect(recording.read('g')).toBe('after')
    await hurried.beginTurn('m3')
    recording.byHand('g', 'later')
    recording.rewind('m3')
    expect(recording.read('g')).toBe('after')
    expect(await findingsOf(recording)).toEqual(['failed-backup'])
  })

  it('a message that began while the store was locked has no checkpoint, and verify says so', async () => {
    const recording = await begun()
    const hurried = recording.open({ waitMs: 20 })
    await locked(recording, () => expect(hurried.beginTurn('m3')).rejects.toMatchObject({ code: 'LOCKED' }))
    await hurried.beginTurn('m4')
    expect(() => recording.rewind('m3')).toThrow(/no checkpoint m3/)
    expect(await findingsOf(recording)).toEqual(['failed-backup'])
  })

  it('leaves no copy behind', async () => {
    const recording = await begun()
    recording.byHand('g', 'G')
    await locked(recording, () => expect(recording.open({ waitMs: 0 }).beforeEdit('g')).rejects.toThrow())
    expect(recording.backups).toHaveLength(2)
  })
})

describe('a backup that was changed', () => {
  it('is found by the digest of its record at first sight, without a seal, and a rewind does not write it', async () => {
    const recording = await begun()
    writeFileSync(join(recording.root, recording.session, 'backups', '252f10c83610ebca@v1'), 'x')
    expect(await findingsOf(recording)).toEqual(['contradicts-record'])
    const result = recording.rewind('m1')
    expect(result.failed).toHaveLength(1)
    expect(recording.read('f')).toBe('B')
  })
})

describe('where it cannot record', () => {
  it.each(['', '.', '..', 'a/b', 'a\0b', '.hidden'])('an id that is no name of a folder: %j', async (sessionId) => {
    const home = await temporaryFolder()
    expect(() => new Recording(home, { sessionId })).toThrow(expect.objectContaining({ code: 'USAGE' }) as Error)
  })

  it('a working folder that is not there', async () => {
    const recording = await startRecording()
    expect(() => recording.open({ cwd: join(recording.home, 'nowhere') })).toThrow(expect.objectContaining({ code: 'USAGE' }) as Error)
  })
})
