import { appendFileSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { NewerFormatError } from '../../src/model/errors.js'
import { FirstSeen } from '../../src/operations/first-seen.js'
import { appendTombstones, findTombstone, readTombstones, type Tombstone } from '../../src/operations/tombstones.js'
import { now, openStore, session, sidecarFile } from '../helpers/removal.js'
import { S1, S2, emptyRoot } from '../helpers/store.js'

function stone(id: string, runId = '20261130T120000000Z-aaaa'): Tombstone {
  return { session: id, bytes: 1, command: 'expire', runId, removedAt: '2026-11-30T12:00:00.000Z', reason: 'old' }
}

describe('the first-seen ledger', () => {
  it('R04: is private, holds one line a session, and forgets what is gone', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 3)
    session(root, '-p', S2, 3)
    const store = openStore(root)
    const { sessions } = store.inventory()
    FirstSeen.read(store).write(sessions, now, 'aa')
    const path = sidecarFile(root, 'first-seen.jsonl')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
    expect(readFileSync(path, 'utf8').split('\n')).toEqual([expect.stringContaining('schemaVersion'), `["${S1}",0,1]`, `["${S2}",0,1]`, ''])
    FirstSeen.read(store).write(sessions.slice(1), now, 'ab')
    expect(readFileSync(path, 'utf8')).not.toContain(S1)
    // Gone and back again is new.
    const [first] = sessions
    if (first === undefined) throw new Error('no session')
    expect(FirstSeen.read(store).seenAt(first, now)).toBe(now)
  })

  it('R113: of a newer version of ours is not touched', async () => {
    const root = await emptyRoot()
    mkdirSync(join(root, '.rewind-admin'))
    writeFileSync(sidecarFile(root, 'first-seen.jsonl'), '{"schemaVersion":2}\n')
    expect(() => FirstSeen.read(openStore(root))).toThrow(NewerFormatError)
  })

  it('that cannot be read gives everything a full period', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 3)
    const store = openStore(root)
    mkdirSync(sidecarFile(root, 'first-seen.jsonl'), { recursive: true })
    const ledger = FirstSeen.read(store)
    expect(ledger.findings.map(({ id }) => id)).toEqual(['sidecar-damaged'])
    const [ref] = store.inventory().sessions
    if (ref === undefined) throw new Error('no session')
    expect(ledger.seenAt(ref, now)).toBe(now)
  })
})

describe('tombstones', () => {
  it('R124: the newest one of a session is found by its id or a unique beginning of it', async () => {
    const store = openStore(await emptyRoot())
    expect(readTombstones(store)).toEqual([])
    appendTombstones(store, [stone(S1), stone(S2)])
    appendTombstones(store, [stone(S1, '20261201T120000000Z-bbbb')])
    expect(findTombstone(store, S1)?.runId).toBe('20261201T120000000Z-bbbb')
    expect(findTombstone(store, S2.slice(0, 3))?.session).toBe(S2)
    expect(findTombstone(store, '')).toBeUndefined()
    expect(statSync(sidecarFile(store.root, 'tombstones.jsonl')).mode & 0o777).toBe(0o600)
  })

  it('R125: half a line of a run that was killed costs that line only', async () => {
    const store = openStore(await emptyRoot())
    appendTombstones(store, [stone(S1)])
    appendFileSync(sidecarFile(store.root, 'tombstones.jsonl'), '{"session":"half')
    appendTombstones(store, [stone(S2)])
    expect(readTombstones(store).map((each) => each.session)).toEqual([S1, S2])
  })

  it('R55: a link in place of the file is not written through', async () => {
    const root = await emptyRoot()
    const store = openStore(root)
    appendTombstones(store, [])
    mkdirSync(join(root, '.rewind-admin'), { mode: 0o700 })
    const outside = join(dirname(root), 'outside')
    writeFileSync(outside, 'mine')
    symlinkSync(outside, sidecarFile(root, 'tombstones.jsonl'))
    expect(() => { appendTombstones(store, [stone(S1)]) }).toThrow()
    expect(readFileSync(outside, 'utf8')).toBe('mine')
  })
})
