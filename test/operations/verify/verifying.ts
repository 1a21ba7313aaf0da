import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import type { Machine, Store } from '../../../src/formats/format.js'
import type { Finding } from '../../../src/model/finding.js'
import type { Report } from '../../../src/model/report.js'
import type { VerifyOptions } from '../../../src/operations/verify/options.js'
import { SealStore } from '../../../src/operations/seals.js'
import { verify, type VerifyContext } from '../../../src/operations/verify/verify.js'

/** A time after everything that the helpers write. */
export const now = Date.parse('2026-12-01T00:00:00.000Z')

/** A machine on which nothing runs. */
export const quietMachine: Machine = { processStart: () => undefined, processExists: () => false, pidDomain: 'tests' }

function open(root: string): Store {
  return openClaudeCode(root, { home: `${root}/no-home`, env: {}, platform: 'linux' })
}

/** Verifies one store, in place, on a quiet machine. */
export function check(root: string, options: VerifyOptions = {}, context: Partial<VerifyContext> = {}): Promise<Report> {
  return verify([open(root)], options, { now, machine: quietMachine, random: () => 0, threads: 0, ...context })
}

/** `id place` of each finding, with the severity in front where it is not the usual one; sorted. */
export function found(report: Report): string[] {
  return report.findings.map(({ id, place }) => (place === undefined ? id : `${id} ${place.path}`)).sort()
}

/** Findings of a run that another run did not have. */
export function added(report: Report, before: Report): Finding[] {
  const known = new Set(before.findings.map((each) => JSON.stringify(each)))
  return report.findings.filter((each) => !known.has(JSON.stringify(each)))
}

/** The file that holds the seals of a session. */
export function sealFile(root: string, session: string): string {
  return join(root, '.rewind-admin', 'seals', `${SealStore.shardOf(session)}.json`)
}

/** Names of the backups of a session that are sealed. */
export function sealed(root: string, session: string): string[] {
  const file = JSON.parse(readFileSync(sealFile(root, session), 'utf8')) as { sessions: Record<string, { backups: object }> }
  return Object.keys(file.sessions[session]?.backups ?? {}).sort()
}
