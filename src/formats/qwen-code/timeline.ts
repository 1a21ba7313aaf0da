import { finding, type Finding } from '../../model/finding.js'
import { promptAbove, type ChainNode, type LoadedTranscript } from './chain.js'
import type { HistoryBuilder } from './history.js'
import { LoadedList, type ListedSnapshot } from './loaded-list.js'
import { parseRecord } from '../parse-record.js'
import type { RecordReader } from './record-reader.js'
import type { Place } from './scan.js'
import { readSnapshotRecord, type Snapshot } from './snapshots.js'

/** Snapshots that the agent keeps (formats/qwen-code section 6). */
export const snapshotCap = 100

/** The snapshots of one transcript: the list that the agent would load, and every mention of a backup. */
export class Timeline {
  readonly list = new LoadedList(snapshotCap)
  readonly #transcript: LoadedTranscript
  readonly #reader: RecordReader
  readonly #start: string | undefined
  readonly #builder: HistoryBuilder
  readonly #messages = new Map<string, string | undefined>()
  /** Places of snapshot records that cannot be parsed. */
  readonly broken: Place[] = []

  constructor(transcript: LoadedTranscript, reader: RecordReader, start: string | undefined, builder: HistoryBuilder) {
    this.#transcript = transcript
    this.#reader = reader
    this.#start = start
    this.#builder = builder
  }

  /** Feeds the records of the active chain to the list, in chain order; those beside it are mentions only. */
  read(): void {
    const { nodes, chain } = this.#transcript
    for (const id of chain) {
      const node = nodes.get(id)
      if (node?.kind === 'snapshot') this.#record(node, (snapshot) => { this.list.add(snapshot) })
    }
    const active = new Set(chain)
    for (const node of nodes.values()) if (node.kind === 'snapshot' && !active.has(node.id)) this.#record(node, () => undefined)
  }

  /** The user message that a snapshot was taken for, wherever in the file it was recorded first. */
  messageOf({ promptId, time }: Snapshot): string | undefined {
    return this.#messages.get(keyOf(promptId, time))
  }

  #record(node: ChainNode, take: (snapshot: ListedSnapshot) => void): void {
    for (const place of node.places) {
      const value = parseRecord(this.#reader.read(place))
      if (value === undefined) {
        this.broken.push(place)
        continue
      }
      const read = readSnapshotRecord(value, this.#start)
      if ('odd' in read) {
        this.#builder.odd(read.odd, place)
        continue
      }
      for (const [index, snapshot] of read.snapshots.entries()) {
        this.#builder.mention(snapshot, place)
        if (read.snapshots.length === 1) this.#noteMessage(node, snapshot)
        take({ ...snapshot, place, index })
      }
    }
  }

  #noteMessage(node: ChainNode, { promptId, time }: Snapshot): void {
    const key = keyOf(promptId, time)
    if (this.#messages.get(key) !== undefined) return
    const message = promptAbove(this.#transcript.nodes, node, true)
    if (message !== undefined) this.#messages.set(key, message)
  }
}

function keyOf(promptId: string, time: string | undefined): string {
  return `${promptId}\0${time ?? ''}`
}

/** Findings about the chain of a transcript. */
export function chainFindings({ gap, nodes, chain }: LoadedTranscript, session: string, path: string): Finding[] {
  if (gap === undefined) return []
  const lost = nodes.size - chain.length
  const message = `record ${gap.record} hangs off ${gap.parent}, which is not there; ${String(lost)} records before it are not reached by the agent`
  return [finding('broken-chain', message, { session, path, offset: gap.place.offset })]
}
