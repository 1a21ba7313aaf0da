import { readVersion } from './version.js'

// `--version` is asked by scripts, often: it is answered before anything else is loaded.
const [first, second] = process.argv.slice(2)
if ((first === '--version' || first === '-V') && second === undefined) {
  process.stdout.write(`${readVersion()}\n`)
} else {
  // Node would end with 1, which means findings, when a module cannot be loaded.
  process.exitCode = 2
  const { runProcess } = await import('./process.js')
  await runProcess()
}
