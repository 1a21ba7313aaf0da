import { describe, expect, it } from 'vitest'
import { programRunner } from '../../src/cli/run-program.js'

const run = programRunner({ PATH: process.env.PATH, X: 'given' })
const shell = (script: string, timeoutMs = 10_000, input?: Buffer): ReturnType<typeof run> => run('sh', ['-c', script], { timeoutMs, ...(input === undefined ? {} : { input }) })

describe('a program', () => {
  it('gets its words, its input byte for byte and its variables, and answers in plain English', async () => {
    const input = Buffer.from([0, 255, 10, 200])
    expect(await run('cat', [], { timeoutMs: 10_000, input })).toEqual({ code: 0, stdout: input, stderr: '' })
    const { stdout, stderr, code } = await shell('echo "$X $LC_ALL ${HOME-none}"; echo bad >&2; exit 7')
    expect([stdout.toString(), stderr, code]).toEqual(['given C none\n', 'bad\n', 7])
  })

  it('that is not there is told from one that failed', async () => {
    expect(await run('no-such-program', [], { timeoutMs: 1000 })).toMatchObject({ code: undefined, failure: 'ENOENT' })
    expect(await shell('kill -9 $$')).toMatchObject({ code: undefined, failure: 'ended by SIGKILL' })
  })

  it('that takes too long is ended, and what it left behind with its output open is not waited for', async () => {
    const { code, failure, stdout } = await shell('echo begun; sleep 60 & sleep 60', 300)
    expect([code, failure, stdout.toString()]).toEqual([undefined, 'no answer within 0.3 s', 'begun\n'])
  })

  it('that does not read its input is judged by its exit code', async () => {
    expect((await shell('exit 3', 10_000, Buffer.alloc(1024 * 1024))).code).toBe(3)
  })

  it('that prints without end is ended', async () => {
    expect((await shell('yes')).failure).toBe('it printed too much')
  })
})
