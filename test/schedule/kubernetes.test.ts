import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { parseCalendar } from '../../src/schedule/calendar.js'
import { kubernetesManifests, manifestsOf } from '../../src/schedule/kubernetes.js'
import { yamlOf } from '../../src/schedule/yaml.js'

const options = { job: 'nightly', calendar: parseCalendar('17 3 * * *'), shards: 4, image: 'images.example/rewind-admin:1.0', claim: 'homes' }

/*
 * The part of the Kubernetes API that is used, as its reference has it (batch/v1 CronJob and Job, core/v1 Pod). A field that is not
 * listed is an error, as the server with strict field validation has it; `!` marks those that must be there.
 */
type Shape = 'text' | 'count' | 'flag' | 'quantity' | 'name' | readonly [Shape] | { readonly [field: string]: Shape | readonly string[] }

const meta: Shape = { 'name!': 'name', 'labels': { '*': 'text' } }
const labelled: Shape = { labels: { '*': 'text' } }
const pod: Shape = {
  'restartPolicy!': ['Never', 'OnFailure'],
  'automountServiceAccountToken': 'flag',
  'terminationGracePeriodSeconds': 'count',
  'securityContext': { runAsNonRoot: 'flag', runAsUser: 'count', runAsGroup: 'count', seccompProfile: { 'type!': ['RuntimeDefault', 'Localhost', 'Unconfined'] } },
  'containers!': [
    {
      'name!': 'name',
      'image!': 'text',
      'command': ['text'],
      'args': ['text'],
      'env': [{ 'name!': 'text', 'value': 'text' }],
      'securityContext': { allowPrivilegeEscalation: 'flag', readOnlyRootFilesystem: 'flag', capabilities: { drop: ['text'] } },
      'resources': { requests: { '*': 'quantity' }, limits: { '*': 'quantity' } },
      'volumeMounts': [{ 'name!': 'name', 'mountPath!': 'text' }],
    },
  ],
  'volumes': [{ 'name!': 'name', 'persistentVolumeClaim': { 'claimName!': 'name' }, 'emptyDir': {} }],
}
const jobSpec: Shape = {
  'completionMode': ['Indexed', 'NonIndexed'],
  'completions': 'count',
  'parallelism': 'count',
  'backoffLimit': 'count',
  'ttlSecondsAfterFinished': 'count',
  'template!': { 'metadata': labelled, 'spec!': pod },
}
const kinds: Readonly<Record<string, Shape>> = {
  Job: { 'apiVersion!': ['batch/v1'], 'kind!': ['Job'], 'metadata!': meta, 'spec!': jobSpec },
  CronJob: {
    'apiVersion!': ['batch/v1'],
    'kind!': ['CronJob'],
    'metadata!': meta,
    'spec!': {
      'schedule!': 'text',
      'concurrencyPolicy': ['Allow', 'Forbid', 'Replace'],
      'startingDeadlineSeconds': 'count',
      'successfulJobsHistoryLimit': 'count',
      'failedJobsHistoryLimit': 'count',
      'jobTemplate!': { 'metadata': labelled, 'spec!': jobSpec },
    },
  },
}

const simple: Readonly<Record<string, (value: unknown) => boolean>> = {
  text: (value) => typeof value === 'string' && value !== '',
  count: (value) => Number.isInteger(value) && Number(value) >= 0,
  flag: (value) => typeof value === 'boolean',
  quantity: (value) => typeof value === 'string' && /^[0-9]+(m|Ki|Mi|Gi)?$/.test(value),
  name: (value) => typeof value === 'string' && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value),
}

