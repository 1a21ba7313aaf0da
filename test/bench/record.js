// Records in one process, as an agent with a recorder does, and prints the seconds of each act beside those of its base.
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, copyFileSync, fsyncSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openRecorder, thisMachine } from '../../dist/src/index.js'

const [, , what, home, count] = process.argv
const cwd = join(home, 'project')
mkdirSync(cwd, { recursive: true })
const recorder = openRecorder({
  root: join(home, 'records'),
  sessionId: randomUUID(),
  cwd,
  now: () => Date.now(),
  uuid: randomUUID,
  process: { pid: process.pid, host: 'bench', table: thisMachine() },
})
await recorder.sessionStart()
await recorder.beginTurn('first')

async function secondsOf(act) {
  const start = performance.now()
  await act()
  return (performance.now() - start) / 1000
}

function make(name, bytes) {
  writeFileSync(join(cwd, name), Buffer.alloc(bytes, `${name} bittern `))
}

function copied(name) {
  copyFileSync(join(cwd, name), join(home, name))
  const fd = openSync(join(home, name), 'r+')
  fsyncSync(fd)
  closeSync(fd)
}

const pairs = []
if (what === 'edits') {
  for (let run = 0; run < Number(count); run += 1) {
    const name = `${run}.bin`
    make(name, 100_000)
    const ours = await secondsOf(async () => {
      if ((await recorder.beforeEdit(name)).outcome !== 'recorded') throw new Error(`${name} was not recorded`)
    })
    pairs.push({ ours, base: await secondsOf(() => copied(name)) })
  }
} else {
  for (let file = 0; file < 2000; file += 1) {
    make(`${file}.txt`, 2000)
    await recorder.beforeEdit(`${file}.txt`)
  }
  // A clock of a file system is coarse: what was written a moment ago is read again.
  await pause(2500)
  await recorder.beginTurn('settled')
  for (let run = 0; run < Number(count); run += 1) {
    const ours = await secondsOf(async () => {
      if ((await recorder.beginTurn(`turn ${run}`)).changed.length > 0) throw new Error('something changed')
    })
    pairs.push({ ours, base: await secondsOf(() => execFileSync('find', [cwd, '-printf', '%p %s %T@ %C@ %i %m\n'], { maxBuffer: 1 << 28 })) })
  }
}
console.log(JSON.stringify(pairs))
