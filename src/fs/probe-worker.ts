import { parentPort } from 'node:worker_threads'
import { probeFolder, tryDigest } from './probe.js'
import type { PoolAnswer, PoolTask } from './probe-pool.js'

const port = parentPort
if (port === null) throw new Error('this file runs in a worker thread only')

port.on('message', (task: PoolTask) => {
  const answer: PoolAnswer =
    task.kind === 'folders' ? { kind: 'folders', folders: task.jobs.map(probeFolder) } : { kind: 'file', found: tryDigest(task.path) }
  port.postMessage(answer)
})
