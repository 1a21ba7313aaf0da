import { UsageError } from '../../model/errors.js'
import { durationShape, parseDuration } from '../../model/period.js'
import { parseSize, sizeShape } from '../../model/size.js'

/** Milliseconds of an option that is a duration; `undefined` when it was not given. Throws `UsageError`. */
export function durationOption(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const milliseconds = parseDuration(text)
  if (milliseconds === undefined) throw new UsageError(`${option} ${text}: give ${durationShape}`)
  return milliseconds
}

/** Bytes of an option that is a size; `undefined` when it was not given. Throws `UsageError`. */
export function sizeOption(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const bytes = parseSize(text)
  if (bytes === undefined) throw new UsageError(`${option} ${text}: give ${sizeShape}`)
  return bytes
}
