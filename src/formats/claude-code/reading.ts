import { join } from 'node:path'
import { NotRegularError, readLines } from '../../fs/blocks.js'
import { systemErrorCode } from '../../model/errors.js'
import type { EditEvidence } from '../../model/evidence.js'
import { isFields } from '../../model/fields.js'
import { finding, type Finding, type Severity } from '../../model/finding.js'
import { HistoryFold } from '../../model/fold.js'
import type { HistoryEvent } from '../../model/history.js'
import { membersOf, type ReadDelta, type ReadDeltas, type SessionEvidence, type SessionReading, type SessionRef } from '../../model/session.js'
import type { ReadOptions } from '../format.js'
import { readEdit } from './edits.js'
import type { HistoryLine, LinePlace } from './lines.js'
import { LineIds } from './line-ids.js'
import { TranscriptScan, type Head, type ParsedRecord, type ScanHandler, type TranscriptProblem } from './scan.js'

/** Problems of one kind that are reported one by one; the rest is counted. */
const problemsShown = 20
/** A cut last line is normal for this long after the last write (R75), in milliseconds. */
const tornIsNormal = 60_000
/** Snapshot lines that are no flood however few checkpoints there are, and lines per checkpoint that are one (R43). */
const floodLines = 1_000
const floodRatio = 50

/** What keeps everything of a session in use: something of it could not be read. */
const damagingKinds: ReadonlySet<TranscriptProblem['kind']> = new Set([
  'damaged-line',
  'spliced-line',
  'torn-tail',
  'oversized-line',
  'nul-run',
  'newer-format',
])

/** The end of the key `originalFile` with the beginning of a text, and the type of a creation. */
const originalNeedle = Buffer.from('File":"')
const createNeedle = Buffer.from('"create"')

/** Reads a session from its transcripts, all of them when the id stands in several project folders (R76). */
export function readSession(root: string, session: SessionRef, options: ReadOptions): SessionReading {
  return options.evidence === true ? new EvidenceReader(root, session, options).read() : new SessionReader(root, session, options).read()
}

class SessionReader implements ScanHandler {
  readonly #root: string
  readonly #session: SessionRef
  readonly #options: ReadOptions
  readonly #fold = new HistoryFold()
  readonly #findings: Finding[] = []
  readonly #paths: string[] = []
  readonly #deltas: ReadDeltas[] = []
  #lines = new Map<number, ReadDelta>()
  readonly #counts = new Map<string, number>()
  #problems: TranscriptProblem[] = []
  /** How many more there are of the kinds of which enough were remembered. */
  readonly #moreProblems = new Map<TranscriptProblem['kind'], number>()
  #damaged = false
  #busy = false
  #bytes = 0
  #historyBytes = 0
  #lastWritten: number | undefined
  #lastRecorded: number | undefined
  #future: number | undefined
  #head: Head = {}

  constructor(root: string, session: SessionRef, options: ReadOptions) {
    this.#root = root
    this.#session = session
    this.#options = options
  }

