import { describe, expect, it } from 'vitest'
import { takeInventory } from '../../../src/formats/claude-code/inventory.js'
import { readPrompt } from '../../../src/formats/claude-code/prompt.js'
import { emptyRoot, S1, userLine, writeTranscript } from '../../helpers/store.js'

const id = '00000000-0000-4000-8000-000000000001'

async function promptIn(lines: readonly string[]): Promise<ReturnType<typeof readPrompt>> {
  const root = await emptyRoot()
  writeTranscript(root, '-p', S1, lines)
  const [session] = takeInventory(root).sessions
  if (session === undefined) throw new Error('no session')
  return readPrompt(root, session, id)
}

function withContent(content: unknown): string {
  return JSON.stringify({ ...(JSON.parse(userLine(id)) as object), message: { role: 'user', content } })
}

describe('a prompt that is sent again', () => {
  it('has its text, the mode of its own, and its pictures as bytes', async () => {
    const bytes = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255])
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: bytes.toString('base64') } }
    const line = withContent([{ type: 'text', text: 'look' }, image, { type: 'image', source: { type: 'url', url: 'x' } }, { type: 'text', text: 'here' }])
    const own = line.replace('"userType"', '"permissionMode":"plan","userType"')
    expect(await promptIn(['{"type":"permission-mode","permissionMode":"default"}', own])).toEqual({ text: 'look\nhere', permissionMode: 'plan', images: [{ mediaType: 'image/png', bytes }] })
  })

  it('has the last mode that held before it, not one of later', async () => {
    const mode = (value: string): string => JSON.stringify({ type: 'permission-mode', permissionMode: value })
    expect(await promptIn([mode('default'), mode('acceptEdits'), withContent('plain'), mode('plan')])).toEqual({ text: 'plain', permissionMode: 'acceptEdits', images: [] })
  })

  it('is none when no line is that message', async () => {
    expect(await promptIn([JSON.stringify({ type: 'last-prompt', leafUuid: id })])).toBeUndefined()
  })
})
