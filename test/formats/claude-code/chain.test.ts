import { expect, it } from 'vitest'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import { addBom, addNulRun } from '../../helpers/damage.js'
import { emptyRoot, S1, snap, userLine, writeTranscript } from '../../helpers/store.js'

const first = 'aaaaaaaa-0000-4000-8000-000000000001'
const second = 'aaaaaaaa-0000-4000-8000-000000000002'

it('R73, R82: messages and branches follow one chain, and neither a byte order mark nor NUL bytes break it', async () => {
  const root = await emptyRoot()
  writeTranscript(root, '-p', S1, [userLine(first), snap(first, {}), userLine(second, { parent: first }), snap(second, {})])
  addNulRun(root, S1, 2, 300)
  addBom(root, S1)
  const store = openClaudeCode(root, { home: root, env: {}, platform: 'linux' })
  const [session] = store.inventory().sessions
  if (session === undefined) throw new Error('the session was not found')
  expect(store.messages(session).map(({ id, active }) => [id, active])).toEqual([[first, true], [second, true]])
  expect(store.branches?.(session, new Set([first, second]))).toEqual(new Map([[first, undefined], [second, first]]))
})
