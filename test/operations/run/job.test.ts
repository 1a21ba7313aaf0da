import { describe, expect, it } from 'vitest'
import { jobs } from '../../../jobs/index.js'
import { integrity } from '../../../jobs/integrity.js'
import { nightly } from '../../../jobs/nightly.js'
import { report } from '../../../jobs/report.js'
import { ConfigError, UsageError } from '../../../src/model/errors.js'
import { allJobs, findJob } from '../../../src/operations/run/job.js'
import { configOf, dayMs } from '../../helpers/removal.js'

/** The jobs that a configuration names. */
function configured(jobs: unknown): ReturnType<typeof configOf>['jobs'] {
  return configOf({ jobs }).jobs
}

function problemOf(steps: unknown): string {
  try {
    findJob('odd', [nightly], configured({ odd: steps }))
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return 'accepted'
}

describe('the jobs of the program', () => {
  it('are nightly, integrity and report, and only nightly removes', () => {
    expect(jobs).toEqual([nightly, integrity, report])
    const steps = (job: typeof nightly): string[] => job.steps.map(({ step }) => step)
    expect(steps(nightly)).toEqual(['recover', 'verify-quick', 'cap', 'expire', 'empty-trash'])
    expect(steps(integrity)).toEqual(['verify'])
    expect(steps(report)).toEqual(['status', 'next-night'])
  })
})

describe('findJob', () => {
  it('finds a job of the program', () => {
    expect(findJob('nightly', [nightly], {})).toBe(nightly)
  })

  it('makes a job of the steps that the configuration names, with their conditions', () => {
    const weekly = ['recover', { step: 'verify', buckets: 14 }, { step: 'expire', when: 'no-errors-found', every: '7d' }, { step: 'empty-trash', when: 'no-step-failed' }]
    expect(findJob('weekly', [nightly], configured({ weekly }))).toMatchObject({
      name: 'weekly',
      steps: [
        { step: 'recover' },
        { step: 'verify', buckets: 14 },
        { step: 'expire', when: 'no-errors-found', everyMs: 7 * dayMs },
        { step: 'empty-trash', when: 'no-step-failed' },
      ],
    })
  })

  it.each(['monthly', 'constructor', '__proto__'])('knows no job called %s, and says which there are', (name) => {
    const find = (): unknown => findJob(name, [nightly], configured({ weekly: ['verify'] }))
    expect(find).toThrow(UsageError)
    expect(find).toThrow(expect.objectContaining({ hint: 'jobs: nightly, weekly' }) as Error)
  })

  it.each([
    [['recover', 'shred'], 'job odd: there is no step called shred'],
    [['recover', 'expires'], 'job odd: there is no step called expires; did you mean expire?'],
    [['recover', 'toString'], 'job odd: there is no step called toString'],
    [['verify', { step: 'status', when: 'no-error-found' }], 'job odd: there is no condition called no-error-found; did you mean no-errors-found?'],
    [['expire'], 'job odd removes, so its first step must be recover, without a condition'],
    [[{ step: 'recover', every: '7d' }, 'cap'], 'job odd removes, so its first step must be recover, without a condition'],
    [[{ step: 'verify-quick', buckets: 7 }], 'job odd has a step with buckets that is not verify'],
    [['recover', { step: 'expire', when: 'no-errors-found' }, 'verify'], 'job odd has a step with the condition no-errors-found and no verify step before it'],
    [['verify', 'empty-trash'], 'accepted'],
  ])('of %j says: %s', (steps, problem) => {
    expect(problemOf(steps)).toBe(problem)
  })

  it('refuses a job of the configuration that has the name of one of the program, whichever is asked for', () => {
    expect(() => findJob('nightly', [nightly], configured({ nightly: ['verify'] }))).toThrow(ConfigError)
    expect(() => allJobs([nightly], configured({ nightly: ['verify'] }))).toThrow('job nightly: the program has a job of that name')
  })
})
