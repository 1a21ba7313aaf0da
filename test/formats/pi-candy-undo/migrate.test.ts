import { lstatSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { agentsView, cliIn, type Cli } from '../../cli/world.js'
import { PiAgent, piPlaces, type PiPlaces } from '../../helpers/pi.js'
import { temporaryFolder } from '../../helpers/temp.js'

const old = '2026-11-29T09:00:00.000Z'

/** A session with a relative key, an absolute one in the project, and one in a neighbour whose name begins alike. */
async function scene(): Promise<PiPlaces & { readonly cli: Cli; readonly agent: PiAgent }> {
  const places = piPlaces(await temporaryFolder())
  const agent = new PiAgent(places, 'moving')
  for (const name of ['a.txt', 'b.txt', 'c.txt']) agent.byHand(name, `${name} 0\n`)
  agent.prompt('one')
  for (const name of ['a.txt', 'b.txt', 'c.txt']) agent.edit(name, `${name} 1\n`)
  agent.prompt('two')
  const text = readFileSync(agent.statePath, 'utf8')
  writeFileSync(agent.statePath, text.replaceAll('"b.txt"', `"${places.project}/b.txt"`).replaceAll('"c.txt"', `"${places.project}2/c.txt"`))
  agent.age(old)
  return { ...places, agent, cli: cliIn(places.home) }
}

it('R100: a project that moved takes its absolute keys along by whole names; a neighbour, times, backups and the conversation stay, and a second run has nothing to do', async () => {
  const { cli, agent, root, project, home } = await scene()
  const target = join(home, 'new place')
  renameSync(project, target)
  const before = agentsView(root)
  const conversation = readFileSync(agent.conversationPath)
  const preview = await cli.json('migrate', '--move', project, target)
  expect(preview).toMatchObject({ exitCode: 0, applied: false, summary: { migrations: 1, matched: 1 }, findings: [{ id: 'conversation-left' }] })
  expect(agentsView(root)).toEqual(before)
  expect(await cli.json('migrate', '--move', project, target, '--apply')).toMatchObject({ exitCode: 0, errors: [], kept: [], plan: preview.plan })
  const state = JSON.parse(readFileSync(agent.statePath, 'utf8')) as { trackedFiles: string[]; snapshots: { files: Record<string, unknown> }[]; originals: Record<string, unknown> }
  const keys = ['a.txt', `${target}/b.txt`, `${project}2/c.txt`]
  expect(state.trackedFiles).toEqual(keys)
  expect(Object.keys(state.originals)).toEqual(keys)
  expect(Object.keys(state.snapshots.at(-1)?.files ?? {})).toEqual(keys)
  expect(lstatSync(agent.statePath).mtimeMs).toBe(Date.parse(old))
  expect(readFileSync(agent.conversationPath)).toEqual(conversation)
  const after = agentsView(root)
  for (const [path, node] of Object.entries(before)) if (path.includes('/backups')) expect(after[path], path).toEqual(node)
  expect(await cli.json('migrate', '--move', project, target, '--apply')).toMatchObject({ exitCode: 0, plan: [] })
  expect((await cli('migrate', '--move', '/elsewhere', '/nowhere')).exitCode).toBe(1)
})

it('two files that would be one keep the session as it is, and say which', async () => {
  const { cli, agent, root, project } = await scene()
  const before = agentsView(root)
  writeFileSync(agent.statePath, readFileSync(agent.statePath, 'utf8').replaceAll(`${project}2/c.txt`, `${project}2/b.txt`))
  agent.age(old)
  expect((await cli.json('migrate', '--move', project, `${project}2`, '--apply')).kept).toEqual([{ session: agent.session, reason: `it tracks ${project}/b.txt and ${project}2/b.txt, which would be one file` }])
  expect(Object.keys(agentsView(root))).toEqual(Object.keys(before))
})
