import { randomBytes } from 'node:crypto'

const pattern = /^([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{3})Z-[0-9a-f]{4,16}$/

/**
 * Names a run so that runs sort by time: `20261130T031702123Z-9f3c1a`.
 * @param now milliseconds since 1970
 * @param token hex digits, 4 to 16
 */
export function newRunId(now: number, token: string): string {
  return `${new Date(now).toISOString().replace(/[-:.]/g, '')}-${token}`
}

/**
 * Names the nth part of a run that applies several plans, each with its own journal and place in the trash: the name of the run
 * with two more digits, so that `isPartOf` knows them again and they sort in their order.
 * @param nth from 1 to 255
 */
export function partRunId(runId: string, nth: number): string {
  return `${runId}${nth.toString(16).padStart(2, '0')}`
}

/** True when a run is the one that is named, or a part of it. */
export function isPartOf(runId: string, whole: string): boolean {
  return runId === whole || (isRunId(whole) && runId.length === whole.length + 2 && runId.startsWith(whole))
}

/** True for the name of a run. Nothing else becomes part of a path. */
export function isRunId(text: string): boolean {
  return pattern.test(text)
}

/** When a run began, milliseconds since 1970, by its name; `undefined` when it is no such name. */
export function runTime(runId: string): number | undefined {
  const [, year, month, day, hour, minute, second, ms] = pattern.exec(runId) ?? []
  if (year === undefined) return undefined
  const time = Date.parse(`${year}-${month ?? ''}-${day ?? ''}T${hour ?? ''}:${minute ?? ''}:${second ?? ''}.${ms ?? ''}Z`)
  return Number.isNaN(time) ? undefined : time
}

/** Hex digits for a name that is used once. */
export function newToken(): string {
  return randomBytes(8).toString('hex')
}
