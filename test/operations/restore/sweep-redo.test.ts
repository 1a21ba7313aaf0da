import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import { planExpire } from '../../../src/operations/expire.js'
import { carryOut } from '../../../src/operations/removal/carry-out.js'
import { sweepRedo } from '../../../src/operations/restore/sweep-redo.js'
import { emptyTrash } from '../../../src/plan/trash.js'
import { parseConfig } from '../../../src/settings/config.js'
import { emptyRoot, S1, S2, setTime, userLine, writeTranscript } from '../../helpers/store.js'

const day = 24 * 60 * 60 * 1000
const now = Date.parse('2026-11-30T12:00:00.000Z')
const machine = { processStart: () => undefined, processExists: () => false, pidDomain: undefined }

it('redo points go with their session: kept while it is in the store or the trash, gone when nothing can use them', async () => {
  const root = await emptyRoot()
  const old = new Date(now - 40 * day).toISOString()
  const young = new Date(now - 2 * day).toISOString()
  for (const [session, time] of [[S1, old], [S2, young]] as const) {
    const path = writeTranscript(root, '-p', session, [userLine('aaaaaaaa-0000-4000-8000-000000000001', { session, time })])
    setTime(path, Date.parse(time))
  }
  const store = openClaudeCode(root, { home: root, env: {}, platform: 'linux' })
  for (const session of [S1, S2]) {
    mkdirSync(join(store.sidecar, 'redo', session, '1'), { recursive: true, mode: 0o700 })
    writeFileSync(join(store.sidecar, 'redo', session, '1', 'pack'), 'private')
  }
  const config = parseConfig({}, root)
  const removal = planExpire(store, { config, floorMs: day, quietPeriodMs: 0 }, { now, machine })
  await carryOut(store, removal, { now, runId: '20261130T120000000Z-0a1b2c3d', machine })

  expect(sweepRedo(store)).toEqual([])
  await emptyTrash(store, { olderThan: 7 * day, now: now + 8 * day })
  expect(sweepRedo(store)).toEqual([S1])
  expect(existsSync(join(store.sidecar, 'redo', S1))).toBe(false)
  expect(existsSync(join(store.sidecar, 'redo', S2, '1', 'pack'))).toBe(true)
})
