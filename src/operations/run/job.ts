import { ConfigError, UsageError } from '../../model/errors.js'

/** What a job can be made of. Each step is carried out for every store before the next one begins. */
export const stepNames = ['recover', 'verify-quick', 'verify', 'cap', 'expire', 'empty-trash'] as const

export type StepName = (typeof stepNames)[number]

/** A scheduled piece of work: its steps in order. A step that fails does not stop the next ones unless they rest on it. */
export interface Job {
  readonly name: string
  readonly describe: string
  readonly steps: readonly StepName[]
}

/**
 * The job with this name: one that comes with the program, or one of the configuration, given as the names of its steps.
 * Throws `UsageError` when there is none, and `ConfigError` when a step of it is unknown or nothing checks before it removes.
 */
export function findJob(name: string, own: readonly Job[], configured: Readonly<Record<string, readonly string[]>>): Job {
  const known = own.find((job) => job.name === name)
  if (known !== undefined) return known
  const named = Object.hasOwn(configured, name) ? configured[name] : undefined
  if (named === undefined) {
    const names = [...own.map((job) => job.name), ...Object.keys(configured)]
    throw new UsageError(`there is no job called ${name}`, { hint: `jobs: ${names.join(', ')}` })
  }
  const steps = named.map((step) => {
    const found = stepNames.find((each) => each === step)
    if (found === undefined) throw new ConfigError(`job ${name}: there is no step called ${step}`, { hint: `steps: ${stepNames.join(', ')}` })
    return found
  })
  const removes = steps.some((step) => step === 'cap' || step === 'expire')
  if (removes && steps[0] !== 'recover') {
    throw new ConfigError(`job ${name} removes, so its first step must be recover`, { hint: 'what an interrupted run left must be settled first' })
  }
  return { name, describe: 'a job of the configuration', steps }
}
