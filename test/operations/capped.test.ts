import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/formats/format.js'
import { planCap } from '../../src/operations/cap.js'
import { cliIn, now, type Cli, type Envelope } from '../cli/world.js'
import { DshStore, ageAll, dshSession } from '../helpers/dsh.js'
import { openDshRewind } from '../../src/formats/dsh-rewind/index.js'
import { openPiCandyUndo } from '../../src/formats/pi-candy-undo/index.js'
import { uuidOf } from '../helpers/identity.js'
import { PiAgent, piPlaces } from '../helpers/pi.js'
import { extractQwen } from '../helpers/qwen-corpus.js'
import { openQwen, qwenName, QwenSession, qwenRoot } from '../helpers/qwen.js'
import { openStore } from '../helpers/removal.js'
import { H, S1, emptyRoot, setTime, snap, userLine, writeBackup, writeTranscript } from '../helpers/store.js'
import { temporaryFolder } from '../helpers/temp.js'
import { machine } from './repair/repair-context.js'

const old = '2026-11-20T00:00:00.000Z'
const name = (version: number): string => qwenName('/home/u/notes/a.md', version)

/** Four prompts, each of which found another version of one file; cap 1 leaves the newest. */
async function qwen(): Promise<{ root: string; session: QwenSession; cli: Cli }> {
  const root = await qwenRoot()
  const session = new QwenSession({ root, id: S1 })
  for (const version of [1, 2, 3, 4]) {
    session.turn(version, 'go on', { 'a.md': name(version) })
    session.backup(name(version), `text ${String(version)}`, { mtime: old })
  }
  session.save({ mtime: old })
  setTime(join(root, 'file-history', S1), old)
  return { root, session, cli: cliIn(dirname(root)) }
}

async function claude(): Promise<{ root: string; cli: Cli }> {
  const root = await emptyRoot()
  const ids = ['m1', 'm2', 'm3', 'm4'].map(uuidOf)
  writeTranscript(root, '-p', S1, ids.flatMap((id, index) => [userLine(id, { parent: ids[index - 1] ?? null }), snap(id, { 'a.txt': `${H}@v${String(index + 1)}` })]), { mtime: old })
  for (const version of [1, 2, 3, 4]) writeBackup(root, S1, `${H}@v${String(version)}`, `text ${String(version)}`, { mtime: old })
  return { root, cli: cliIn(dirname(root)) }
}

function named(report: Envelope, id: string): number {
  return report.findings.filter((found) => found.id === id).length
}

describe('what a cap below the agent’s own removed', () => {
  it.each([['qwen-code', qwen, 3], ['claude-code', claude, 2]] as const)('%s: is pruned for verify and nothing for repair; the newest checkpoint stays restorable', async (_, build, removed) => {
    const { root, cli } = await build()
    const transcript = readdirSync(root, { recursive: true, encoding: 'utf8' }).find((path) => path.endsWith(`${S1}.jsonl`)) ?? ''
    const bytes = readFileSync(join(root, transcript))
    expect(await cli.json('cap', '--max', '1', '--apply')).toMatchObject({ exitCode: 0, summary: { backups: removed } })
    const report = await cli.json('verify', '--seal')
    expect([named(report, 'pruned-backup'), named(report, 'missing-backup'), report.exitCode]).toEqual([removed, 0, 0])
    expect(await cli.json('verify', '--quick')).toMatchObject({ exitCode: 0 })
    expect(await cli.json('repair')).toMatchObject({ exitCode: 0, plan: [], findings: [] })
    expect(((await cli.json('show', S1)).checkpoints as { restorable: boolean }[]).map(({ restorable }) => restorable).at(-1)).toBe(true)
    expect((await cli.json('cap', '--max', '1', '--apply')).plan).toEqual([])
    expect(readFileSync(join(root, transcript))).toEqual(bytes)
  })

  it('is a loss again after the trash gave it back; and what was not capped is one at once', async () => {
    const { root, cli } = await qwen()
    const { runId } = await cli.json('cap', '--max', '2', '--apply')
    rmSync(join(root, 'file-history', S1, name(4)))
    expect(named(await cli.json('verify'), 'missing-backup')).toBe(1)
    writeFileSync(join(root, 'file-history', S1, name(4)), 'text 4')
    await cli.json('trash', 'restore', String(runId))
    expect(await cli.json('verify')).toMatchObject({ exitCode: 0 })
    rmSync(join(root, 'file-history', S1, name(1)))
    expect(named(await cli.json('verify'), 'missing-backup')).toBe(1)
  })

  it('is a loss when the agent used the name anew afterwards (names are reused)', async () => {
    const { root, session, cli } = await qwen()
    await cli.json('cap', '--max', '1', '--apply')
    session.turn(5, 'again', { 'a.md': { backupFileName: name(2), version: 2, backupTime: new Date(now + 1000).toISOString() } })
    session.save({ mtime: old })
    const report = await cli.json('verify')
    expect([named(report, 'missing-backup'), named(report, 'pruned-backup')]).toEqual([1, 2])
    expect(report.exitCode).toBe(1)
    session.backup(name(2), 'anew')
    expect((await cli.json('verify')).exitCode).toBe(0)
    expect(readdirSync(join(root, 'file-history', S1)).sort()).toEqual([name(2), name(4)].sort())
  })

  it('is not noted where the cap kept it, because the session was written to meanwhile', async () => {
    const { root, cli } = await qwen()
    setTime(join(root, 'file-history', S1, name(1)), now)
    expect(await cli.json('cap', '--max', '1', '--apply')).toMatchObject({ plan: [], kept: [{ session: S1 }] })
    rmSync(join(root, 'file-history', S1, name(1)))
    expect(named(await cli.json('verify'), 'missing-backup')).toBe(1)
  })

  it('corpus: of 100 checkpoints 20 stay, verify finds nothing wrong, and every one of them can be gone back to', async () => {
    const { root, home } = await extractQwen('cap')
    const cli = cliIn(home)
    const [id = ''] = readdirSync(join(root, 'file-history'))
    await cli.json('cap', '--max', '20', '--now', '2026-12-24', '--apply')
    const report = await cli.json('verify', '--now', '2026-12-24')
    expect([named(report, 'missing-backup'), named(report, 'backups-missing'), report.exitCode]).toEqual([0, 0, 0])
    const { checkpoints } = await cli.json('show', id)
    expect((checkpoints as { restorable: boolean }[]).slice(-20).every(({ restorable }) => restorable)).toBe(true)
  })

  it('qwen-code: what a kept checkpoint falls back to stays, although only a dropped one names it', async () => {
    const { root, session, cli } = await qwen()
    // A file of the first prompt that later snapshots do not list, as after a rewind of the agent's own over ACP.
    session.lines.splice(0, session.lines.length)
    session.continueAt(null)
    session.turn(1, 'one', { 'a.md': name(1), 'b.md': qwenName('/home/u/notes/b.md', 1) })
    session.turn(2, 'two', { 'a.md': name(2) })
    session.backup(qwenName('/home/u/notes/b.md', 1), 'b', { mtime: old })
    session.save({ mtime: old })
    await cli.json('cap', '--max', '1', '--apply')
    expect(readdirSync(join(root, 'file-history', S1)).sort()).toEqual([qwenName('/home/u/notes/b.md', 1), name(2), name(3), name(4)].sort())
  })
})

