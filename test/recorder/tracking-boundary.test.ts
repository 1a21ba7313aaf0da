import { describe, expect, it } from 'vitest'
import { startRecording, type Recording } from '../helpers/recording.js'

/*
 * The example tables of the tracking boundary and of formats/pi-candy-undo section 14, for both settings of `everyTurn`. The
 * plugin that the first ones were written for stores nothing for an unchanged file and looks toward later messages: `plugin`
 * says what that gives where it is another state. A recorder repeats the record of an unchanged file, which costs no bytes, so
 * limitation 2 has its first two cases in neither setting; its third is a gap, which is left alone. What differs is seen in
 * the state: by default a message at which nothing had changed has no snapshot of its own.
 */

/** What `f` holds, `null` when it does not exist. */
type Content = string | null

interface Row {
  /** What happens in the turn of this message. */
  readonly turn?: (recording: Recording) => unknown
  /** What the file is after a rewind to it. */
  readonly rewound: Content
  /** What it was when the message began, where a rewind cannot give that back. */
  readonly began?: Content
  /** What the plugin's rule gives, where it differs. */
  readonly plugin?: Content
  /** True where the message has a snapshot of its own by default. */
  readonly own: boolean
}

interface Table {
  readonly title: string
  readonly before: Content
  readonly rows: readonly Row[]
  /** After the last message, unclaimed by any. */
  readonly after?: (recording: Recording) => unknown
  readonly disk: Content
  readonly limit?: number
}

const file = 'f'
const edit = (content: Content) => (recording: Recording) => recording.edit(file, content)
const byHand = (content: Content) => (recording: Recording) => {
  recording.byHand(file, content)
}
const both = (...acts: ((recording: Recording) => unknown)[]) => async (recording: Recording) => {
  for (const act of acts) await act(recording)
}

const tables: readonly Table[] = [
  {
    title: 'the example',
    before: null,
    rows: [
      { turn: edit('A'), rewound: null, own: true },
      { rewound: 'A', own: true },
      { rewound: 'A', own: false },
      { turn: edit('B'), rewound: 'A', own: false },
      { turn: byHand('C'), rewound: 'B', own: true },
    ],
    disk: 'C',
  },
  {
    title: 'limitation 1: history that never entered tracking',
    before: 'v0',
    rows: [
      { rewound: 'v2', began: 'v0', own: true },
      { turn: byHand('v1'), rewound: 'v2', began: 'v0', own: false },
      { turn: byHand('v2'), rewound: 'v2', began: 'v1', own: false },
      { turn: edit('v3'), rewound: 'v2', own: false },
      { rewound: 'v3', own: true },
    ],
    disk: 'v3',
  },
  {
    title: 'limitation 2, case 1: the change belongs to no message yet',
    before: null,
    rows: [
      { turn: edit('A'), rewound: null, own: true },
      { rewound: 'A', own: true },
      { rewound: 'A', plugin: 'X', own: false },
    ],
    after: byHand('X'),
    disk: 'X',
  },
  {
    title: 'limitation 2, case 2: what is backed up is the state after the change',
    before: null,
    rows: [
      { turn: edit('A'), rewound: null, own: true },
      { rewound: 'A', own: true },
      { rewound: 'A', plugin: 'B', own: false },
      { turn: byHand('B'), rewound: 'A', plugin: 'B', own: false },
      { rewound: 'B', own: true },
    ],
    disk: 'B',
  },
  {
    title: 'limitation 2, case 2 with a command that deletes the file',
    before: null,
    rows: [
      { turn: edit('A'), rewound: null, own: true },
      { rewound: 'A', own: true },
      { rewound: 'A', plugin: null, own: false },
      { turn: byHand(null), rewound: 'A', plugin: null, own: false },
      { rewound: null, own: true },
    ],
    disk: null,
  },
  {
    title: 'limitation 2, case 3: the file was above the limit when the message began, and is left alone',
    before: null,
    limit: 4,
    rows: [
      { turn: edit('A'), rewound: null, own: true },
      { turn: edit('large'), rewound: 'A', own: true },
      { turn: byHand('larger'), rewound: 'X', began: 'large', plugin: 'B', own: true },
      { turn: byHand('B'), rewound: 'X', began: 'larger', plugin: 'B', own: true },
      { turn: edit('X'), rewound: 'B', own: true },
    ],
    disk: 'X',
  },
  {
    title: 'h2: a hand edit after message 1',
    before: null,
    rows: [
      { turn: both(edit('A'), byHand('X')), rewound: null, own: true },
      { rewound: 'X', own: true },
      { rewound: 'X', own: false },
      { turn: edit('B'), rewound: 'X', own: false },
      { turn: byHand('C'), rewound: 'B', own: true },
    ],
    disk: 'C',
  },
  {
    title: 'h3: a hand edit after message 2',
    before: null,
    rows: [
      { turn: edit('A'), rewound: null, own: true },
      { turn: byHand('X'), rewound: 'A', own: true },
      { rewound: 'X', own: true },
      { turn: edit('B'), rewound: 'X', own: false },
      { turn: byHand('C'), rewound: 'B', own: true },
    ],
    disk: 'C',
  },
  {
    title: 'h6: a hand edit after message 5 is in no checkpoint',
    before: null,
    rows: [
      { turn: edit('A'), rewound: null, own: true },
      { rewound: 'A', own: true },
      { rewound: 'A', own: false },
      { turn: edit('B'), rewound: 'A', own: false },
      { turn: byHand('C'), rewound: 'B', own: true },
    ],
    after: byHand('X'),
    disk: 'X',
  },
  {
    title: 'h7: deleted after message 2, put back after message 3',
    before: null,
    rows: [
      { turn: edit('A'), rewound: null, own: true },
      { turn: byHand(null), rewound: 'A', own: true },
      { turn: byHand('A'), rewound: null, own: true },
      { turn: edit('B'), rewound: 'A', own: true },
      { turn: byHand('C'), rewound: 'B', own: true },
    ],
    disk: 'C',
  },
  {
    title: 'h9: made by a command, first tracked in message 4',
    before: null,
    rows: [
      { turn: byHand('A'), rewound: 'A', began: null, own: true },
      { rewound: 'A', own: false },
      { rewound: 'A', own: false },
      { turn: edit('B'), rewound: 'A', own: false },
      { turn: byHand('C'), rewound: 'B', own: true },
    ],
    disk: 'C',
  },
]

