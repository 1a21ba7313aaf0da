import { createHash } from 'node:crypto'
import type { Calendar } from './calendar.js'
import { yamlOf, type YamlValue } from './yaml.js'

export interface KubernetesOptions {
  readonly job: string
  readonly calendar: Calendar
  /** Pods that share the homes between them. */
  readonly shards: number
  readonly image: string
  /** Claim of the volume that holds the homes. */
  readonly claim: string
}

const mount = '/homes'
/** The user in the pods: whoever owns the homes on the volume. */
const userId = 1000

/** One name for a job over the homes of a claim, so that manifests printed again are the same and preview only homes that are new. */
function installationOf(job: string, claim: string): string {
  return createHash('sha256').update(`kubernetes\n${job}\n${claim}`).digest('hex').slice(0, 16)
}

/** A nightly CronJob over all homes of a volume, and the same work as an indexed Job to be started by hand; two documents. */
export function kubernetesManifests(options: KubernetesOptions): string {
  const head = `# rewind-admin over the homes of one volume: the claim ${options.claim} is mounted at ${mount}.
# Set the image to one that has rewind-admin on its path, and runAsUser and runAsGroup to the owner of the homes.
# The first run on each home is a preview, which says so in its log; the next one acts.
`
  return `${head}${manifestsOf(options)
    .map((manifest) => yamlOf(manifest))
    .join('---\n')}`
}

/** The manifests as values (Kubernetes API batch/v1). Each pod takes its own share by `JOB_COMPLETION_INDEX`. */
export function manifestsOf(options: KubernetesOptions): Readonly<Record<string, YamlValue>>[] {
  const { job, calendar } = options
  const name = `rewind-admin-${job}`
  const labels = { 'app.kubernetes.io/name': 'rewind-admin', 'app.kubernetes.io/component': job }
  return [
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name, labels },
      spec: {
        schedule: calendar.expression,
        concurrencyPolicy: 'Forbid',
        startingDeadlineSeconds: 3600,
        successfulJobsHistoryLimit: 3,
        failedJobsHistoryLimit: 3,
        jobTemplate: { metadata: { labels }, spec: jobSpec(options, labels) },
      },
    },
    { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: `${name}-once`, labels }, spec: jobSpec(options, labels) },
  ]
}

function jobSpec(options: KubernetesOptions, labels: Readonly<Record<string, string>>): Readonly<Record<string, YamlValue>> {
  return {
    completionMode: 'Indexed',
    completions: options.shards,
    parallelism: options.shards,
    // A run that ended badly is looked at by a person; the next night tries again.
    backoffLimit: 0,
    ttlSecondsAfterFinished: 604_800,
    template: { metadata: { labels }, spec: podSpec(options) },
  }
}

function podSpec({ job, shards, image, claim }: KubernetesOptions): Readonly<Record<string, YamlValue>> {
  // Which of the shards a pod takes stands in JOB_COMPLETION_INDEX, which an indexed Job sets.
  const words = ['run', job, '--apply', '--scheduled', installationOf(job, claim), '--roots-from', `${mount}/*/.claude`, '--shard', String(shards), '--json']
  return {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    // SIGTERM ends the run after the item in work.
    terminationGracePeriodSeconds: 300,
    // No fsGroup: it would open private files to a group.
    securityContext: { runAsNonRoot: true, runAsUser: userId, runAsGroup: userId, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'rewind-admin',
        image,
        command: ['rewind-admin'],
        args: words,
        env: [{ name: 'HOME', value: '/tmp' }],
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '1Gi' } },
        volumeMounts: [
          { name: 'homes', mountPath: mount },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    volumes: [
      { name: 'homes', persistentVolumeClaim: { claimName: claim } },
      { name: 'tmp', emptyDir: {} },
    ],
  }
}
