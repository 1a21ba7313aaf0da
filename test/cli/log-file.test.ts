import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LogFile, type LogFileOptions } from '../../src/cli/log-file.js'
import { createLogger } from '../../src/cli/logger.js'
import { temporaryFolder } from '../helpers/temp.js'

async function fileIn(options: Partial<LogFileOptions> = {}): Promise<{ folder: string; path: string; errors: unknown[]; open: () => LogFile }> {
  const folder = await temporaryFolder()
  const path = join(folder, 'run.log')
  const errors: unknown[] = []
  return { folder, path, errors, open: () => new LogFile({ path, limit: 20, keep: 2, failed: (error) => errors.push(error), ...options }) }
}

function texts(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).sort().map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

describe('the log file', () => {
  it('is followed by a new one before it grows above its limit; old ones are kept by number and the oldest goes', async () => {
    const { folder, open } = await fileIn()
    const log = open()
    // Nine bytes a line: two fit into twenty.
    for (let line = 1; line <= 7; line += 1) log.write(`line 00${String(line)}\n`)
    expect(texts(folder)).toEqual({
      'run.log': 'line 007\n',
      'run.log.1': 'line 005\nline 006\n',
      'run.log.2': 'line 003\nline 004\n',
    })
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
  })

  it('counts what an earlier run left, and takes a line that is larger than all whole', async () => {
    const { folder, open } = await fileIn()
    open().write('0123456789012\n')
    open().write('and this is a line of more than twenty bytes\n')
    open().write('x\n')
    expect(texts(folder)).toEqual({ 'run.log': 'x\n', 'run.log.1': 'and this is a line of more than twenty bytes\n', 'run.log.2': '0123456789012\n' })
  })

  it('with none to be kept begins anew', async () => {
    const { folder, open } = await fileIn({ keep: 0 })
    const log = open()
    log.write('0123456789012\n')
    log.write('abcdefghijklm\n')
    expect(texts(folder)).toEqual({ 'run.log': 'abcdefghijklm\n' })
  })

  it('shared by two runs loses no line: the one whose file was renamed goes on in the new one', async () => {
    const { folder, open } = await fileIn({ keep: 9 })
    const [one, other] = [open(), open()]
    for (let line = 0; line < 8; line += 1) (line % 2 === 0 ? one : other).write(`line ${String(line)}....\n`)
    const lines = Object.values(texts(folder)).join('').trimEnd().split('\n').sort()
    expect(lines).toEqual(Array.from({ length: 8 }, (_, line) => `line ${String(line)}....`))
    expect(readFileSync(join(folder, 'run.log'), 'utf8').length).toBeLessThanOrEqual(20)
  })

  it('that was a device or a pipe is written to and never renamed', async () => {
    const { folder, path, open, errors } = await fileIn({ limit: 1 })
    symlinkSync('/dev/null', path)
    const log = open()
    log.write('one\n')
    log.write('two\n')
    expect([readdirSync(folder), errors]).toEqual([['run.log'], []])
  })

  it('that can no longer be written is told once, and the run goes on', async () => {
    const { folder, path, open, errors } = await fileIn()
    const log = open()
    log.write('0123456789012\n')
    // In the way of the name of the old file.
    mkdirSync(join(folder, 'run.log.1', 'full'), { recursive: true })
    mkdirSync(join(folder, 'run.log.2', 'full'), { recursive: true })
    log.write('abcdefghijklm\n')
    log.write('nopqrstuvwxyz\n')
    expect(errors).toHaveLength(1)
    expect(readFileSync(path, 'utf8')).toBe('0123456789012\n')
  })

  it('keeps the mode of a file that was there', async () => {
    const { path, open } = await fileIn()
    writeFileSync(path, '')
    chmodSync(path, 0o640)
    open().write('x\n')
    expect(statSync(path).mode & 0o777).toBe(0o640)
  })
})

it('a logger with a file begins a new one by size, each with whole lines of JSON', async () => {
  const folder = await temporaryFolder()
  const file = join(folder, 'run.log')
  const logger = createLogger({ level: 'info', file, fileLimit: 300, keptFiles: 1, now: () => 0, write: () => { throw new Error('not here') } })
  for (let index = 0; index < 12; index += 1) logger.info({ index }, 'did something')
  expect(existsSync(`${file}.2`)).toBe(false)
  const lines = [`${file}.1`, file].flatMap((path) => readFileSync(path, 'utf8').trimEnd().split('\n'))
  const numbers = lines.map((line) => (JSON.parse(line) as { index: number }).index)
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => 12 - numbers.length + index))
  expect(statSync(`${file}.1`).size).toBeLessThanOrEqual(300)
})
