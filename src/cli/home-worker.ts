/**
 * The process of one home of a fleet. It gets its task by message, gives up the rights of root for those of the owner, runs the job
 * there and answers. All that it needs is loaded by then, since the owner may not be able to read our files.
 */
import { randomBytes } from 'node:crypto'
import { thisMachine } from '../fs/machine.js'
import { errorWords } from '../operations/error-words.js'
import { runHome, type HomeTask } from '../operations/fleet/home.js'
import { newRunId } from '../plan/run-id.js'
import { StoppedError } from './errors.js'
import type { HomeAnswer } from './home-messages.js'
import { lockOwner } from './workplace.js'

const controller = new AbortController()

function stop(): void {
  controller.abort(new StoppedError('SIGTERM'))
}

process.on('SIGTERM', stop)
// A terminal sends it to all of us; whoever started us says when to end.
process.on('SIGINT', () => undefined)
process.on('disconnect', stop)

process.once('message', (task: HomeTask) => {
  void answer(task).then((message) => {
    process.send?.(message, () => {
      process.disconnect()
    })
  })
})

async function answer(task: HomeTask): Promise<HomeAnswer> {
  try {
    become(task.owner)
    const machine = thisMachine()
    const report = await runHome(task, machine, process.platform, {
      runId: newRunId(task.now, randomBytes(4).toString('hex')),
      lock: lockOwner(machine),
      monotonic: () => performance.now(),
      machine,
      random: () => Math.random(),
      // Homes are worked on side by side instead, and a thread could not load its file any more.
      threads: 0,
      signal: controller.signal,
    })
    return { kind: 'report', report }
  } catch (error) {
    return { kind: 'error', ...errorWords(error) }
  }
}

/** Root works on the home of another user as that user, so that no link in it leads further than its owner could go. */
function become({ uid, gid }: HomeTask['owner']): void {
  if (process.geteuid?.() !== 0 || uid === 0) return
  process.setgroups?.([gid])
  process.setgid?.(gid)
  process.setuid?.(uid)
}
