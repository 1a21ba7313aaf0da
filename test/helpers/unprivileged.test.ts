import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from './temp.js'
import { snapshotTree } from './tree.js'
import { asNobody, giveAway, needs, runUnprivileged } from './unprivileged.js'

test('a child program runs without rights and cannot read what is not its own', async (context) => {
  needs(context, 'unprivileged')
  const folder = await temporaryFolder()
  const secret = join(folder, 'secret')
  writeFileSync(secret, 'x', { mode: 0o000 })
  giveAway(folder)
  const source = `import { readFileSync } from 'node:fs'
    try { readFileSync(process.argv.at(-1)); console.log('read') } catch (error) { console.log(error.code); process.exitCode = 7 }`
  expect(await runUnprivileged({ source }, { args: [secret] })).toMatchObject({ stdout: 'EACCES\n', code: 7, signal: null })
})

test('a callback runs without rights, and the rights come back even when it throws', async (context) => {
  needs(context, 'unprivileged')
  const folder = await temporaryFolder()
  const secret = join(folder, 'secret')
  writeFileSync(secret, 'x')
  chmodSync(secret, 0o000)
  giveAway(folder)
  const identity = process.geteuid?.()
  await expect(asNobody(() => readFileSync(secret))).rejects.toThrow(/EACCES/)
  expect(process.geteuid?.()).toBe(identity)
})

test('giving away keeps modes and times of everything', async () => {
  const folder = await temporaryFolder()
  mkdirSync(join(folder, 'sub'), { mode: 0o500 })
  writeFileSync(join(folder, 'tool'), 'x')
  chmodSync(join(folder, 'tool'), 0o4755)
  const before = snapshotTree(folder)
  giveAway(folder)
  expect(snapshotTree(folder)).toEqual(before)
})

test('a temporary folder goes away even when modes inside are 000', async () => {
  const removals: (() => Promise<void>)[] = []
  const folder = await temporaryFolder((remove) => removals.push(remove))
  mkdirSync(join(folder, 'closed', 'inner'), { recursive: true })
  writeFileSync(join(folder, 'closed', 'inner', 'file'), 'x', { mode: 0o000 })
  chmodSync(join(folder, 'closed', 'inner'), 0o000)
  chmodSync(join(folder, 'closed'), 0o000)
  giveAway(folder)
  // The removal has to manage without the rights of root.
  await asNobody(async () => {
    for (const remove of removals) await remove()
  })
  expect(existsSync(join(folder, 'closed'))).toBe(false)
  for (const remove of removals) await remove()
  expect(existsSync(folder)).toBe(false)
})
