import pLimit from 'p-limit'
import { describe, expect, it } from 'vitest'
import { startRecording, type Recording } from '../helpers/recording.js'
import { recordAndDie, type DyingAct } from './dying.js'

/** Every how many acts on the disk a recorder is killed. `REWIND_ADMIN_KILLS=200` is the long run. */
const stride = process.env.REWIND_ADMIN_KILLS === undefined ? 2 : 1

/** Two turns recorded, and changes that the next one has to record. */
async function prepared(): Promise<Recording> {
  const recording = await startRecording()
  recording.byHand('f', 'A')
  await recording.recorder.beginTurn('m1')
  await recording.edit('f', 'B')
  await recording.recorder.beginTurn('m2')
  recording.byHand('f', 'C')
  recording.byHand('g', 'G')
  return recording
}

async function errorsOf(recording: Recording): Promise<readonly string[]> {
  return (await recording.findings()).filter(({ severity }) => severity === 'error').map(({ id }) => id)
}

describe.each<Omit<DyingAct, 'at'>>([{ act: 'beginTurn', argument: 'm3' }, { act: 'beforeEdit', argument: 'g' }])('killed at any act of $act', ({ act, argument }) => {
  it('the session verifies, old messages give their bytes, and the next recorder goes on', async () => {
    const count = (await recordAndDie(await prepared(), { act, ...(argument === undefined ? {} : { argument }), at: Number.POSITIVE_INFINITY })) ?? 0
    expect(count).toBeGreaterThan(10)
    const limit = pLimit(2)
    const points = Array.from({ length: Math.ceil(count / stride) }, (_, index) => 1 + index * stride)
    await Promise.all(points.map((at) => limit(() => diesAt(at, act, argument ?? ''))))
  })
})

async function diesAt(at: number, act: DyingAct['act'], argument: string): Promise<void> {
  const recording = await prepared()
  expect(await recordAndDie(recording, { act, argument, at })).toBeUndefined()
  expect(await errorsOf(recording), `at ${String(at)}`).toEqual([])

  // The next process finds what it left, and the same act ends as if nothing had happened.
  const next = recording.open()
  if (act === 'beginTurn') await next.beginTurn(argument)
  else await next.beforeEdit(argument)
  await next.beginTurn('m4')
  recording.byHand('f', 'later')
  recording.byHand('g', 'later')
  for (const [message, f, g] of [['m1', 'A', 'G'], ['m2', 'B', 'G'], ['m4', 'C', 'G']] as const) {
    recording.rewind(message)
    expect(recording.read('f'), `${message} at ${String(at)}`).toBe(f)
    // Not tracked by a turn alone: then it is left as it is.
    expect(recording.read('g'), `${message} at ${String(at)}`).toBe(act === 'beforeEdit' ? g : 'later')
  }
  expect(await errorsOf(recording), `after it, at ${String(at)}`).toEqual([])
}
