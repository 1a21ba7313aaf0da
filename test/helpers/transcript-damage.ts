import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readdirSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { snap, userLine } from './store.js'

/*
 * Damage to the transcript of a good store, one function each. Line numbers count from 0. A transcript keeps its mode
 * and mtime, so that the age of the session does not change with it.
 */

const lineFeed = Buffer.from('\n')

/** Path of the one transcript of a session. */
export function transcriptOf(root: string, session: string): string {
  const projects = join(root, 'projects')
  const found = readdirSync(projects).map((slug) => join(projects, slug, `${session}.jsonl`)).filter((path) => existsSync(path))
  const [path] = found
  if (path === undefined || found.length > 1) throw new Error(`${String(found.length)} transcripts of ${session} below ${root}`)
  return path
}

/** The lines of a transcript as bytes, without their line feeds. */
export function linesOf(root: string, session: string): Buffer[] {
  return splitLines(readFileSync(transcriptOf(root, session)))
}

/** Byte offset at which a line of the transcript starts. */
export function offsetOfLine(root: string, session: string, line: number): number {
  return linesOf(root, session).slice(0, line).reduce((sum, each) => sum + each.length + 1, 0)
}

/** Index of the first line for which the parsed record fits. */
export function findLine(root: string, session: string, fits: (record: Record<string, unknown>) => boolean): number {
  const index = linesOf(root, session).findIndex((line) => fits(JSON.parse(line.toString('utf8')) as Record<string, unknown>))
  if (index < 0) throw new Error(`no such line in the transcript of ${session}`)
  return index
}

function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = []
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(0x0a, start)
    lines.push(bytes.subarray(start, end < 0 ? bytes.length : end))
    start = end < 0 ? bytes.length : end + 1
  }
  return lines
}

/** Does something to a file and sets its times back. */
export function keepingTimes(path: string, act: () => void): void {
  const { atime, mtime } = statSync(path)
  act()
  utimesSync(path, atime, mtime)
}

function changeBytes(root: string, session: string, change: (bytes: Buffer) => Buffer): void {
  const path = transcriptOf(root, session)
  keepingTimes(path, () => {
    writeFileSync(path, change(readFileSync(path)))
  })
}

function changeLines(root: string, session: string, change: (lines: Buffer[]) => Buffer[]): void {
  changeBytes(root, session, (bytes) => Buffer.concat(change(splitLines(bytes)).flatMap((line) => [line, lineFeed])))
}

function changeText(root: string, session: string, pattern: RegExp | string, replacement: string): void {
  changeBytes(root, session, (bytes) => {
    const before = bytes.toString('latin1')
    const after = before.replaceAll(pattern, () => Buffer.from(replacement).toString('latin1'))
    if (after === before) throw new Error(`nothing to replace in the transcript of ${session}`)
    return Buffer.from(after, 'latin1')
  })
}

function lineAt(lines: readonly Buffer[], index: number): Buffer {
  const line = lines[index]
  if (line === undefined) throw new Error(`the transcript has no line ${String(index)}`)
  return line
}

/** Appends lines; the mtime stays. */
export function appendLines(root: string, session: string, ...lines: readonly (string | Buffer)[]): void {
  changeBytes(root, session, (bytes) => Buffer.concat([bytes, ...lines.flatMap((line) => [Buffer.from(line), lineFeed])]))
}

// Records

/** Makes every record that names one backup name something else: any text, or `null`. */
export function renameBackupInRecord(root: string, session: string, from: string, to: string | null): void {
  changeText(root, session, `"backupFileName":${JSON.stringify(from)}`, `"backupFileName":${JSON.stringify(to)}`)
}

/** Restates a checkpoint with what another one, an older one for "back in time", holds in its snapshot line. */
export function duplicateCheckpoint(root: string, session: string, checkpoint: string, like: string): void {
  const line = linesOf(root, session)[findLine(root, session, (record) => snapshotId(record) === like)] ?? Buffer.alloc(0)
  appendLines(root, session, line.toString('utf8').replaceAll(like, checkpoint))
}

function snapshotId(record: Record<string, unknown>): unknown {
  return record.type === 'file-history-snapshot' ? (record.snapshot as Record<string, unknown>).messageId : undefined
}

/** Repeats the last snapshot line `count` times, as an update (R43). */
export function flood(root: string, session: string, count: number): void {
  const last = linesOf(root, session).findLast((line) => line.includes('"type":"file-history-snapshot"'))
  if (last === undefined) throw new Error(`${session} has no snapshot to repeat`)
  const update = last.toString('utf8').replace('"isSnapshotUpdate":false', '"isSnapshotUpdate":true')
  const block = Buffer.from(`${update}\n`.repeat(Math.min(count, 1000)))
  const path = transcriptOf(root, session)
  keepingTimes(path, () => {
    for (let left = count; left > 0; left -= 1000) {
      appendFileSync(path, left >= 1000 ? block : block.subarray(0, (block.length / Math.min(count, 1000)) * left))
    }
  })
}

