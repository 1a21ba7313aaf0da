// Verifies one store in a process of its own and prints the milliseconds of the library call and the peak memory in MB.
import { openClaudeCode } from '../../dist/src/formats/claude-code/index.js'
import { verify } from '../../dist/src/operations/verify/verify.js'

const [, , root, options = '{}'] = process.argv
const store = openClaudeCode(root, { home: root, env: {}, platform: process.platform })
const machine = { processStart: () => undefined, processExists: () => false, pidDomain: undefined }
const start = performance.now()
const report = await verify([store], JSON.parse(options), { now: Date.now(), machine, random: () => Math.random(), threads: 2 })
const milliseconds = performance.now() - start
console.log(JSON.stringify({ milliseconds, megabytes: process.resourceUsage().maxRSS / 1024, exitCode: report.exitCode, summary: report.summary }))
