import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../../src/formats/format.js'
import { promptAgain, rewindConversation } from '../../../src/operations/conversation/rewind-conversation.js'
import { extractStore } from '../../helpers/corpus.js'
import { assistantLine, emptyRoot, H, S1, snap, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { snapshotTree, sameTree } from '../../helpers/tree.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { forkContext, openStore, resolved, sessionOf, target } from '../fork/fork-context.js'

const m1 = '00000000-0000-4000-8000-000000000001'
const a1 = '00000000-0000-4000-8000-0000000000a1'
const m2 = '00000000-0000-4000-8000-000000000002'
const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 10])

async function withPicture(): Promise<{ root: string; store: Store }> {
  const root = await emptyRoot()
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture.toString('base64') } }
  const second = JSON.parse(userLine(m2, { parent: a1 })) as Record<string, unknown>
  writeTranscript(root, '-p', S1, [
    JSON.stringify({ type: 'permission-mode', permissionMode: 'plan', sessionId: S1 }),
    userLine(m1, { text: 'first' }),
    snap(m1, { a: `${H}@v1` }),
    assistantLine(a1, { parent: m1 }),
    JSON.stringify({ ...second, message: { role: 'user', content: [{ type: 'text', text: 'look [Image #1]' }, image] } }),
    snap(m2, { a: `${H}@v2` }),
    JSON.stringify({ type: 'last-prompt', lastPrompt: 'look', leafUuid: m2, sessionId: S1 }),
    JSON.stringify({ type: 'queue-operation', operation: 'enqueue', content: 'look', sessionId: S1 }),
  ])
  for (const version of [1, 2]) writeBackup(root, S1, `${H}@v${String(version)}`, `v${String(version)}`)
  return { root, store: openStore(root) }
}

function transcriptLines(root: string): string[] {
  return readFileSync(join(root, 'projects/-p', `${target}.jsonl`), 'utf8').split('\n').slice(0, -1)
}

describe('a conversation rewind', () => {
  it('makes a new session with what stands before the message, and nothing in it mentions what was cut', async () => {
    const { root, store } = await withPicture()
    const before = readFileSync(join(root, 'projects/-p', `${S1}.jsonl`))
    const rewind = await rewindConversation(store, sessionOf(store, S1), m2, { newId: target }, forkContext())
    expect(rewind).toMatchObject({ session: target, message: m2, text: 'look [Image #1]', permissionMode: 'plan', images: 1, imagePaths: [], report: { exitCode: 0, extra: { linked: 1 } } })
    expect(transcriptLines(root).map((line) => (JSON.parse(line) as { type: string }).type)).toEqual(['permission-mode', 'file-history-snapshot', 'user', 'assistant'])
    expect(transcriptLines(root).join()).not.toContain(m2)
    expect(readdirSync(join(root, 'file-history', target))).toEqual([`${H}@v1`])
    expect(readFileSync(join(root, 'projects/-p', `${S1}.jsonl`))).toEqual(before)
  })

  it('writes the pictures on request, readable by their owner only, and again without harm', async () => {
    const { store } = await withPicture()
    const imagesFolder = join(await temporaryFolder(), 'pictures')
    const { imagePaths } = await rewindConversation(store, sessionOf(store, S1), m2, { newId: target, imagesFolder }, forkContext())
    expect(imagePaths).toEqual([join(imagesFolder, `${m2}-1.png`)])
    expect([readFileSync(imagePaths[0] ?? ''), statSync(imagePaths[0] ?? '').mode & 0o777]).toEqual([picture, 0o600])
    const other = '88888888-8888-4888-8888-888888888888'
    expect(await rewindConversation(store, sessionOf(store, S1), m2, { newId: other, imagesFolder }, forkContext())).toMatchObject({ imagePaths, session: other })
  })

  it('overwrites no file with a picture, and then does nothing at all', async () => {
    const { root, store } = await withPicture()
    const imagesFolder = join(await temporaryFolder(), 'pictures')
    mkdirSync(imagesFolder)
    writeFileSync(join(imagesFolder, `${m2}-1.png`), 'mine')
    const before = snapshotTree(root)
    await expect(rewindConversation(store, sessionOf(store, S1), m2, { newId: target, imagesFolder }, forkContext())).rejects.toMatchObject({ exitCode: 2 })
    sameTree(root, before)
    expect(readFileSync(join(imagesFolder, `${m2}-1.png`), 'utf8')).toBe('mine')
  })

  it('that fails takes its pictures away again', async () => {
    const { root, store } = await withPicture()
    const imagesFolder = join(await temporaryFolder(), 'pictures')
    const link = (): never => { throw Object.assign(new Error('EIO'), { code: 'EIO' }) }
    await expect(rewindConversation(store, sessionOf(store, S1), m2, { newId: target, imagesFolder }, forkContext({ acts: { link } }))).rejects.toThrow('EIO')
    expect(readdirSync(imagesFolder)).toEqual([])
    expect(existsSync(join(root, 'file-history', target))).toBe(false)
    expect(existsSync(join(root, 'projects/-p', `${target}.jsonl`))).toBe(false)
  })

  it('to the first message needs no new session: its prompt is all there is', async () => {
    const { root, store } = await withPicture()
    const before = snapshotTree(root)
    const rewind = await rewindConversation(store, sessionOf(store, S1), m1, { newId: target }, forkContext())
    expect(rewind).toEqual({ message: m1, text: 'first', permissionMode: 'plan', images: 0, imagePaths: [] })
    sameTree(root, before)
  })

  it('previewed says what would be sent again and writes nothing', async () => {
    const { root, store } = await withPicture()
    const before = snapshotTree(root)
    expect(promptAgain(store, sessionOf(store, S1), m2.slice(0, 36))).toEqual({ message: m2, text: 'look [Image #1]', permissionMode: 'plan', images: 1 })
    sameTree(root, before)
  })

  it('of a session that was rewound before follows the branch of the message and leaves the others out (corpus, rewound)', async () => {
    const { root } = await extractStore('2.1.332', 'rewound')
    const store = openStore(root)
    const [session] = store.inventory().sessions
    if (session === undefined) throw new Error('no session')
    const messages = store.messages(session)
    const idOf = (text: string): string => messages.find((message) => message.text.startsWith(`${text} `))?.id ?? ''
    await rewindConversation(store, session, idOf('q3'), { newId: target }, forkContext())
    const made = sessionOf(store, target)
    expect(store.messages(made).map(({ text, active }) => [text.slice(0, 2), active])).toEqual([['p1', true], ['q2', true]])
    const wanted = resolved(store, session.id)
    expect(resolved(store, target)).toEqual({ [idOf('p1')]: wanted[idOf('p1')], [idOf('q2')]: wanted[idOf('q2')] })
  })
})