  read(): SessionReading {
    const folders: string[] = []
    for (const member of membersOf(this.#session, 'transcript')) {
      this.#paths.push(member.path)
      const head = this.#transcript(member.path, this.#paths.length - 1)
      if (head?.cwd !== undefined && !folders.includes(head.cwd)) folders.push(head.cwd)
    }
    const history = this.#fold.finish()
    for (const { kind, message, source, offset } of history.anomalies) this.#report(kind, message, source, offset)
    if (history.lines >= floodLines && history.lines > floodRatio * Math.max(1, history.checkpoints.length)) {
      const lines = history.lines.toString()
      this.#report('snapshot-flood', `${lines} snapshot lines for ${history.checkpoints.length.toString()} checkpoints`, 0, undefined)
    }
    this.#reportRest()
    const [project] = folders
    const evidence = this.evidence()
    return {
      id: this.#session.id,
      ...(project === undefined ? {} : { project }),
      folders,
      ...(this.#head.version === undefined ? {} : { clientVersion: this.#head.version }),
      ...(this.#head.entrypoint === undefined ? {} : { entrypoint: this.#head.entrypoint }),
      history,
      ...(this.#lastRecorded === undefined ? {} : { lastRecorded: this.#lastRecorded }),
      ...(this.#future === undefined ? {} : { future: this.#future }),
      ...(this.#lastWritten === undefined ? {} : { lastWritten: this.#lastWritten }),
      transcriptBytes: this.#bytes,
      ...(this.passesHistory ? {} : { historyBytes: this.#historyBytes }),
      findings: this.#findings,
      damaged: this.#damaged,
      busy: this.#busy,
      ...(evidence === undefined ? {} : { evidence }),
      ...(this.#options.deltas === true ? { deltas: this.#deltas } : {}),
    }
  }

  get passesHistory(): boolean {
    return this.#options.history === false
  }

  history({ event }: HistoryLine & { kind: 'event' }, _place: LinePlace, { value, length }: ParsedRecord): void {
    this.#fold.add(event)
    this.#historyBytes += length
    if (this.#options.deltas === true && event.kind === 'delta' && isFields(value)) this.#lines.set(event.offset, { event, backup: value.backup, length })
  }

  evidence(): SessionEvidence | undefined {
    return undefined
  }

  names(names: readonly string[], place: LinePlace): void {
    this.#fold.add({ kind: 'salvage', names, ...place })
  }

  problem(problem: TranscriptProblem): void {
    if (damagingKinds.has(problem.kind)) this.#damaged = true
    const { kind } = problem
    if (this.#problems.filter((other) => other.kind === kind).length < problemsShown) this.#problems.push(problem)
    else this.#moreProblems.set(kind, (this.#moreProblems.get(kind) ?? 0) + 1)
  }

  #transcript(path: string, source: number): Head | undefined {
    const scan = new TranscriptScan(this, source, this.#options.now)
    this.#problems = []
    this.#lines = new Map()
    try {
      const stamp = readLines(join(this.#root, path), scan)
      this.#deltas[source] = { inode: stamp.inode, size: stamp.size, mtimeMs: stamp.mtimeMs, lines: this.#lines }
      this.#bytes += stamp.size
      this.#lastWritten = later(this.#lastWritten, stamp.mtimeMs)
      this.#lastRecorded = later(this.#lastRecorded, scan.newest.past)
      this.#future = later(this.#future, scan.newest.future)
      this.#head = { ...scan.head, ...this.#head }
      if (stamp.changed) {
        this.#busy = true
        this.#report('busy', 'the transcript changed while it was read; the session is left alone in this run', source, undefined)
      }
      for (const problem of this.#problems) this.#takeProblem(problem, source, stamp.mtimeMs)
      for (const [kind, more] of this.#moreProblems) this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + more)
      this.#moreProblems.clear()
      return scan.head
    } catch (error) {
      this.#damaged = true
      if (error instanceof NotRegularError) this.#report('not-regular', `${error.found} stands where a transcript should be`, source, undefined)
      else if (systemErrorCode(error) === 'ENOENT') this.#busy = true
      else this.#report('unreadable', `the transcript cannot be read (${systemErrorCode(error) ?? String(error)})`, source, undefined)
      return undefined
    }
  }

  #takeProblem(problem: TranscriptProblem, source: number, mtimeMs: number): void {
    const normal = problem.kind === 'torn-tail' && this.#options.now - mtimeMs < tornIsNormal
    this.#report(problem.kind, problem.message, source, problem.offset, normal ? 'info' : undefined)
  }

  #report(id: Finding['id'], message: string, source: number, offset: number | undefined, severity?: Severity): void {
    const count = (this.#counts.get(id) ?? 0) + 1
    this.#counts.set(id, count)
    if (count > problemsShown) return
    this.#findings.push(
      finding(id, message, {
        session: this.#session.id,
        path: this.#paths[source] ?? this.#session.id,
        ...(offset === undefined ? {} : { offset }),
        ...(severity === undefined ? {} : { severity }),
      }),
    )
  }

  #reportRest(): void {
    for (const [index, known] of this.#findings.entries()) {
      const count = this.#counts.get(known.id) ?? 0
      const isLast = !this.#findings.slice(index + 1).some((other) => other.id === known.id)
      if (count > problemsShown && isLast) {
        this.#findings[index] = { ...known, message: `${known.message}; and ${(count - problemsShown).toString()} more of this kind` }
      }
    }
  }
}

/** Also gathers what proves the content of backups: that takes a look at every line. */
class EvidenceReader extends SessionReader {
  readonly #ids: LineIds
  readonly #edits: EditEvidence[] = []
  readonly #makers = new Map<string, string>()
  readonly #checkpoints = new Set<string>()

  constructor(root: string, session: SessionRef, options: ReadOptions) {
    super(root, session, options)
    this.#ids = new LineIds(session.id)
  }

  override history(line: HistoryLine & { kind: 'event' }, place: LinePlace, record: ParsedRecord): void {
    super.history(line, place, record)
    if (line.maker !== undefined) this.#noteMaker(line.event, line.maker)
    if (line.event.kind === 'snapshot') this.#checkpoints.add(line.event.checkpoint)
  }

  toolResult(line: Buffer, place: LinePlace): void {
    if (!mayProve(line)) return
    const edit = readEdit(line, place)
    if (edit !== undefined) this.#edits.push(edit)
  }

  otherLine(line: Buffer): void {
    this.#ids.add(line)
  }

  override evidence(): SessionEvidence {
    const withoutMessage = [...this.#checkpoints].filter((id) => !this.#ids.messages.has(id))
    return { edits: this.#edits, makers: this.#makers, withoutMessage, foreignLines: this.#ids.foreign }
  }

  /** Which message made version 1 of a path: the outer id of the line that names it first (section 9). */
  #noteMaker(event: HistoryEvent, maker: string): void {
    if (event.kind === 'delta') {
      if (event.record.version === 1 && !this.#makers.has(event.path)) this.#makers.set(event.path, maker)
    } else if (event.kind === 'snapshot') {
      for (const [path, record] of event.files) {
        if (record.version === 1 && !this.#makers.has(path)) this.#makers.set(path, maker)
      }
    }
  }
}

/** False for most tool results: only one with the text before the edit, or of a creation, proves anything. */
function mayProve(line: Buffer): boolean {
  return line.includes(originalNeedle) || line.includes(createNeedle)
}

function later(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b
  return b === undefined ? a : Math.max(a, b)
}
