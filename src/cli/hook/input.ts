import { StringDecoder } from 'node:string_decoder'
import { UsageError } from '../../model/errors.js'

/** The input of an edit holds the whole new text of a file. Bytes. */
const inputLimit = 64 * 1024 * 1024

/** Standard input, as far as it is needed here. */
export interface InputStream {
  on(event: 'data', heard: (chunk: Buffer) => void): unknown
  on(event: 'end', heard: () => void): unknown
  on(event: 'error', heard: (error: Error) => void): unknown
}

/**
 * Reads one JSON value; it may end before the stream does, since not every agent closes its end.
 * @throws UsageError when it is none, larger than 64 MiB, or not there when `signal` is aborted; the error of the stream
 */
export function readInput(stream: InputStream, signal: AbortSignal): Promise<unknown> {
  const decoder = new StringDecoder('utf8')
  let text = ''
  let bytes = 0
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => {
      reject(new UsageError('the input of the hook did not come in time'))
    })
    stream.on('error', reject)
    stream.on('end', () => {
      const value = parsed(text + decoder.end())
      if (value === undefined) reject(new UsageError('the input of the hook is no JSON'))
      else resolve(value.json)
    })
    stream.on('data', (chunk) => {
      bytes += chunk.length
      if (bytes > inputLimit) {
        reject(new UsageError(`the input of the hook has more than ${String(inputLimit)} bytes`))
        return
      }
      text += decoder.write(chunk)
      const value = /\}\s*$/.test(text.slice(-8)) ? parsed(text) : undefined
      if (value !== undefined) resolve(value.json)
    })
  })
}

function parsed(text: string): { readonly json: unknown } | undefined {
  try {
    return { json: JSON.parse(text) }
  } catch {
    return undefined
  }
}
