import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { thisMachine } from '../../../src/fs/machine.js'
import { lockOwner } from '../../../src/cli/workplace.js'
import { lockStore } from '../../../src/plan/sidecar.js'
import { agentsView, notes, now, nowText } from '../world.js'

describe('a store that is locked', () => {
  it('by a running process ends every command that acts with 11, names the holder, and changes nothing', async () => {
    const { root, cli } = await notes()
    const { runId = '' } = await cli.json('expire', '--apply', '--root', root)
    const before = agentsView(root)
    const held = await lockStore({ root, sidecar: join(root, '.rewind-admin') }, { ...lockOwner(thisMachine()), command: 'the test', now, token: 'ab', waitMs: 0 })
    const lines = ['expire --apply', 'cap --apply', 'purge /home/u/notes --apply', 'trash empty --apply', `trash restore ${runId}`, 'run nightly --apply', 'verify --seal']
    const results = await Promise.all(lines.map(async (line) => ({ line, ...(await cli(...line.split(' '), '--root', root)) })))
    for (const { line, exitCode, stdout, stderr } of results) {
      expect([line, exitCode]).toEqual([line, 11])
      expect(stdout + stderr).toContain(`locked by process ${String(process.pid)}`)
    }
    // Whoever only looks does not need the lock.
    for (const line of ['status', 'list', 'verify', 'doctor', 'expire', 'trash list']) expect((await cli(...line.split(' '), '--root', root)).exitCode).toBe(0)
    expect(agentsView(root)).toEqual(before)
    held.release()
    expect((await cli('trash', 'restore', runId, '--root', root)).exitCode).toBe(0)
  })

  it('by a process that is gone is taken over without a word', async () => {
    const { root, cli } = await notes()
    mkdirSync(join(root, '.rewind-admin'), { mode: 0o700 })
    const { host } = lockOwner(thisMachine())
    writeFileSync(join(root, '.rewind-admin/lock'), JSON.stringify({ pid: 4194304, host, token: 'ab', command: 'expire', acquiredAt: nowText }), { mode: 0o600 })
    const { exitCode, stderr } = await cli('expire', '--apply', '--root', root)
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(existsSync(join(root, '.rewind-admin/lock'))).toBe(false)
  })
})
