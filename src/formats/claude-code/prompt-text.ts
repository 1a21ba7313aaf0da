import { isFields, textOf } from '../../model/fields.js'

/** The text of a prompt, from the `message` of its line; `undefined` for a message that carries a tool result. */
export function promptText(message: unknown): string | undefined {
  const content = isFields(message) ? message.content : undefined
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return undefined
  const texts: string[] = []
  for (const block of content as unknown[]) {
    if (!isFields(block)) continue
    if (block.type === 'tool_result') return undefined
    const text = block.type === 'text' ? textOf(block.text) : undefined
    if (text !== undefined) texts.push(text)
  }
  return texts.join('\n')
}