/** Everything in a value that does not fit the shape, by its path. */
function misfits(value: unknown, shape: Shape | readonly string[], path = ''): string[] {
  if (typeof shape === 'string') return simple[shape]?.(value) === true ? [] : [`${path} is no ${shape}`]
  if (Array.isArray(shape)) {
    const item = (shape as readonly Shape[])[0] ?? 'text'
    if (typeof item === 'string' && simple[item] === undefined) return (shape as readonly string[]).includes(String(value)) ? [] : [`${path} is none of ${shape.join(', ')}`]
    return Array.isArray(value) ? value.flatMap((one, index) => misfits(one, item, `${path}[${String(index)}]`)) : [`${path} is no list`]
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path} is no map`]
  const fields = shape as Readonly<Record<string, Shape>>
  const missing = Object.keys(fields).filter((name) => name.endsWith('!') && !(name.slice(0, -1) in value))
  const own = Object.entries(value).flatMap(([name, inner]) => {
    const known = fields[`${name}!`] ?? fields[name] ?? fields['*']
    return known === undefined ? [`${path}.${name} is not a field`] : misfits(inner, known, `${path}.${name}`)
  })
  return [...missing.map((name) => `${path}.${name.slice(0, -1)} is missing`), ...own]
}

describe('the manifests', () => {
  const [cron = {}, job = {}] = manifestsOf(options)

  it('are a CronJob and an indexed Job that fit the API, field by field', () => {
    expect(manifestsOf(options).map((manifest) => manifest.kind)).toEqual(['CronJob', 'Job'])
    for (const manifest of [cron, job]) expect(misfits(manifest, kinds[JSON.stringify(manifest.kind).replaceAll('"', '')] ?? {})).toEqual([])
  })

  it('are refused by the check when they are wrong', () => {
    const shape = kinds.Job ?? {}
    expect(misfits({ ...job, spec: { template: {} } }, shape)).toEqual(['.spec.template.spec is missing'])
    expect(misfits({ ...job, kind: 'Pod', extra: 1 }, shape)).toEqual(['.kind is none of Job', '.extra is not a field'])
    expect(misfits({ ...job, metadata: { name: 'Not_A_Name' } }, shape)).toEqual(['.metadata.name is no name'])
  })

  it('run without root, without new rights, and on a root file system that cannot be written; private modes stay', () => {
    const inner = (job.spec as { template: { spec: Record<string, unknown> } }).template.spec
    const [container] = inner.containers as Record<string, unknown>[]
    expect(inner.securityContext).toEqual({ runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, seccompProfile: { type: 'RuntimeDefault' } })
    expect(container?.securityContext).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } })
    expect(inner.automountServiceAccountToken).toBe(false)
    const mounts = (container?.volumeMounts as { name: string }[]).map(({ name }) => name)
    expect((inner.volumes as { name: string }[]).map(({ name }) => name)).toEqual(mounts)
  })

  it('split the homes into as many shards as there are pods, and begin with a preview of each home', () => {
    const text = kubernetesManifests(options)
    expect([...text.matchAll(/- "--shard"\n +- "4"/g)]).toHaveLength(2)
    expect([...text.matchAll(/completions: 4\n +parallelism: 4/g)]).toHaveLength(2)
    expect(text).toContain('The first run on each home is a preview')
    // The same name in both, whenever they are printed, and another one for other homes: notes of previews lie in the homes.
    const installations = (of: typeof options): string[] => [...kubernetesManifests(of).matchAll(/- "--scheduled"\n +- "([0-9a-f]{16})"/g)].map(([, name = '']) => name)
    const [name = '', ...others] = installations(options)
    expect([others, installations(options)]).toEqual([[name], [name, name]])
    expect(installations({ ...options, shards: 8, image: 'x' })).toEqual([name, name])
    expect([...installations({ ...options, claim: 'other' }), ...installations({ ...options, job: 'integrity' })]).not.toContain(name)
    expect(text).toContain('schedule: "17 3 * * *"')
    expect(text).toContain('concurrencyPolicy: "Forbid"')
  })
})

describe('the YAML', () => {
  function parsed(text: string): unknown {
    return parseAllDocuments(text).map((document) => {
      if (document.errors.length > 0) throw document.errors[0] ?? new Error('not YAML')
      return document.toJS() as unknown
    })
  }

  it('is read by a parser as what was meant', () => {
    expect(parsed(kubernetesManifests(options))).toEqual(manifestsOf(options))
  })

  it('leaves nothing to be guessed: words that look like numbers or flags stay words', () => {
    const value = { a: 'no', b: '1e3', c: "it's: #\n", d: [], e: {}, f: [{ g: [1, true] }, [['x'], 'y']], h: { i: { j: 'é' } } }
    expect(parsed(yamlOf(value))).toEqual([value])
  })
})
