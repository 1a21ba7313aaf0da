import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Generation, SimulatedAgent } from './helpers/agent.js'
import { extractStore } from './helpers/corpus.js'
import { openStore, sessionOf } from './operations/fork/fork-context.js'
import { life, rewindTo, type Life } from './operations/rewinding.js'
import { rewind } from '../src/operations/rewind.js'

/*
 * The example tables of the tracking boundary, on Claude Code stores. There a message names a record for every tracked file,
 * also for an unchanged one, and what a message does not name is version 1 (formats/claude-code section 4). The plugin that
 * the tables were written for stores nothing for an unchanged file and looks toward later messages instead: `plugin` says
 * what that gives where it is another state. Limitation 2, case 3 (files above a size cap) has no counterpart: Claude Code
 * backs up files of any size.
 */

/** What `f.txt` holds, `null` when it does not exist. */
type Content = string | null

interface Row {
  /** What happens in the turn of this message. */
  readonly turn?: (agent: SimulatedAgent) => void
  /** What the file is after a rewind to it. */
  readonly rewound: Content
  /** What it was when the message began, where a rewind cannot give that back. */
  readonly began?: Content
  /** What the plugin's rule gives, where it differs from Claude Code's. */
  readonly plugin?: Content
}

interface Table {
  readonly title: string
  /** The same history in the corpus, written and rewound by the real client. */
  readonly scenario: string
  readonly before: Content
  readonly rows: readonly Row[]
  /** After the last message, unclaimed by any. */
  readonly after?: (agent: SimulatedAgent) => void
  readonly disk: Content
}

const file = 'f.txt'
const creates = (agent: SimulatedAgent): void => { agent.write(file, 'A') }
const byHand = (text: string) => (agent: SimulatedAgent): void => { agent.external(file, text) }

const tables: readonly Table[] = [
  {
    title: 'the example',
    scenario: 'table-main',
    before: null,
    rows: [
      { turn: creates, rewound: null },
      { rewound: 'A' },
      { rewound: 'A' },
      { turn: (agent) => { agent.edit(file, 'A', 'B') }, rewound: 'A' },
      { turn: byHand('C'), rewound: 'B' },
    ],
    disk: 'C',
  },
  {
    title: 'limitation 1: history that never entered tracking',
    scenario: 'table-lim1',
    before: 'v0',
    rows: [
      { rewound: 'v2', began: 'v0' },
      { turn: byHand('v1'), rewound: 'v2', began: 'v0' },
      { turn: byHand('v2'), rewound: 'v2', began: 'v1' },
      { turn: (agent) => { agent.edit(file, 'v2', 'v3') }, rewound: 'v2' },
      { rewound: 'v3' },
    ],
    disk: 'v3',
  },
  {
    title: 'limitation 2, case 1: the change belongs to no message yet',
    scenario: 'table-case1',
    before: null,
    rows: [{ turn: creates, rewound: null }, { rewound: 'A' }, { rewound: 'A', plugin: 'X' }],
    after: byHand('X'),
    disk: 'X',
  },
  {
    title: 'limitation 2, case 2: what is backed up is the state after the change',
    scenario: 'table-case2',
    before: null,
    rows: [
      { turn: creates, rewound: null },
      { rewound: 'A' },
      { rewound: 'A', plugin: 'B' },
      { turn: byHand('B'), rewound: 'A', plugin: 'B' },
      { rewound: 'B' },
    ],
    disk: 'B',
  },
  {
    title: 'limitation 2, case 2 with a command that deletes the file',
    scenario: 'table-case2del',
    before: null,
    rows: [
      { turn: creates, rewound: null },
      { rewound: 'A' },
      { rewound: 'A', plugin: null },
      { turn: (agent) => { agent.remove(file) }, rewound: 'A', plugin: null },
      { rewound: null },
    ],
    disk: null,
  },
]

const generations: readonly Generation[] = ['G1', 'G2', 'G3', 'G4']