describe('what is spared stays, with what names it', () => {
  const planned = (store: Store, spared: readonly string[]): string[] => {
    const plan = planCap(store, { max: 1, quietPeriodMs: 0, spared: () => new Set(spared) }, { now, machine }).plan
    return plan.actions.flatMap((action) => (action.kind === 'replace' ? [] : action.items.map(({ path }) => path.slice(path.lastIndexOf('/') + 1)))).sort()
  }

  it('claude-code', async () => {
    const { root } = await claude()
    expect(planned(openStore(root), [])).toEqual([`${H}@v2`, `${H}@v3`])
    expect(planned(openStore(root), [`${H}@v2`])).toEqual([`${H}@v3`])
  })

  it('qwen-code', async () => {
    const { root } = await qwen()
    expect(planned(openQwen(root), [])).toEqual([name(1), name(2), name(3)])
    expect(planned(openQwen(root), [name(1)])).toEqual([name(2), name(3)])
  })

  it('pi-candy-undo: the snapshot that names it stays in the state, or the plugin would collect it', async () => {
    const home = await temporaryFolder()
    const places = piPlaces(home)
    const agent = new PiAgent(places, 'spared')
    agent.prompt('one')
    agent.edit('a', 'A')
    const made = ['two', 'three', 'four'].map((text, index) => {
      agent.prompt(text)
      agent.edit('a', `A${String(index)}`)
      return readdirSync(join(places.root, agent.session, 'backups')).sort().at(-1) ?? ''
    })
    agent.age(old)
    const store = openPiCandyUndo(places.root, { home, env: {}, platform: 'linux' })
    const [second = ''] = made
    expect(planned(store, [])).toContain(second)
    expect(planned(store, [second])).not.toContain(second)
    const plan = planCap(store, { max: 1, quietPeriodMs: 0, spared: () => new Set([second]) }, { now, machine }).plan
    const [rewrite] = plan.actions.flatMap((action) => (action.kind === 'replace' ? [Buffer.from(action.content ?? '', 'base64').toString()] : []))
    expect(rewrite).toContain(second)
  })

  it('dsh-rewind: its whole group stays', async () => {
    const home = await temporaryFolder()
    const dsh = new DshStore(join(home, '.dsh'))
    dsh.markers()
    const change = { file: '/p/a', time: Date.parse(old) }
    const records = [1, 7, 13].map((anchor) => dsh.bytes({ ...change, anchor, call: `call${String(anchor)}`, before: `text ${String(anchor)}` }))
    ageAll(dsh.folder(), Date.parse(old))
    const store = openDshRewind(dsh.root, { home, env: {}, platform: 'linux' })
    expect(store.inventory().sessions.map(({ id }) => id)).toEqual([dshSession])
    expect(planned(store, [])).toEqual(['1', '7'])
    expect(planned(store, [(records[0] ?? '').replace(/\.json$/, '.before')])).toEqual(['7'])
  })
})
