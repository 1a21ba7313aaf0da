// Reads the only session of a store in a process of its own and prints milliseconds and peak memory in MB.
import { openClaudeCode } from '../../dist/src/formats/claude-code/index.js'

const [, , root] = process.argv
const store = openClaudeCode(root, { home: root, env: {}, platform: process.platform })
const [session] = store.inventory().sessions
const start = performance.now()
const reading = store.read(session, { now: Date.now() })
const milliseconds = performance.now() - start
console.log(JSON.stringify({ milliseconds, megabytes: process.resourceUsage().maxRSS / 1024, checkpoints: reading.history.checkpoints.length }))
