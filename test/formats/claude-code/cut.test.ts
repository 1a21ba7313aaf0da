import { describe, expect, it } from 'vitest'
import { messagesBefore, type MessageNode } from '../../../src/formats/claude-code/cut.js'

/** `prompt*` are what a user typed; `child<parent` hangs off another one. */
function nodes(...texts: readonly string[]): Map<string, MessageNode> {
  return new Map(
    texts.map((text, index) => {
      const [id = '', parent] = text.split('<')
      return [id, { id, parent, prompt: id.startsWith('prompt'), index }]
    }),
  )
}

function before(message: string, ...texts: readonly string[]): string[] {
  return [...messagesBefore(nodes(...texts), message)].sort()
}

describe('what stays of a conversation that is cut before a message', () => {
  it('is all it hangs off', () => {
    expect(before('prompt2', 'prompt1', 'a<prompt1', 'b<a', 'prompt2<b', 'c<prompt2')).toEqual(['a', 'b', 'prompt1'])
  })

  it('is nothing before the first message', () => {
    expect(before('prompt1', 'prompt1', 'a<prompt1')).toEqual([])
  })

  it('leaves the branch of an earlier rewind out, although it stands before in the file (corpus, rewound)', () => {
    expect(before('promptX', 'prompt1', 'a<prompt1', 'prompt2<a', 'b<prompt2', 'promptX<a')).toEqual(['a', 'prompt1'])
  })

  it('keeps the results of tools that ran side by side, which are no part of the chain', () => {
    // Two calls in a row, each result hangs off its own call, the answer off the second result.
    const lines = ['prompt1', 'call1<prompt1', 'call2<call1', 'result1<call1', 'result2<call2', 'answer<result2', 'prompt2<answer']
    expect(before('prompt2', ...lines)).toEqual(['answer', 'call1', 'call2', 'prompt1', 'result1', 'result2'])
  })

  it('goes on with the message before in the file where damage took the parent', () => {
    expect(before('prompt2', 'prompt1', 'a<prompt1', 'b<lost', 'prompt2<b')).toEqual(['a', 'b', 'prompt1'])
  })

  it('ends for parents in a circle', () => {
    expect(before('prompt2', 'a<b', 'b<a', 'prompt2<b')).toEqual(['a', 'b'])
  })
})
