import { truncateSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import { probeFolder } from '../../../src/fs/probe.js'
import { Examiner } from '../../../src/operations/verify/examine.js'
import * as damage from '../../helpers/damage.js'
import { uuidOf } from '../../helpers/identity.js'
import { emptyRoot, H, S2, snap, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { check, found, now } from './verifying.js'

const ids = Array.from({ length: 130 }, (_, index) => uuidOf(`session ${String(index)}`))

/** A store with so many sessions that threads are worth it; every tenth has lost a backup, another one holds a large one. */
async function manySessions(): Promise<string> {
  const root = await emptyRoot()
  for (const [index, session] of ids.entries()) {
    writeTranscript(root, '-p', session, [userLine(S2, { session }), snap(S2, { '/p/a': `${H}@v1`, '/p/b': `${H}@v2` }, new Date(now - 1000 * (index + 2)).toISOString())])
    writeBackup(root, session, `${H}@v1`, `one ${String(index)}`)
    if (index % 10 !== 3) writeBackup(root, session, `${H}@v2`, `two ${String(index)}`)
  }
  truncateSync(damage.backupOf(root, ids[7] ?? '', `${H}@v2`), 9 << 20)
  return root
}

describe('threads', () => {
  test('two threads and none say the same, in the same order, and seal the same', async () => {
    const [one, two] = [await manySessions(), await manySessions()]
    const alone = await check(one, { seal: true })
    const together = await check(two, { seal: true }, { threads: 2 })
    expect(together.findings).toEqual(alone.findings)
    expect(together.summary).toEqual(alone.summary)
    expect(alone.summary).toMatchObject({ sessions: 130, backups: 247, digested: 247, errors: 13 })
    for (const session of [ids[7] ?? '', ids[8] ?? '']) damage.flipBit(two, session, `${H}@v2`)
    const changed = (await check(two, {}, { threads: 2 })).findings.filter(({ id }) => id === 'changed-after-seal').map(({ session }) => session)
    expect(changed.sort()).toEqual([ids[7], ids[8]].sort())
  })

  test('progress and --max-errors are those of one thread', async () => {
    const root = await manySessions()
    const seen: number[] = []
    const report = await check(root, { maxErrors: 2 }, { threads: 3, progress: (done) => seen.push(done) })
    const alone = await check(root, { maxErrors: 2 })
    expect([report.summary, found(report)]).toEqual([alone.summary, found(alone)])
    expect(seen).toEqual(Array.from({ length: Number(report.summary.sessions) }, (_, index) => index + 1))
  })
})

describe('a backup that is made while its session is looked at', () => {
  test.each([10, 9 << 20])('is not called missing, with %d bytes', async (size) => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S2, [userLine(S2), snap(S2, { '/p/a': `${H}@v1` })])
    const path = writeBackup(root, S2, `${H}@v2`, 'another')
    const store = openClaudeCode(root, { home: root, env: {}, platform: 'linux' })
    const [ref] = store.inventory().sessions
    if (ref === undefined) throw new Error('no session')
    const early = probeFolder({ path: dirname(path), digest: 'all' })
    truncateSync(writeBackup(root, S2, `${H}@v1`, 'made meanwhile'), size)
    const examiner = new Examiner(store, { now, quick: false, seal: false, sample: undefined, place: 0, project: undefined, live: new Set() })
    const { findings, counts } = examiner.examine(ref, early)
    expect(findings.filter(({ id }) => id === 'missing-backup')).toEqual([])
    expect(counts).toMatchObject({ backups: 2, digested: 2 })
  })
})
