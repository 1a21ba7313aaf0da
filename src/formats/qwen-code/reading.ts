import { lstatSync } from 'node:fs'
import { NotRegularError } from '../../fs/blocks.js'
import { systemErrorCode } from '../../model/errors.js'
import { finding, type Finding } from '../../model/finding.js'
import type { SessionReading } from '../../model/session.js'
import type { Writable } from '../../model/writable.js'
import { loadTranscript, type LoadedTranscript } from './chain.js'
import { HistoryBuilder } from './history.js'
import { parseRecord } from '../parse-record.js'
import { RecordReader } from './record-reader.js'
import type { ScanProblem } from './scan.js'
import { readSnapshotRecord } from './snapshots.js'
import { chainFindings, Timeline } from './timeline.js'
import type { TranscriptFile } from './transcripts.js'

/** A cut last line is normal for this long after the last write (R75), in milliseconds. */
const tornIsNormal = 60_000
/** Problems of one kind that are reported one by one. */
const problemsShown = 20

/**
 * Reads a session as the agent loads it (formats/qwen-code section 4). Of several transcripts the first one is the session;
 * what the others name stays in use.
 */
export function readSession(id: string, files: readonly TranscriptFile[], baseFolder: string | undefined, now: number): SessionReading {
  const reader = new SessionReader(id, now)
  for (const [source, file] of files.entries()) reader.transcript(file, source, baseFolder)
  return reader.finish(baseFolder)
}

class SessionReader {
  readonly #id: string
  readonly #now: number
  readonly #findings: Finding[] = []
  readonly #builder = new HistoryBuilder()
  readonly #folders: string[] = []
  readonly #facts: Writable<Partial<Pick<SessionReading, 'clientVersion' | 'lastRecorded' | 'future' | 'lastWritten'>>> = {}
  readonly #paths: string[] = []
  #main: Timeline | undefined
  #bytes = 0
  #historyBytes = 0
  #damaged = false
  #busy = false
  #cut = false

  constructor(id: string, now: number) {
    this.#id = id
    this.#now = now
  }

  transcript(file: TranscriptFile, source: number, baseFolder: string | undefined): void {
    this.#paths.push(file.shown)
    try {
      const transcript = loadTranscript(file.path, source, this.#now)
      this.#note(transcript)
      this.#problems(transcript.problems, file.shown, transcript.stamp.mtimeMs)
      for (const name of transcript.names) this.#builder.pin(name)
      const reader = new RecordReader(file.path)
      try {
        if (this.#main === undefined) this.#readMain(transcript, reader, file, baseFolder)
        else this.#pinAll(transcript, reader)
      } finally {
        reader.close()
      }
      if (transcript.stamp.changed || lstatSync(file.path).size !== transcript.stamp.size) this.#isBusy(file.shown)
    } catch (error) {
      this.#unreadable(error, file.shown)
    }
  }

  finish(baseFolder: string | undefined): SessionReading {
    const main = this.#main
    const certain = !this.#damaged && !this.#cut
    const history = this.#builder.finish(main?.list.snapshots ?? [], main?.list.repeated ?? [], (snapshot) => main?.messageOf(snapshot), certain)
    for (const { kind, message, source, offset } of history.anomalies) this.#findings.push(finding(kind, message, { session: this.#id, path: this.#paths[source] ?? this.#id, offset }))
    const project = this.#folders[0] ?? baseFolder
    return {
      id: this.#id,
      ...(project === undefined ? {} : { project }),
      folders: this.#folders,
      ...this.#facts,
      history,
      transcriptBytes: this.#bytes,
      historyBytes: this.#historyBytes,
      findings: this.#findings,
      damaged: this.#damaged,
      busy: this.#busy,
    }
  }

  #readMain(transcript: LoadedTranscript, reader: RecordReader, { shown }: TranscriptFile, baseFolder: string | undefined): void {
    const timeline = new Timeline(transcript, reader, transcript.first?.cwd ?? baseFolder, this.#builder)
    this.#main = timeline
    timeline.read()
    const gap = chainFindings(transcript, this.#id, shown)
    if (gap.length > 0 || timeline.broken.length > 0) this.#damaged = true
    this.#findings.push(...gap)
    for (const { offset } of timeline.broken) this.#findings.push(finding('damaged-line', 'a snapshot record is not valid JSON', { session: this.#id, path: shown, offset }))
  }

  #pinAll(transcript: LoadedTranscript, reader: RecordReader): void {
    for (const { kind, places } of transcript.nodes.values()) {
      if (kind !== 'snapshot') continue
      for (const place of places) {
        const value = parseRecord(reader.read(place))
        const read = value === undefined ? undefined : readSnapshotRecord(value, undefined)
        if (read === undefined || 'odd' in read) continue
        for (const { files } of read.snapshots) for (const { name, unusable } of files.values()) if (name !== null && unusable === undefined) this.#builder.pin(name)
      }
    }
  }

  #note({ first, newest, future, stamp, nodes }: LoadedTranscript): void {
    if (first?.cwd !== undefined && !this.#folders.includes(first.cwd)) this.#folders.push(first.cwd)
    if (first?.version !== undefined) this.#facts.clientVersion ??= first.version
    this.#bytes += stamp.size
    for (const { kind, places } of nodes.values()) if (kind === 'snapshot') for (const { length } of places) this.#historyBytes += length
    this.#facts.lastWritten = Math.max(this.#facts.lastWritten ?? stamp.mtimeMs, stamp.mtimeMs)
    const [past, coming] = [timeOf(newest), timeOf(future)]
    if (past !== undefined) this.#facts.lastRecorded = Math.max(this.#facts.lastRecorded ?? past, past)
    if (coming !== undefined) this.#facts.future = Math.max(this.#facts.future ?? coming, coming)
  }

  #problems(problems: readonly ScanProblem[], path: string, mtimeMs: number): void {
    const counts = new Map<string, number>()
    for (const { kind, message, offset, loses } of problems) {
      if (loses) this.#damaged = true
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      if (count > problemsShown) continue
      const normal = kind === 'torn-tail' && this.#now - mtimeMs < tornIsNormal
      this.#findings.push(finding(kind, message, { session: this.#id, path, offset, ...(normal ? { severity: 'info' } : {}) }))
    }
    for (const [kind, count] of counts) {
      if (count <= problemsShown) continue
      const last = this.#findings.findLastIndex((found) => found.id === kind)
      const shown = this.#findings[last]
      if (shown !== undefined) this.#findings[last] = { ...shown, message: `${shown.message}; and ${String(count - problemsShown)} more of this kind` }
    }
  }

  #isBusy(path: string): void {
    this.#busy = true
    this.#findings.push(finding('busy', 'the transcript changed while it was read; the session is left alone in this run', { session: this.#id, path }))
  }

  #unreadable(error: unknown, path: string): void {
    this.#damaged = true
    const at = { session: this.#id, path }
    if (error instanceof NotRegularError) this.#findings.push(finding('not-regular', `${error.found} stands where a transcript should be`, at))
    else if (systemErrorCode(error) === 'ENOENT' || systemErrorCode(error) === 'LOCKED') this.#busy = true
    else this.#findings.push(finding('unreadable', `the transcript cannot be read (${systemErrorCode(error) ?? String(error)})`, at))
  }
}

function timeOf(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? '')
  return Number.isNaN(time) ? undefined : time
}
