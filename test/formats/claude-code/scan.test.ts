import { spawn } from 'node:child_process'
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { assistantLine, delta, H, H2, S1, snap, toolResultLine, userLine } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { now, scan, scanFile, text, type Scanned } from './scanning.js'

const good = snap('m1', { 'a.txt': `${H}@v1` })

function references(scanned: Scanned): string[] {
  return [...scanned.history.references.keys()].sort()
}

describe('good transcripts', () => {
  test('history lines become events in file order, with the byte offset of each line', async () => {
    const lines = [userLine('m1', { text: 'é' }), good, assistantLine('x'), delta('x', 'm1', 'b.txt', `${H2}@v1`)]
    const scanned = await scan(text(...lines))
    const offsets = lines.map((_, index) => Buffer.byteLength(text(...lines.slice(0, index))))
    expect(scanned.events.map(({ kind, offset }) => [kind, offset])).toEqual([['snapshot', offsets[1]], ['delta', offsets[3]]])
    expect(scanned.found).toEqual([])
    expect(scanned.lines).toBe(4)
  })

  test('the start folder, version and entry point come from the first lines that have them', async () => {
    const { head } = await scan(text(good, userLine('m1', { cwd: '/first', version: '2.1.1', entrypoint: 'sdk-cli' }), userLine('m2', { cwd: '/second' })))
    expect(head).toEqual({ cwd: '/first', version: '2.1.1', entrypoint: 'sdk-cli' })
  })

  test('a start folder that only a late line records is found', async () => {
    const early = Array.from({ length: 60 }, (_, index) => JSON.stringify({ type: 'queue-operation', n: index }))
    const filler = Array.from({ length: 5000 }, () => JSON.stringify({ type: 'note', text: 'x'.repeat(1000) }))
    const { head } = await scan(text(...early, ...filler, userLine('m1', { cwd: '/late' })))
    expect(head.cwd).toBe('/late')
  })

  test('keys in another order, blanks after colons and unknown fields are read (R45)', async () => {
    const line = '{"isSnapshotUpdate": false, "zzz": [1], "snapshot": {"trackedFileBackups": {"a": {"version": 1, "new": {}, '
      + `"backupFileName": "${H}@v1"}}, "messageId": "m1"}, "type": "file-history-snapshot"}`
    const scanned = await scan(text(line))
    expect(scanned.history.checkpoints.map(({ id }) => id)).toEqual(['m1'])
    expect(scanned.found).toEqual([])
  })

  test('a conversation that talks about history lines is not taken for one, and its tool results still count', async () => {
    const talk = `${good} ${delta('x', 'm1', 'a', `${H2}@v9`)}`
    const lines = [userLine('m1', { text: talk }), toolResultLine('u2', { filePath: '/p/a', originalFile: talk, content: `${H}@v8` })]
    const scanned = await scan(text(...lines))
    expect(scanned.events).toEqual([])
    expect(scanned.toolResults).toEqual([lines[1]])
    expect(scanned.others).toEqual(lines)
  })

  test('tool results are found by the key alone, not by the word', async () => {
    const lines = [userLine('m1', { text: 'what is "toolUseResult"?' }), toolResultLine('u2', { filePath: '/p/a' })]
    expect((await scan(text(...lines))).toolResults).toEqual([lines[1]])
  })

  test('an empty file and a file of blank lines have nothing and nothing wrong', async () => {
    expect((await scan('')).found).toEqual([])
    expect((await scan('\n\r\n\n')).found).toEqual([])
  })
})

