import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readGates } from '../../../src/formats/claude-code/gates.js'
import { temporaryFolder } from '../../helpers/temp.js'

const setting = 'fileCheckpointingEnabled'
const disable = 'CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING'
const headless = 'CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING'

describe('readGates', () => {
  it('R121: names the default of each gate that is set nowhere', async () => {
    const gates = readGates(await temporaryFolder(), undefined, undefined, {})
    expect(gates).toEqual([
      { gate: setting, value: undefined, from: undefined, effect: 'checkpoints are made (the default)', stops: false },
      { gate: disable, value: undefined, from: undefined, effect: 'no effect', stops: false },
      { gate: headless, value: undefined, from: undefined, effect: 'headless and SDK runs make no checkpoints', stops: false },
    ])
    expect(gates.filter(({ stops }) => stops)).toEqual([])
  })

  it('finds the setting in every layer, with the file', async () => {
    const root = await temporaryFolder()
    const project = join(root, 'p')
    mkdirSync(join(project, '.claude'), { recursive: true })
    writeFileSync(join(root, 'managed.json'), JSON.stringify({ [setting]: true }))
    writeFileSync(join(root, 'settings.json'), JSON.stringify({ [setting]: false }))
    writeFileSync(join(project, '.claude/settings.json'), JSON.stringify({ [setting]: 'no' }))
    const gates = readGates(root, project, join(root, 'managed.json'), {}).filter(({ gate }) => gate === setting)
    expect(gates).toEqual([
      { gate: setting, value: 'true', from: join(root, 'managed.json'), effect: 'checkpoints are made', stops: false },
      { gate: setting, value: '"no"', from: join(project, '.claude/settings.json'), effect: 'not true or false: the agent may ignore it', stops: false },
      { gate: setting, value: 'false', from: join(root, 'settings.json'), effect: 'no checkpoints are made', stops: true },
    ])
    expect(gates.map(({ stops }) => stops)).toEqual([false, false, true])
  })

  it.each([
    [disable, '1', 'no checkpoints are made', true],
    [disable, 'true', 'no checkpoints are made', true],
    [disable, '0', 'no effect', false],
    [disable, '', 'no effect', false],
    [disable, 'maybe', 'not a known switch value; perhaps: no checkpoints are made', true],
    [headless, '1', 'headless and SDK runs make checkpoints', false],
    [headless, 'false', 'headless and SDK runs make no checkpoints', false],
  ])('R121: %s=%j in the environment: %s', async (name, value, effect, stops) => {
    const gates = readGates(await temporaryFolder(), undefined, undefined, { [name]: value, OTHER: '1' })
    const gate = gates.find((one) => one.gate === name)
    expect(gate).toEqual({ gate: name, value: JSON.stringify(value), from: 'environment', effect, stops })
    expect(gates.some((one) => one.stops)).toBe(stops)
  })

  it('finds variables in the env block of the settings too', async () => {
    const root = await temporaryFolder()
    writeFileSync(join(root, 'settings.json'), JSON.stringify({ env: { [disable]: 1, [headless]: '1' } }))
    const gates = readGates(root, undefined, undefined, {}).filter(({ from }) => from !== undefined)
    expect(gates).toEqual([
      { gate: disable, value: '1', from: join(root, 'settings.json'), effect: 'no checkpoints are made', stops: true },
      { gate: headless, value: '"1"', from: join(root, 'settings.json'), effect: 'headless and SDK runs make checkpoints', stops: false },
    ])
  })

  it('passes over settings that cannot be read', async () => {
    const root = await temporaryFolder()
    writeFileSync(join(root, 'settings.json'), `{"${setting}":false,}`)
    expect(readGates(root, undefined, undefined, {}).filter(({ from }) => from !== undefined)).toEqual([])
  })
})
