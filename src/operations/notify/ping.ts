import { setTimeout as pause } from 'node:timers/promises'
import type { NotifySettings } from '../../settings/notify-settings.js'
import type { Fetch } from './means.js'

/**
 * Asks for the address of an event, if there is one. Nothing but the address is sent: no report, no names, no logs. Gives back
 * what went wrong, in words that do not hold the address, which is as good as a password.
 */
export async function ping(settings: NotifySettings['ping'], event: 'start' | 'success' | 'fail', fetch: Fetch, stop?: AbortSignal): Promise<string | undefined> {
  const address = settings?.[event]
  if (settings === undefined || address === undefined) return undefined
  const over = new AbortController()
  const ended = stop === undefined ? over.signal : AbortSignal.any([over.signal, stop])
  const name = `the ping for ${event}`
  const late = pause(settings.timeoutMs, `${name} had no answer within ${String(settings.timeoutMs / 1000)} s`, { signal: ended }).catch(() => `${name} was given up`)
  try {
    return await Promise.race([ask(address, name, fetch, ended), late])
  } finally {
    over.abort()
  }
}

async function ask(address: string, name: string, fetch: Fetch, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { ok, status, body } = await fetch(address, { method: 'GET', signal })
    await body?.cancel()
    return ok ? undefined : `${name} was answered with status ${String(status)}`
  } catch (error) {
    return `${name} failed: ${reasonOf(error)}`
  }
}

/** The code of a system error below it; messages may hold the address. */
function reasonOf(error: unknown): string {
  const cause: unknown = error instanceof Error ? (error.cause ?? error) : error
  if (typeof cause === 'object' && cause !== null && 'code' in cause && typeof cause.code === 'string') return cause.code
  return error instanceof Error ? error.name : 'unknown error'
}
