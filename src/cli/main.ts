import { readVersion } from './version.js'

const words = process.argv.slice(2)
const [first, second] = words
if ((first === '--version' || first === '-V') && second === undefined) {
  // It is asked by scripts, often: it is answered before anything else is loaded.
  process.stdout.write(`${readVersion()}\n`)
} else if (!words.includes('hook') || !(await (await import('./hook/process.js')).hooked(words))) {
  // Node would end with 1, which means findings, when a module cannot be loaded.
  process.exitCode = 2
  const { runProcess } = await import('./process.js')
  await runProcess()
}
