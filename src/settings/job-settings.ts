import * as v from 'valibot'
import { count, duration, object, text } from './shapes.js'

/** One step of a job of the user, by the names the configuration gives; whether there are such is for the jobs to say. */
export interface ConfiguredStep {
  readonly step: string
  /** The condition under which it is carried out. */
  readonly when?: string
  /** Carried out only when it was last done on the store so many milliseconds ago. */
  readonly everyMs?: number
  /** Of a verification: every run reads one of so many parts of the backups, the next day the next one. */
  readonly buckets?: number
}

/** Most buckets that `verify --sample n/t` takes. */
const mostBuckets = 256

const stepObject = v.strictObject({
  step: text,
  when: v.optional(text),
  every: v.optional(duration),
  buckets: v.optional(v.pipe(count(1), v.maxValue(mostBuckets, `must be ${String(mostBuckets)} or less`))),
})

const stepName = v.pipe(text, v.transform((step): ConfiguredStep => ({ step })))

const stepFields = v.pipe(
  object<v.InferInput<typeof stepObject>>(),
  stepObject,
  v.transform(({ step, when, every, buckets }): ConfiguredStep => ({
    step,
    ...(when === undefined ? {} : { when }),
    ...(every === undefined ? {} : { everyMs: every }),
    ...(buckets === undefined ? {} : { buckets }),
  })),
)

type StepInput = v.InferInput<typeof stepName> | v.InferInput<typeof stepFields>

const step: v.GenericSchema<StepInput, ConfiguredStep> = v.lazy((input) => (typeof input === 'string' ? stepName : stepFields) as v.GenericSchema<StepInput, ConfiguredStep>)

/** Jobs of the user: a name, and its steps in order. */
export const jobs = v.record(text, v.pipe(v.array(step), v.nonEmpty('must name at least one step')))

/** The keys of a step that is written as an object. */
export const stepKeys = Object.keys(stepObject.entries)
