import * as v from 'valibot'
import { isAbsolutePath } from '../model/project-path.js'
import { duration, object, text } from './shapes.js'

/** Who is told about jobs, and how. Nobody, unless the configuration says so. */
export interface NotifySettings {
  /** Addresses that are asked for when a job begins, and when it ends well or not. Nothing else is sent. */
  readonly ping?: { readonly start?: string; readonly success?: string; readonly fail?: string; readonly timeoutMs: number }
  readonly before?: HookSettings
  readonly after?: HookSettings
  /** The folder of node_exporter's textfile collector; absolute. */
  readonly metrics?: string
}

/** A program that is started without a shell, its words as they are, and how long it may take in milliseconds. */
export interface HookSettings {
  readonly command: readonly string[]
  readonly timeoutMs: number
}

const address = v.pipe(text, v.check(isAddress, 'must be an http or https address'))
const timeout = v.pipe(duration, v.check((value) => value > 0, 'must be longer than nothing'))

const ping = v.strictObject({
  url: v.optional(address),
  start: v.optional(address),
  success: v.optional(address),
  fail: v.optional(address),
  timeout: v.optional(timeout, '10s'),
})
const hook = v.strictObject({
  command: v.pipe(v.array(text), v.nonEmpty('must name a program')),
  timeout: v.optional(timeout, '60s'),
})
const hookObject = v.pipe(object<v.InferInput<typeof hook>>(), hook)
const notifyObject = v.strictObject({
  ping: v.optional(v.pipe(object<v.InferInput<typeof ping>>(), ping)),
  before: v.optional(hookObject),
  after: v.optional(hookObject),
  metrics: v.optional(v.pipe(text, v.check(isAbsolutePath, 'must be an absolute path'))),
})

/** The section `notify` of the configuration. */
export const notify = v.pipe(object<v.InferInput<typeof notifyObject>>(), notifyObject, v.transform(toSettings))

/** The keys that may stand in a part of the section. */
export function notifyKeys(part: unknown): string[] {
  if (part === 'ping') return Object.keys(ping.entries)
  if (part === 'before' || part === 'after') return Object.keys(hook.entries)
  return Object.keys(notifyObject.entries)
}

function toSettings(given: v.InferOutput<typeof notifyObject>): NotifySettings {
  const { before, after, metrics } = given
  return {
    ...(given.ping === undefined ? {} : { ping: toPing(given.ping) }),
    ...(before === undefined ? {} : { before: { command: before.command, timeoutMs: before.timeout } }),
    ...(after === undefined ? {} : { after: { command: after.command, timeoutMs: after.timeout } }),
    ...(metrics === undefined ? {} : { metrics }),
  }
}

/** One `url` stands for three, as Healthchecks and those who follow it have them: itself for success, `/start` and `/fail` below it. */
function toPing(given: v.InferOutput<typeof ping>): NonNullable<NotifySettings['ping']> {
  const { url } = given
  const start = given.start ?? (url === undefined ? undefined : below(url, 'start'))
  const success = given.success ?? url
  const fail = given.fail ?? (url === undefined ? undefined : below(url, 'fail'))
  return {
    ...(start === undefined ? {} : { start }),
    ...(success === undefined ? {} : { success }),
    ...(fail === undefined ? {} : { fail }),
    timeoutMs: given.timeout,
  }
}

function below(address: string, name: string): string {
  const url = new URL(address)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${name}`
  return url.href
}

function isAddress(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}