describe('bytes that line readers trip over', () => {
  test('R80: U+2028, U+2029 and U+0085 are no line ends', async () => {
    const path = 'one\u2028two\u2029three\u0085.txt'
    const scanned = await scan(text(userLine('m1', { text: 'a\u2028b\u0085c' }), snap('m1', { [path]: `${H}@v1` })))
    expect([...scanned.history.tracked]).toEqual([path])
    expect([scanned.lines, scanned.found]).toEqual([2, []])
  })

  test('R80: CRLF line ends are accepted', async () => {
    const scanned = await scan(`${userLine('m1')}\r\n${good}\r\n`)
    expect(references(scanned)).toEqual([`${H}@v1`])
    expect([scanned.lines, scanned.found]).toEqual([2, []])
  })

  test('R82: a byte order mark at the start does not hide the first record', async () => {
    const scanned = await scan(`\ufeff${text(good, userLine('m1'))}`)
    expect(references(scanned)).toEqual([`${H}@v1`])
    expect(scanned.found).toEqual([])
  })

  test('R82: a byte order mark anywhere else is damage, and the record behind it is still read', async () => {
    const scanned = await scan(`${text(userLine('m1'))}\ufeff${text(good)}`)
    expect(references(scanned)).toEqual([`${H}@v1`])
    expect(scanned.found).toEqual([`spliced-line@${String(Buffer.byteLength(text(userLine('m1'))))}`])
  })

  test('half a surrogate pair in a path is a path like any other', async () => {
    const scanned = await scan(text(good.replace('a.txt', '\\ud83d.txt')))
    expect([...scanned.history.tracked]).toEqual(['\ud83d.txt'])
    expect(scanned.found).toEqual([])
  })

  test('bytes that are no UTF-8 inside a string do not hide the record', async () => {
    const bytes = Buffer.from(text(good))
    bytes.writeUInt8(0xff, bytes.indexOf('a.txt'))
    const scanned = await scan(bytes)
    expect(references(scanned)).toEqual([`${H}@v1`])
    expect(scanned.found).toEqual([])
  })

  test('R73: NUL runs are reported with offset and length, and all records around them count', async () => {
    const [one, two, three] = [good, delta('x', 'm1', 'b', `${H2}@v1`), delta('x', 'm1', 'c', `${H2}@v2`)]
    const scanned = await scan(`${one}\n${'\0'.repeat(512)}${two}\n${'\0'.repeat(300)}\n${three}\n`)
    expect(references(scanned)).toEqual([`${H}@v1`, `${H2}@v1`, `${H2}@v2`])
    expect(scanned.problems.map(({ kind, offset, message }) => [kind, offset, Number.parseInt(message, 10)])).toEqual([
      ['nul-run', one.length + 1, 512],
      ['nul-run', one.length + 1 + 512 + two.length + 1, 300],
    ])
    expect(scanned.events.map(({ offset }) => offset)).toEqual([0, one.length + 1 + 512, one.length + 1 + 512 + two.length + 1 + 301])
  })

  test('R73: a message or a tool result behind a NUL run is not lost', async () => {
    const result = toolResultLine('u2', { filePath: '/p/a' })
    const scanned = await scan(`\0\0\0${userLine('m1')}\n\0${result}\n`)
    expect(scanned.others).toEqual([userLine('m1'), result])
    expect(scanned.toolResults).toEqual([result])
  })

  test('a line of 64 MB is read whole, and the lines around it too', async () => {
    const file = join(await temporaryFolder(), 'long.jsonl')
    const [head = '', foot = ''] = snap('m2', { LONG: `${H}@v2` }).split('LONG')
    const fd = openSync(file, 'w')
    writeSync(fd, `${text(good)}${head}`)
    const block = Buffer.alloc(1 << 20, 'p')
    for (let index = 0; index < 64; index += 1) writeSync(fd, block)
    writeSync(fd, `${foot}\n${delta('x', 'm2', 'b', `${H2}@v1`)}\n`)
    closeSync(fd)
    const scanned = scanFile(file)
    expect(references(scanned)).toEqual([`${H}@v1`, `${H}@v2`, `${H2}@v1`])
    expect(scanned.found).toEqual([])
  })

  test('a file is read to its end wherever long lines and blocks of 4 MiB meet', async () => {
    const file = join(await temporaryFolder(), 'blocks.jsonl')
    const mebi = 1 << 20
    // After the first line exactly one block is left in a buffer that had grown.
    writeFileSync(file, Buffer.concat([Buffer.alloc(12 * mebi - 1, ' '), Buffer.from('\n'), Buffer.alloc(5 * mebi, ' '), Buffer.from(`\n${good}\n`)]))
    expect(references(scanFile(file))).toEqual([`${H}@v1`])
  })
})

/** Reads a transcript in a process of its own; says the last checkpoint, the lines, and the memory it took in MiB. */
async function scanElsewhere(file: string, heap: number): Promise<{ last: string; lines: number; checkpoints: number; peak: number }> {
  const built = (path: string): string => JSON.stringify(fileURLToPath(new URL(`../../../dist/src/${path}`, import.meta.url)))
  const source = `
    import { readSession } from ${built('formats/claude-code/reading.js')}
    const [root, path] = process.argv.slice(-2)
    const session = { id: '${S1}', members: [{ kind: 'transcript', path, folder: false }] }
    const { history, findings } = readSession(root, session, { now: ${String(now)} })
    const peak = Math.round(process.resourceUsage().maxRSS / 1024)
    console.log(JSON.stringify({ last: history.checkpoints.at(-1)?.id, lines: history.lines, checkpoints: history.checkpoints.length, peak, findings: findings.length }))`
  const child = spawn(process.execPath, [`--max-old-space-size=${String(heap)}`, '--input-type=module', '-e', source, '--', '/', file.slice(1)])
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk))
  const code = await new Promise((resolve) => child.on('close', resolve))
  if (code !== 0) throw new Error(errors)
  return JSON.parse(output) as Awaited<ReturnType<typeof scanElsewhere>>
}

test('R78: a transcript of 600 MB is read to its last line with a small heap, in memory that does not grow with it', async () => {
  const file = join(await temporaryFolder(), 'large.jsonl')
  const line = text(userLine('m1', { text: 'y'.repeat(900) }))
  const block = Buffer.from(line.repeat(Math.ceil((8 << 20) / line.length)))
  const fd = openSync(file, 'w')
  for (let written = 0; written < 600e6; written += block.length) writeSync(fd, block)
  writeSync(fd, text(snap('last', { a: `${H}@v1` })))
  closeSync(fd)
  const result = await scanElsewhere(file, 256)
  expect(result).toMatchObject({ last: 'last', checkpoints: 1 })
  expect(result.peak).toBeLessThan(200)
})
