import * as v from 'valibot'
import { isFields } from '../model/fields.js'
import { durationShape, parseDuration } from '../model/period.js'

/** Text that says something. */
export const text = v.pipe(v.string(), v.nonEmpty('must not be empty'))

/** A duration as milliseconds. */
export const duration = v.pipe(
  v.string(`must be ${durationShape}`),
  v.check((value) => parseDuration(value) !== undefined, `must be ${durationShape}`),
  v.transform((value) => parseDuration(value) ?? 0),
)

/** A whole number, `least` or more. */
export const count = (least: number): v.GenericSchema<number> =>
  v.pipe(v.number(), v.safeInteger('must be a whole number'), v.minValue(least, `must be ${String(least)} or more`))

/** What must be an object; the library's own object schemas take a list for one. */
export const object = <T>(): v.GenericSchema<T> => v.custom<T>(isFields, 'must be an object')
