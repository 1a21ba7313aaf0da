import { describe, expect, it } from 'vitest'
import { nightly } from '../../../jobs/nightly.js'
import { ConfigError, UsageError } from '../../../src/model/errors.js'
import { findJob } from '../../../src/operations/run/job.js'

describe('findJob', () => {
  it('finds a job of the program, also when the configuration has one of its name', () => {
    expect(findJob('nightly', [nightly], { nightly: ['expire'] })).toBe(nightly)
  })

  it('makes a job of the steps that the configuration names', () => {
    expect(findJob('weekly', [nightly], { weekly: ['recover', 'verify', 'expire'] })).toMatchObject({ name: 'weekly', steps: ['recover', 'verify', 'expire'] })
  })

  it.each(['monthly', 'constructor', '__proto__'])('knows no job called %s, and says which there are', (name) => {
    const find = (): unknown => findJob(name, [nightly], { weekly: ['verify'] })
    expect(find).toThrow(UsageError)
    expect(find).toThrow(expect.objectContaining({ hint: 'jobs: nightly, weekly' }) as Error)
  })

  it('refuses a step that there is not, and a job that removes before interrupted runs are settled', () => {
    expect(() => findJob('odd', [], { odd: ['recover', 'shred'] })).toThrow(ConfigError)
    expect(() => findJob('odd', [], { odd: ['expire'] })).toThrow(ConfigError)
    expect(() => findJob('odd', [], { odd: ['verify', 'empty-trash'] })).not.toThrow()
  })
})
