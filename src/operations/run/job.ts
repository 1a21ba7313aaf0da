/** What a job can be made of. Each step is carried out for every store before the next one begins. */
export const stepNames = ['recover', 'verify-quick', 'verify', 'cap', 'expire', 'empty-trash'] as const

export type StepName = (typeof stepNames)[number]

/** A scheduled piece of work: its steps in order. A step that fails does not stop the next ones unless they rest on it. */
export interface Job {
  readonly name: string
  readonly describe: string
  readonly steps: readonly StepName[]
}
