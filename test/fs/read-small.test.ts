import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readJsonObject, readSmallFile } from '../../src/fs/read-small.js'
import { temporaryFolder } from '../helpers/temp.js'
import { asNobody, giveAway, needs } from '../helpers/unprivileged.js'

const strict = { follow: false, limit: 1000 }

describe('readSmallFile', () => {
  it('gives the bytes as they are', async () => {
    const path = join(await temporaryFolder(), 'f')
    const bytes = Buffer.from([0xff, 0, 0xef, 0xbb, 0xbf, 10])
    writeFileSync(path, bytes)
    expect(readSmallFile(path, strict)).toMatchObject({ kind: 'bytes', bytes })
  })

  it('reads a file of exactly the limit and refuses one byte more, without reading it', async () => {
    const path = join(await temporaryFolder(), 'f')
    writeFileSync(path, Buffer.alloc(1000, 1))
    expect(readSmallFile(path, strict)).toMatchObject({ kind: 'bytes', bytes: Buffer.alloc(1000, 1) })
    truncateSync(path, 1001)
    expect(readSmallFile(path, strict)).toEqual({ kind: 'unusable', reason: 'it is larger than 1000 bytes' })
    truncateSync(path, 2 ** 40)
    expect(readSmallFile(path, strict).kind).toBe('unusable')
  })

  it.each(['none', 'none/below', 'file/below', 'x'.repeat(300), 'nul\0name'])('calls %j missing: nothing can stand there', async (name) => {
    const folder = await temporaryFolder()
    writeFileSync(join(folder, 'file'), '')
    expect(readSmallFile(`${folder}/${name}`, strict)).toEqual({ kind: 'missing' })
  })

  it('never follows a link unless told to', async () => {
    const folder = await temporaryFolder()
    writeFileSync(join(folder, 'real'), 'x')
    symlinkSync('real', join(folder, 'link'))
    expect(readSmallFile(join(folder, 'link'), strict)).toEqual({ kind: 'unusable', reason: 'it is a link' })
    expect(readSmallFile(join(folder, 'link'), { follow: true, limit: 9 })).toMatchObject({ kind: 'bytes', bytes: Buffer.from('x') })
  })

  it('a link to nothing, or in a circle, is there and unusable', async () => {
    const folder = await temporaryFolder()
    symlinkSync('nowhere', join(folder, 'dangling'))
    symlinkSync('circle', join(folder, 'circle'))
    for (const name of ['dangling', 'circle']) {
      expect(readSmallFile(join(folder, name), { follow: true, limit: 9 })).toMatchObject({ kind: 'unusable' })
    }
  })

  it('does not hang on a FIFO, also behind a link', async (context) => {
    needs(context, 'fifo')
    const folder = await temporaryFolder()
    execFileSync('mkfifo', [join(folder, 'pipe')])
    symlinkSync('pipe', join(folder, 'link'))
    expect(readSmallFile(join(folder, 'pipe'), strict)).toEqual({ kind: 'unusable', reason: 'it is not a regular file' })
    expect(readSmallFile(join(folder, 'link'), { follow: true, limit: 9 })).toEqual({ kind: 'unusable', reason: 'it is not a regular file' })
  })

  it('says so of a folder and of a file without permission', async (context) => {
    needs(context, 'unprivileged')
    const folder = await temporaryFolder()
    mkdirSync(join(folder, 'folder'))
    writeFileSync(join(folder, 'closed'), 'x')
    chmodSync(join(folder, 'closed'), 0)
    giveAway(folder)
    expect(readSmallFile(join(folder, 'folder'), strict)).toEqual({ kind: 'unusable', reason: 'it is a folder' })
    const closed = await asNobody(() => readSmallFile(join(folder, 'closed'), strict))
    expect(closed).toEqual({ kind: 'unusable', reason: 'it cannot be read (no permission)' })
  })
})

describe('readJsonObject', () => {
  it.each([
    ['{}', {}],
    ['\ufeff{"a":1}', { a: 1 }],
    [' \r\n{"a":[null]}\n', { a: [null] }],
  ])('reads %j', async (text, value) => {
    const path = join(await temporaryFolder(), 'f')
    writeFileSync(path, text)
    expect(readJsonObject(path, strict)).toMatchObject({ kind: 'object', value })
  })

  it.each([
    ['', 'it is empty (0 bytes)'],
    ['\n', 'it is not valid JSON'],
    ['{"a":1,}', 'it is not valid JSON'],
    ['{"a":1}{}', 'it is not valid JSON'],
    ['\ufeff\ufeff{}', 'it is not valid JSON'],
    ['[]', 'its top level is not a JSON object'],
    ['null', 'its top level is not a JSON object'],
    ['30', 'its top level is not a JSON object'],
  ])('refuses %j and gives the reason and the bytes', async (text, reason) => {
    const path = join(await temporaryFolder(), 'f')
    writeFileSync(path, text)
    expect(readJsonObject(path, strict)).toMatchObject({ kind: 'unusable', reason, bytes: Buffer.from(text) })
  })

  it('refuses text that is not UTF-8', async () => {
    const path = join(await temporaryFolder(), 'f')
    writeFileSync(path, Buffer.from('\ufeff{}', 'utf16le'))
    expect(readJsonObject(path, strict)).toMatchObject({ kind: 'unusable', reason: 'it is not valid UTF-8' })
  })
})
