import { appendFileSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { addNulRun, cutAndSplice, cutLine, linesOf, spliceRecords } from '../../helpers/damage.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { setTime, writeStoreFile } from '../../helpers/store.js'
import { resolved } from '../fork/fork-context.js'
import { machine, now, run, twoEdits, type Scene } from './repair-context.js'

const mend = { apply: true, transcripts: true } as const

function old(made: Scene): Buffer {
  const trash = join(made.root, '.rewind-admin/trash')
  const kept = readdirSync(trash, { recursive: true, encoding: 'utf8' }).find((path) => path.endsWith('.jsonl'))
  return kept === undefined ? Buffer.alloc(0) : readFileSync(join(trash, kept))
}

describe('repair --transcripts', () => {
  it('takes NUL runs out and gives each record its line; every other byte, mode and time stay, the old one is in the trash (R73, R74)', async () => {
    const made = await twoEdits()
    const { root, store, agent } = made
    const [wanted, before] = [readFileSync(agent.transcript), resolved(store, agent.session)]
    addNulRun(root, agent.session, 3, 4096)
    spliceRecords(root, agent.session, 5)
    addNulRun(root, agent.session, 1, 10, { ownLine: true })
    const damagedBytes = readFileSync(agent.transcript)
    const { mode, mtimeMs } = statSync(agent.transcript)
    const report = await run(store, mend)
    expect(report).toMatchObject({ exitCode: 0, applied: true, errors: [], kept: [] })
    expect(report.plan.map(({ action, reason }) => [action, reason])).toEqual([['mend', '4106 NUL bytes in 2 runs are left out; 1 line that holds more than one record is split; every other byte stays']])
    expect(readFileSync(agent.transcript).equals(wanted)).toBe(true)
    expect([statSync(agent.transcript).mode, Math.floor(statSync(agent.transcript).mtimeMs)]).toEqual([mode, Math.floor(mtimeMs)])
    expect(old(made).equals(damagedBytes)).toBe(true)
    expect(resolved(store, agent.session)).toEqual(before)
  })

  it('parts a cut record from the whole one behind it and loses neither (R74)', async () => {
    const made = await twoEdits()
    const { root, store, agent } = made
    const lines = linesOf(root, agent.session)
    cutAndSplice(root, agent.session, 4, 100)
    await run(store, mend)
    expect(linesOf(root, agent.session)).toEqual(lines.map((line, index) => (index === 4 ? line.subarray(0, 100) : line)))
    const [damage] = store.read(store.inventory().sessions[0] ?? { id: '', members: [] }, { now }).findings
    expect(damage?.id).toBe('damaged-line')
  })

  it('without --apply writes nothing', async () => {
    const made = await twoEdits()
    spliceRecords(made.root, made.agent.session, 5)
    const before = snapshotTree(made.root)
    expect(await run(made.store, { transcripts: true })).toMatchObject({ applied: false, exitCode: 0, summary: { mendable: 1, done: 0 }, next: 'rewind-admin repair --transcripts --apply' })
    sameTree(made.root, before)
  })

  it('leaves a good transcript and one that cannot be mended alone', async () => {
    const made = await twoEdits()
    expect(await run(made.store, mend)).toMatchObject({ exitCode: 0, plan: [] })
    cutLine(made.root, made.agent.session, 2, 40)
    const before = snapshotTree(join(made.root, 'projects'))
    expect(await run(made.store, mend)).toMatchObject({ exitCode: 0, plan: [] })
    sameTree(join(made.root, 'projects'), before)
  })

  it('leaves a live session alone, and one that is not quiet yet', async () => {
    const made = await twoEdits()
    const { root, store, agent } = made
    spliceRecords(root, agent.session, 5)
    writeStoreFile(root, 'sessions/4242.json', JSON.stringify({ pid: 4242, sessionId: agent.session }))
    const before = readFileSync(agent.transcript)
    const live = await run(store, mend, { machine: { ...machine, processExists: (pid) => pid === 4242 } })
    expect([live.plan, live.kept.map(({ session }) => session)]).toEqual([[], [agent.session]])
    setTime(agent.transcript, now - 1000)
    const fresh = await run(store, mend)
    expect([fresh.plan, fresh.kept[0]?.reason]).toEqual([[], expect.stringContaining('a short while ago')])
    expect(readFileSync(agent.transcript)).toEqual(before)
    expect(await run(store, { ...mend, quietMs: 500 })).toMatchObject({ summary: { done: 1 } })
  })

  it('puts nothing in place of a transcript that was written to since it was read', async () => {
    const made = await twoEdits()
    const { root, store, agent } = made
    spliceRecords(root, agent.session, 5)
    const before = readFileSync(agent.transcript)
    // The registry is asked a last time after the plan was made, just before the new file is.
    let looks = 0
    const live: typeof store.live = (...args) => {
      looks += 1
      if (looks === 2) appendFileSync(agent.transcript, '{"type":"later"}\n')
      return store.live(...args)
    }
    const report = await run({ ...store, live }, mend)
    expect([report.plan, report.kept.map(({ reason }) => reason)]).toEqual([[], [expect.stringContaining('changed since the plan was made')]])
    expect(readFileSync(agent.transcript)).toEqual(Buffer.concat([before, Buffer.from('{"type":"later"}\n')]))
  })
})