/** A history line of a type that nobody knows yet, naming a backup. */
export function unknownHistoryLine(root: string, session: string, name: string): void {
  appendLines(root, session, JSON.stringify({ type: 'file-history-pack', messageId: 'none', members: [{ backupFileName: name }] }))
}

/** Lines of a client newer than any we know. */
export function newerClientVersion(root: string, session: string, version = '9.0.1'): void {
  changeText(root, session, /"version":"\d+\.\d+\.\d+"/g, `"version":"${version}"`)
}

/** A checkpoint whose user message is not in the transcript. */
export function dropMessageOfCheckpoint(root: string, session: string, checkpoint: string): void {
  changeLines(root, session, (lines) => {
    const kept = lines.filter((line) => !(line.includes(`"uuid":"${checkpoint}"`) && line.includes('"type":"user"')))
    if (kept.length === lines.length) throw new Error(`no user message ${checkpoint}`)
    return kept
  })
}

export function snapshotWithoutMessage(root: string, session: string, checkpoint: string): void {
  appendLines(root, session, snap(checkpoint))
}

export function futureTimestamp(root: string, session: string, time: string): void {
  appendLines(root, session, userLine('ffffffff-ffff-4fff-8fff-ffffffffffff', { session, time }))
}

export function swapLines(root: string, session: string, a: number, b: number): void {
  changeLines(root, session, (lines) => {
    const result = [...lines]
    result[a] = lineAt(lines, b)
    result[b] = lineAt(lines, a)
    return result
  })
}

// Bytes of the transcript

/** A run of NUL bytes before a line: on a line of its own, or in front of the line's bytes (R73). */
export function addNulRun(root: string, session: string, line: number, length: number, options: { readonly ownLine?: boolean } = {}): void {
  const run = Buffer.alloc(length)
  changeLines(root, session, (lines) => {
    const inserted = options.ownLine === true ? [run, lineAt(lines, line)] : [Buffer.concat([run, lineAt(lines, line)])]
    return [...lines.slice(0, line), ...inserted, ...lines.slice(line + 1)]
  })
}

/** Two good records on one line (R74). */
export function spliceRecords(root: string, session: string, line: number): void {
  cutAndSplice(root, session, line, lineAt(linesOf(root, session), line).length)
}

/** A record cut after some bytes, the next one right behind it on the same line (R74). */
export function cutAndSplice(root: string, session: string, line: number, keep: number): void {
  changeLines(root, session, (lines) => {
    const joined = Buffer.concat([lineAt(lines, line).subarray(0, keep), lineAt(lines, line + 1)])
    return [...lines.slice(0, line), joined, ...lines.slice(line + 2)]
  })
}

/** A record cut after some bytes, with its line feed (R72). */
export function cutLine(root: string, session: string, line: number, keep: number): void {
  changeLines(root, session, (lines) => lines.with(line, lineAt(lines, line).subarray(0, keep)))
}

/** Takes bytes away from the end: 1 leaves a good last line without line feed, more cut it (R75). */
export function cutTail(root: string, session: string, bytes: number): void {
  changeBytes(root, session, (all) => all.subarray(0, all.length - bytes))
}

export function addBom(root: string, session: string): void {
  changeBytes(root, session, (bytes) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]))
}

export function toCrlf(root: string, session: string): void {
  changeLines(root, session, (lines) => lines.map((line) => Buffer.concat([line, Buffer.from('\r')])))
}

/** Legal text that line readers trip over: raw U+2028, U+2029 and U+0085, and an escaped lone surrogate (R80). */
export function addSeparators(root: string, session: string): void {
  const text = 'one\u2028two\u2029three\u0085four \\ud83d five'
  appendLines(root, session, userLine('eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee', { session, text }).replace('\\\\ud83d', '\\ud83d'))
}

/** Bytes that are no UTF-8 inside a string. */
export function addInvalidUtf8(root: string, session: string): void {
  const [before = '', after = ''] = userLine('dddddddd-dddd-4ddd-8ddd-dddddddddddd', { session, text: 'cut here' }).split(' here')
  appendLines(root, session, Buffer.concat([Buffer.from(before), Buffer.from([0xff, 0xfe, 0xc3]), Buffer.from(after)]))
}

/** A valid line of about `bytes` bytes: a message with a long text, written in blocks. */
export function addLongLine(root: string, session: string, bytes: number): void {
  const [before = '', after = ''] = userLine('cccccccc-cccc-4ccc-8ccc-cccccccccccc', { session, text: '#' }).split('#')
  const path = transcriptOf(root, session)
  const block = Buffer.alloc(1 << 20, 'x')
  keepingTimes(path, () => {
    const file = openSync(path, 'a')
    writeSync(file, before)
    for (let left = bytes; left > 0; left -= block.length) writeSync(file, block, 0, Math.min(left, block.length))
    writeSync(file, `${after}\n`)
    closeSync(file)
  })
}