async function played(table: Table, generation: Generation): Promise<Life> {
  const made = await life(generation)
  const { agent } = made
  if (table.before !== null) agent.external(file, table.before)
  for (const [index, { turn }] of table.rows.entries()) {
    agent.prompt(`message ${String(index + 1)}`)
    turn?.(agent)
  }
  agent.end()
  table.after?.(agent)
  return made
}

function contentIn(project: string): Content {
  const path = join(project, file)
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd() : null
}

const shown = (content: Content): string => content ?? 'no file'

describe.each(tables)('$title', (table) => {
  const rows = table.rows.map((row, index) => ({ ...row, message: index + 1 }))

  describe.each(rows)('a rewind to message $message', ({ message, rewound, began, plugin }) => {
    const notTheStart = began === undefined ? '' : `, although it began with ${shown(began)}`
    const notThePlugin = plugin === undefined ? '' : `, where the plugin's rule gives ${shown(plugin)}`
    it.each(generations)(`%s: gives ${shown(rewound)}${notTheStart}${notThePlugin}`, async (generation) => {
      const made = await played(table, generation)
      expect(contentIn(made.project)).toBe(table.disk)
      const report = await rewindTo(made, made.agent.checkpoints[message - 1] ?? '', { scope: 'code' })
      expect([report.exitCode, contentIn(made.project)]).toEqual([0, rewound])
      expect(report.summary.changes).toBe(rewound === table.disk ? 0 : 1)
    })
  })

  it.each(['2.0.64', '2.1.112', '2.1.332'])('is what the real client %s did', async (version) => {
    const { oracle } = await extractStore(version, table.scenario)
    const targets = (oracle?.targets ?? []).filter(({ outcome }) => outcome === 'restored')
    expect(targets.length).toBeGreaterThanOrEqual(table.rows.length - 1)
    for (const { session, message, prompt } of targets) {
      const row = table.rows[Number(/^m(\d)/.exec(prompt)?.[1]) - 1]
      const { root, tree, project } = await extractStore(version, table.scenario)
      const store = openStore(root)
      const context = { now: Date.parse('2026-12-24T12:00:00Z'), pid: process.pid, token: 'c0ffee', processExists: () => true, home: tree, windows: false }
      expect(contentIn(project)).toBe(table.disk)
      await rewind(store, sessionOf(store, session), message, { scope: 'code', apply: true, newId: session }, context)
      expect(contentIn(project), prompt.slice(0, 2)).toBe(row?.rewound)
    }
  })
})

describe('a file that nothing in the session handled', () => {
  it.each(generations)('%s: has no restorable changes at any message, and cannot be asked for', async (generation) => {
    const made = await life(generation)
    const { agent } = made
    const first = agent.prompt('look')
    agent.external(file, 'v1')
    agent.prompt('look again')
    agent.external(file, 'v2')
    agent.end()
    for (const message of agent.checkpoints) {
      expect(await rewindTo(made, message, { scope: 'code' })).toMatchObject({ exitCode: 0, summary: { changes: 0 }, extra: { changes: [] } })
    }
    await expect(rewindTo(made, first, { scope: 'code', files: [file] })).rejects.toThrow(/not tracked/)
    expect(contentIn(made.project)).toBe('v2')
  })
})

describe('a change that a later message claims', () => {
  it.each(generations)('%s: makes the state at that message rewindable, and what stood before stays so (unlike in the plugin)', async (generation) => {
    const made = await life(generation)
    const { agent } = made
    agent.prompt('1')
    creates(agent)
    agent.prompt('2')
    const third = agent.prompt('3')
    agent.external(file, 'X')
    const fourth = agent.prompt('4')
    agent.external(file, 'Y')
    agent.end()
    await rewindTo(made, fourth, { scope: 'code' })
    expect(contentIn(made.project)).toBe('X')
    await rewindTo(made, third, { scope: 'code' })
    expect(contentIn(made.project)).toBe('A')
  })
})
