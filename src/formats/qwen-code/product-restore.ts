import type { RestoredFile } from '../format.js'

/**
 * What the agent's own restore would do otherwise with a file that ours restores (formats/qwen-code sections 5 and 10): it takes
 * a file that is older than its backup for unchanged, and compares texts, in which invalid bytes are all alike.
 */
export function productDifference({ node, backup, isSameText }: RestoredFile): string | undefined {
  if (node.size !== backup.size || node.mode !== backup.mode) return undefined
  if (node.mtimeMs < backup.mtimeMs) return 'the agent would leave this file as it is, because it is older than its backup'
  return isSameText() ? 'the agent would leave this file as it is, because it compares texts and not bytes' : undefined
}
