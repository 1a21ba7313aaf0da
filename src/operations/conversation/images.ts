import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { PromptImage } from '../../formats/conversation.js'
import { publishBytes } from '../../fs/publish.js'

/** Endings by media type; the recorded text itself never becomes part of a path. */
const endings: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
])

/**
 * Writes the pictures of a prompt into a folder, which is made when it is not there: `<message>-<n>.<ending>`, readable by
 * the owner only. A file of that name with the same bytes is left as it is. Returns the paths.
 * @throws UsageError when a file of that name holds other bytes; system errors. Pictures written before are taken away again.
 */
export function writeImages(folder: string, message: string, images: readonly PromptImage[]): { paths: string[]; made: string[] } {
  if (images.length > 0) mkdirSync(folder, { recursive: true, mode: 0o700 })
  const made: string[] = []
  try {
    const paths = images.map(({ mediaType, bytes }, index) => {
      const path = join(folder, `${message}-${String(index + 1)}.${endings.get(mediaType) ?? 'bin'}`)
      if (publishBytes(path, bytes)) made.push(path)
      return path
    })
    return { paths, made }
  } catch (error) {
    removeImages(made)
    throw error
  }
}

/** Takes pictures away again that this run wrote. */
export function removeImages(made: readonly string[]): void {
  for (const path of made) rmSync(path, { force: true })
}
