// Carries out one operation of the library in a process of its own and prints the milliseconds of it and the peak memory in MB.
import { execFileSync } from 'node:child_process'
import { fork, formats, hasAnyChanges, lockStore, newRunId, parseConfig, planRestore, applyRestore, runJob } from '../../dist/src/index.js'
import { nightly } from '../../dist/jobs/nightly.js'

const [, , act, root, home, ...words] = process.argv
const [format] = formats
const store = format.open(root, { home, env: {}, platform: process.platform })
const machine = { processStart: () => undefined, processExists: () => false, pidDomain: undefined }
const now = Date.now()
const token = '0a1b2c3d4e5f6071'
const lock = { pid: process.pid, host: 'bench', processes: machine, waitMs: 0 }
const syncFileSystem = (folder) => execFileSync('sync', ['-f', folder])

const acts = {
  async fork([session, target]) {
    const held = await lockStore(store, { ...lock, command: 'fork', now, token })
    const report = await fork(store, session, target, {}, { now, pid: process.pid, token, processExists: () => false, syncFileSystem })
    held.release()
    if (report.exitCode !== 0) throw new Error(JSON.stringify(report))
  },
  async rewind([session, message]) {
    const { reading, checkpoint } = found(session, message)
    const held = await lockStore(store, { ...lock, command: 'rewind', now, token })
    const result = applyRestore(planRestore(store, reading, checkpoint, { home }), { sidecar: store.sidecar, now, syncFileSystem })
    held.release()
    if (result.exitCode !== 0 || result.changed.length !== reading.history.tracked.size) throw new Error(JSON.stringify(result.failed))
  },
  async changes([session, message]) {
    const { reading, checkpoint } = found(session, message)
    if (hasAnyChanges(store, reading, checkpoint, { home })) throw new Error('something would change')
  },
  async nightly() {
    const context = { apply: true, runId: newRunId(now, '0a1b2c3d'), config: parseConfig({}, home), lock, now, monotonic: () => performance.now(), machine, random: () => 0, threads: 2 }
    const report = await runJob([store], nightly, context)
    if (report.exitCode !== 0) throw new Error(JSON.stringify({ ...report, kept: [] }))
  },
}

function found(session, message) {
  const ref = store.inventory().sessions.find(({ id }) => id === session)
  const reading = store.read(ref, { now })
  return { reading, checkpoint: reading.history.checkpoints.find(({ id }) => id === message) }
}

const start = performance.now()
await acts[act](words)
const milliseconds = performance.now() - start
console.log(JSON.stringify({ milliseconds, megabytes: process.resourceUsage().maxRSS / 1024 }))
