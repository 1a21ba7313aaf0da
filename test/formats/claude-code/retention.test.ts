import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { managedSettingsFile, retentionLayers } from '../../../src/formats/claude-code/retention.js'
import { effectiveRetention, type RetentionLayer } from '../../../src/model/retention.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { asNobody, giveAway, needs } from '../../helpers/unprivileged.js'

interface Home {
  readonly root: string
  readonly project: string
  readonly managed: string
}

async function home(): Promise<Home> {
  const folder = await temporaryFolder()
  const [root, project] = [join(folder, '.claude'), join(folder, 'project')]
  mkdirSync(root)
  mkdirSync(join(project, '.claude'), { recursive: true })
  return { root, project, managed: join(folder, 'managed-settings.json') }
}

function stateOf(layers: readonly RetentionLayer[], layer: string): RetentionLayer['state'] | undefined {
  return layers.find((one) => one.layer === layer)?.state
}

describe('retentionLayers', () => {
  it('R01: reads every layer and names its file', async () => {
    const { root, project, managed } = await home()
    writeFileSync(managed, '{"cleanupPeriodDays":10}')
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":1200,"model":"x"}')
    writeFileSync(join(project, '.claude/settings.json'), '{"cleanupPeriodDays":20}')
    writeFileSync(join(project, '.claude/settings.local.json'), '{}')
    expect(retentionLayers(root, project, managed)).toEqual([
      { layer: 'managed', file: managed, state: { kind: 'days', days: 10 } },
      { layer: 'local', file: join(project, '.claude/settings.local.json'), state: { kind: 'silent' } },
      { layer: 'project', file: join(project, '.claude/settings.json'), state: { kind: 'days', days: 20 } },
      { layer: 'user', file: join(root, 'settings.json'), state: { kind: 'days', days: 1200 } },
    ])
  })

  it('R01: an empty local layer leaves the 1200 days of the user layer in force', async () => {
    const { root, project, managed } = await home()
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":1200}')
    writeFileSync(join(project, '.claude/settings.local.json'), '{}')
    const retention = effectiveRetention(retentionLayers(root, project, managed))
    expect(retention).toMatchObject({ kind: 'known', days: 1200, source: { layer: 'user', file: join(root, 'settings.json') } })
  })

  it('without a project there are the managed and the user layer, both missing in a new home', async () => {
    const { root, managed } = await home()
    expect(retentionLayers(root, undefined, managed).map(({ layer, state }) => [layer, state.kind])).toEqual([
      ['managed', 'missing'],
      ['user', 'missing'],
    ])
    expect(retentionLayers(root, undefined, undefined).map(({ layer }) => layer)).toEqual(['user'])
  })

  it.each([
    ['{"cleanupPeriodDays":3650}', { kind: 'days', days: 3650 }],
    ['\ufeff{"cleanupPeriodDays":365}', { kind: 'days', days: 365 }],
    ['{"cleanupPeriodDays":30.0}', { kind: 'days', days: 30 }],
    ['{"worktree":{"cleanupPeriodDays":3}}', { kind: 'silent' }],
    ['{"CleanupPeriodDays":3}', { kind: 'silent' }],
    ['{}', { kind: 'silent' }],
  ])('R05: settings %j are usable', async (text, state) => {
    const { root } = await home()
    writeFileSync(join(root, 'settings.json'), text)
    expect(stateOf(retentionLayers(root, undefined, undefined), 'user')).toEqual(state)
  })

  it.each([
    ['', /0 bytes/],
    ['{"cleanupPeriodDays":3650,}', /not valid JSON/],
    ['{"cleanupPeriodDays":', /not valid JSON/],
    ['{"cleanupPeriodDays":"365"}', /cleanupPeriodDays: the text "365"/],
    ['{"cleanupPeriodDays":-1}', /cleanupPeriodDays: -1 is negative/],
    ['{"cleanupPeriodDays":1.5}', /cleanupPeriodDays: 1\.5 is not a whole number/],
    ['{"cleanupPeriodDays":null}', /cleanupPeriodDays: null/],
    ['{"cleanupPeriodDays":0}', /cleanupPeriodDays: 0 has meant/],
    ['{"cleanupPeriodDays":[]}', /cleanupPeriodDays: a list/],
    ['{"cleanupPeriodDays":{}}', /cleanupPeriodDays: an object/],
    ['{"cleanupPeriodDays":true}', /cleanupPeriodDays: true/],
    ['{"cleanupPeriodDays":1e999}', /cleanupPeriodDays: Infinity/],
    ['[]', /top level/],
    ['"x"', /top level/],
  ])('R05: settings %j are unusable, whatever the other layers say', async (text, reason) => {
    const { root, managed } = await home()
    writeFileSync(managed, '{"cleanupPeriodDays":10}')
    writeFileSync(join(root, 'settings.json'), text)
    const layers = retentionLayers(root, undefined, managed)
    const state = stateOf(layers, 'user')
    expect(state?.kind === 'unusable' ? state.reason : state).toMatch(reason)
    expect(effectiveRetention(layers).kind).toBe('unknowable')
  })

  it('R05: a folder in place of the settings is unusable', async () => {
    const { root } = await home()
    mkdirSync(join(root, 'settings.json'))
    expect(stateOf(retentionLayers(root, undefined, undefined), 'user')).toEqual({ kind: 'unusable', reason: 'it is a folder' })
  })

  it('R05: settings that may not be read are unusable', async (context) => {
    needs(context, 'unprivileged')
    const { root } = await home()
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":3650}')
    chmodSync(join(root, 'settings.json'), 0)
    giveAway(join(root, '..'))
    const layers = await asNobody(() => retentionLayers(root, undefined, undefined))
    expect(stateOf(layers, 'user')).toEqual({ kind: 'unusable', reason: 'it cannot be read (no permission)' })
  })

  it('R05: settings behind a folder that may not be searched are unusable, not missing', async (context) => {
    needs(context, 'unprivileged')
    const { root, project } = await home()
    chmodSync(join(project, '.claude'), 0)
    giveAway(join(root, '..'))
    const layers = await asNobody(() => retentionLayers(root, project, undefined))
    expect(stateOf(layers, 'project')?.kind).toBe('unusable')
    expect(stateOf(layers, 'local')?.kind).toBe('unusable')
  })

  it('R61: a FIFO in place of the settings is unusable and does not hang', async (context) => {
    needs(context, 'fifo')
    const { root } = await home()
    execFileSync('mkfifo', [join(root, 'settings.json')])
    expect(stateOf(retentionLayers(root, undefined, undefined), 'user')).toEqual({ kind: 'unusable', reason: 'it is not a regular file' })
  })

  it('settings of a terabyte are unusable and not read', async () => {
    const { root } = await home()
    writeFileSync(join(root, 'settings.json'), '')
    truncateSync(join(root, 'settings.json'), 2 ** 40)
    expect(stateOf(retentionLayers(root, undefined, undefined), 'user')?.kind).toBe('unusable')
  })

  it('settings kept elsewhere behind a link count; a link to nothing is unusable', async () => {
    const { root, managed } = await home()
    writeFileSync(join(root, 'kept.json'), '{"cleanupPeriodDays":90}')
    symlinkSync('kept.json', join(root, 'settings.json'))
    symlinkSync('gone.json', managed)
    const layers = retentionLayers(root, undefined, managed)
    expect(stateOf(layers, 'user')).toEqual({ kind: 'days', days: 90 })
    expect(stateOf(layers, 'managed')?.kind).toBe('unusable')
  })

  it('R28: a project on a disk that is not mounted, or below a file, has missing layers', async () => {
    const { root } = await home()
    writeFileSync(join(root, 'file'), '')
    for (const project of ['/no-such-mount/usb/p', join(root, 'file/p'), `/${'x'.repeat(300)}/p`, '/nul\0/p']) {
      const layers = retentionLayers(root, project, undefined)
      expect(layers.map(({ layer, state }) => [layer, state.kind])).toEqual([
        ['local', 'missing'],
        ['project', 'missing'],
        ['user', 'missing'],
      ])
    }
  })

  it.runIf(process.platform !== 'win32')('a recorded folder that is no path of this host is not looked up in our own working folder', async () => {
    const { root } = await home()
    for (const project of ['', '.', 'project', 'C:\\p']) {
      expect(retentionLayers(root, project, undefined).map(({ layer }) => layer)).toEqual(['user'])
    }
  })
})

describe('managedSettingsFile', () => {
  it.each([
    ['linux', '/etc/claude-code/managed-settings.json'],
    ['darwin', '/Library/Application Support/ClaudeCode/managed-settings.json'],
    ['win32', 'C:\\ProgramData\\ClaudeCode\\managed-settings.json'],
  ] as const)('is chosen by the platform (%s)', (platform, file) => {
    expect(managedSettingsFile(platform)).toBe(file)
  })
})
