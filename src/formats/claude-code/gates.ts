import { isFields } from '../../model/fields.js'
import type { Gate } from '../format.js'
import { readSettings, settingsFiles } from './retention.js'

type Environment = Readonly<Record<string, string | undefined>>

const settingKey = 'fileCheckpointingEnabled'
const disableKey = 'CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING'
const headlessKey = 'CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING'

const variables: Readonly<Record<string, { on: string; off: string; unset: string }>> = {
  [disableKey]: { on: 'no checkpoints are made', off: 'no effect', unset: 'no effect' },
  [headlessKey]: {
    on: 'headless and SDK runs make checkpoints',
    off: 'headless and SDK runs make no checkpoints',
    unset: 'headless and SDK runs make no checkpoints',
  },
}

/**
 * Every place that sets one of the three gates of formats/claude-code section 7 (R120, R121), and one row with the
 * default for a gate that is set nowhere. Variables count in the environment passed in and in the `env` block of each
 * settings file. A settings file that cannot be read is passed over here; the retention layers report it.
 */
export function readGates(root: string, project: string | undefined, managedFile: string | undefined, env: Environment): Gate[] {
  const settings: Gate[] = []
  const found: Gate[] = Object.keys(variables).flatMap((name) => variableGate(name, env[name], 'environment'))
  for (const { file } of settingsFiles(root, project, managedFile)) {
    const read = readSettings(file)
    if (read.kind !== 'object') continue
    if (Object.hasOwn(read.value, settingKey)) settings.push(settingGate(read.value[settingKey], file))
    const block = read.value.env
    if (!isFields(block)) continue
    for (const name of Object.keys(variables)) {
      if (Object.hasOwn(block, name)) found.push(...variableGate(name, block[name], file))
    }
  }
  if (settings.length === 0) {
    settings.push({ gate: settingKey, value: undefined, from: undefined, effect: 'checkpoints are made (the default)', stops: false })
  }
  const unset = Object.entries(variables)
    .filter(([name]) => !found.some((gate) => gate.gate === name))
    .map(([gate, { unset: effect }]): Gate => ({ gate, value: undefined, from: undefined, effect, stops: false }))
  return [...settings, ...found, ...unset]
}

function settingGate(value: unknown, from: string): Gate {
  const effect =
    value === true ? 'checkpoints are made' : value === false ? 'no checkpoints are made' : 'not true or false: the agent may ignore it'
  return { gate: settingKey, value: JSON.stringify(value), from, effect, stops: value === false }
}

function variableGate(name: string, value: unknown, from: string): Gate[] {
  const effects = variables[name]
  if (value === undefined || effects === undefined) return []
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).trim().toLowerCase()
  const effect = ['1', 'true', 'yes', 'on'].includes(text)
    ? effects.on
    : ['', '0', 'false', 'no', 'off'].includes(text)
      ? effects.off
      : `not a known switch value; perhaps: ${effects.on}`
  return [{ gate: name, value: JSON.stringify(value), from, effect, stops: name === disableKey && effect !== effects.off }]
}