async function played(table: Table, everyTurn: boolean): Promise<{ recording: Recording; own: boolean[] }> {
  const recording = await startRecording({ everyTurn, ...(table.limit === undefined ? {} : { maxFileBytes: table.limit }) })
  if (table.before !== null) recording.byHand(file, table.before)
  const own: boolean[] = []
  for (const [index, { turn }] of table.rows.entries()) {
    own.push((await recording.recorder.beginTurn(`m${String(index + 1)}`)).own)
    await turn?.(recording)
  }
  table.after?.(recording)
  return { recording, own }
}

const shown = (content: Content): string => content ?? 'no file'

describe.each([false, true])('with everyTurn %s', (everyTurn) => {
  describe.each(tables)('$title', (table) => {
    it.each(table.rows.map((row, index) => ({ ...row, message: index + 1 })))('a rewind to message $message', async ({ message, rewound, began, plugin }) => {
      const { recording } = await played(table, everyTurn)
      expect(recording.read(file)).toBe(table.disk)
      const result = recording.rewind(`m${String(message)}`)
      const words = `${shown(rewound)}; began with ${shown(began ?? rewound)}; the plugin gives ${shown(plugin ?? rewound)}`
      expect([result.failed, recording.read(file)], words).toEqual([[], rewound])
    })

    it(everyTurn ? 'has a snapshot for every message' : 'has a snapshot only for messages at which something had changed', async () => {
      const { recording, own } = await played(table, everyTurn)
      expect(own).toEqual(table.rows.map((row) => everyTurn || row.own))
      expect(recording.state.snapshots).toHaveLength(1 + own.filter(Boolean).length)
    })
  })

  it('a file that nothing in the session handled has no restorable change at any message', async () => {
    const recording = await startRecording({ everyTurn })
    for (const [message, content] of [['m1', 'v1'], ['m2', 'v2'], ['m3', 'v3']] as const) {
      await recording.recorder.beginTurn(message)
      recording.byHand(file, content)
    }
    for (const message of ['m1', 'm2', 'm3', 'baseline']) expect(recording.rewind(message).changed).toEqual([])
    expect(recording.read(file)).toBe('v3')
  })
})

describe('what the default costs', () => {
  it('a reader that knows only the fields of the plugin finds no snapshot with the key of an unchanged message', async () => {
    const keys = async (everyTurn: boolean): Promise<string[]> => {
      const recording = await startRecording({ everyTurn })
      await recording.recorder.beginTurn('m1')
      await recording.edit(file, 'A')
      await recording.recorder.beginTurn('m2')
      await recording.recorder.beginTurn('m3')
      return recording.state.snapshots.map(({ key }) => key)
    }
    expect(await keys(false)).toEqual(['baseline', 'm1', 'm2'])
    expect(await keys(true)).toEqual(['baseline', 'm1', 'm2', 'm3'])
  })

  it('neither setting makes a backup for an unchanged file', async () => {
    for (const everyTurn of [false, true]) {
      const recording = await startRecording({ everyTurn })
      await recording.recorder.beginTurn('m1')
      await recording.edit(file, 'A')
      for (let turn = 2; turn < 9; turn += 1) await recording.recorder.beginTurn(`m${String(turn)}`)
      expect(recording.backups).toHaveLength(1)
    }
  })
})
