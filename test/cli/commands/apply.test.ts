import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyRoot, S1, S2, userLine } from '../../helpers/store.js'
import { agentsView, cliIn, hashA, manyOld, notes, type Notes, young } from '../world.js'

describe('--plan-out and apply', () => {
  async function planned(): Promise<Notes & { readonly file: string }> {
    const store = await notes()
    expect((await store.cli('expire', '--plan-out', 'plan.json', '--root', store.root)).exitCode).toBe(0)
    return { ...store, file: join(store.home, 'plan.json') }
  }

  it('carry out the plan that was looked at, with a tombstone of the command that made it', async () => {
    const { root, cli, file } = await planned()
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const report = await cli.json('apply', 'plan.json')
    expect(report).toMatchObject({ command: 'apply', exitCode: 0, applied: true, plan: [{ session: S2, action: 'trash-session' }] })
    expect(existsSync(join(root, `projects/-home-u-notes/${S2}.jsonl`))).toBe(false)
    expect(await cli.json('status', S2, '--root', root)).toMatchObject({ exitCode: 1, summary: { state: 'expired' } })
  })

  it('keep a session that grew since the plan was made', async () => {
    const { root, cli } = await planned()
    const transcript = join(root, `projects/-home-u-notes/${S2}.jsonl`)
    appendFileSync(transcript, `${userLine('late', { session: S2 })}\n`)
    const { plan, kept } = await cli.json('apply', 'plan.json')
    expect(plan).toEqual([])
    expect(kept).toContainEqual({ session: S2, reason: expect.any(String) as string })
    expect(existsSync(transcript)).toBe(true)
    expect(existsSync(join(root, `file-history/${S2}/${hashA}@v1`))).toBe(true)
  })

  it('a second time find nothing left to do, without an error', async () => {
    const { cli } = await planned()
    await cli('apply', 'plan.json')
    expect(await cli.json('apply', 'plan.json')).toMatchObject({ exitCode: 0, errors: [] })
  })

  it('refuse a plan that was edited to take something else, and change nothing', async () => {
    const { root, cli, file } = await planned()
    const before = agentsView(root)
    for (const [from, to] of [[`${S2}.jsonl`, `${S1}.jsonl`], [`projects/-home-u-notes/${S2}.jsonl`, 'settings.json'], [`projects/-home-u-notes/${S2}.jsonl`, '../notes']] as const) {
      const text = readFileSync(file, 'utf8')
      writeFileSync(join(cli.home, 'edited.json'), text.replaceAll(`"path": "${from}"`, `"path": "${to}"`).replaceAll(from, to))
      const { exitCode } = await cli('apply', 'edited.json')
      expect([to, [2, 3].includes(exitCode)]).toEqual([to, true])
      expect(agentsView(root)).toEqual(before)
    }
  })

  it('of a file that is none, or is no plan, end with 2', async () => {
    const { home, cli } = await notes()
    writeFileSync(join(home, 'plan.json'), '{"actions": []}')
    for (const name of ['plan.json', 'none.json']) expect([name, (await cli('apply', name)).exitCode]).toEqual([name, 2])
  })

  it('keep the brake: a plan above it ends with 4 unless a flag names the limit', async () => {
    const root = await emptyRoot()
    const cli = cliIn(dirname(root))
    manyOld(root, 51)
    young(root)
    expect((await cli('expire', '--plan-out', 'plan.json', '--root', root)).exitCode).toBe(4)
    expect((await cli('apply', 'plan.json')).exitCode).toBe(4)
    expect((await cli.json('apply', 'plan.json', '--max-delete', '51')).plan).toHaveLength(51)
  })

  it('of several stores end with 2 before anything is done', async () => {
    const [one, two] = [await notes(), await notes()]
    const { exitCode, stderr } = await one.cli('expire', '--apply', '--plan-out', 'plan.json', '--root', one.root, '--root', two.root)
    expect([exitCode, stderr.includes('--plan-out holds the plan of one store')]).toEqual([2, true])
    expect(existsSync(join(one.root, `projects/-home-u-notes/${S2}.jsonl`))).toBe(true)
  })
})
