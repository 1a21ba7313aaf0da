import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readLines } from '../../../src/fs/blocks.js'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import { TranscriptScan, type Head, type TranscriptProblem } from '../../../src/formats/claude-code/scan.js'
import { fold } from '../../../src/model/fold.js'
import type { History, HistoryEvent } from '../../../src/model/history.js'
import type { SessionReading } from '../../../src/model/session.js'
import { emptyRoot, S1, writeTranscript } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'

/** A time after everything that the tests write. */
export const now = Date.parse('2026-12-01T00:00:00.000Z')

export interface Scanned {
  readonly history: History
  readonly events: readonly HistoryEvent[]
  readonly problems: readonly TranscriptProblem[]
  /** `kind@offset` of each problem. */
  readonly found: readonly string[]
  /** Lines that carry a tool result, and all lines that are no history, as text. */
  readonly toolResults: readonly string[]
  readonly others: readonly string[]
  readonly head: Head
  readonly lines: number
  readonly past: number | undefined
  readonly future: number | undefined
}

/** Scans a transcript of these bytes, through a real file. */
export async function scan(content: Buffer | string): Promise<Scanned> {
  const file = join(await temporaryFolder(), 'transcript.jsonl')
  writeFileSync(file, content)
  return scanFile(file)
}

export function scanFile(file: string): Scanned {
  return scanWith((reader) => readLines(file, reader))
}

/** Scans bytes that are one block. */
export function scanBytes(bytes: Buffer): Scanned {
  return scanWith((reader) => {
    reader.lines(bytes, bytes.length, 0, true)
  })
}

function scanWith(feed: (reader: TranscriptScan) => void): Scanned {
  const events: HistoryEvent[] = []
  const problems: TranscriptProblem[] = []
  const toolResults: string[] = []
  const others: string[] = []
  const reader = new TranscriptScan(
    {
      history: (line) => {
        if (line.kind === 'event') events.push(line.event)
      },
      names: (names, place) => {
        if (names.length > 0) events.push({ kind: 'salvage', names, ...place })
      },
      problem: (problem) => problems.push(problem),
      toolResult: (line) => toolResults.push(line.toString('utf8')),
      otherLine: (line) => others.push(line.toString('utf8')),
    },
    0,
    now,
  )
  feed(reader)
  const found = problems.map(({ kind, offset }) => `${kind}@${String(offset)}`)
  const { past, future } = reader.newest
  return { history: fold(events), events, problems, found, toolResults, others, head: reader.head, lines: reader.lineCount, past, future }
}

/** Lines with their line feeds. */
export function text(...lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}

/** Reads a session of a store. */
export function read(root: string, options: { readonly session?: string; readonly evidence?: boolean; readonly now?: number } = {}): SessionReading {
  const store = openClaudeCode(root, { home: root, env: {}, platform: 'linux' })
  const ref = store.inventory().sessions.find(({ id }) => id === (options.session ?? S1))
  if (ref === undefined) throw new Error('no such session')
  return store.read(ref, { now: options.now ?? now, ...(options.evidence === undefined ? {} : { evidence: options.evidence }) })
}

/** A reading of one transcript with these lines. */
export async function reading(lines: readonly string[] | Buffer, evidence = false): Promise<SessionReading> {
  const root = await emptyRoot()
  writeTranscript(root, '-p', S1, lines)
  return read(root, { evidence })
}
