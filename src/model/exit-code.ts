/** One row of the exit code contract. Codes are an API: a script may rely on each of them. */
export interface ExitCodeRow {
  readonly code: number
  readonly name: string
  readonly meaning: string
}

export const ExitCode = {
  done: 0,
  findings: 1,
  usage: 2,
  partial: 3,
  brake: 4,
  noStore: 10,
  locked: 11,
  newerFormat: 12,
  noSpace: 28,
  retentionUnknowable: 65,
  putOff: 75,
  interrupted: 130,
  terminated: 143,
} as const

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode]

/** The table that `help exit-codes` prints, in rising order. */
export const exitCodeTable: readonly ExitCodeRow[] = [
  { code: ExitCode.done, name: 'done', meaning: 'Everything asked for was done; nothing at or above --fail-on was found.' },
  { code: ExitCode.findings, name: 'findings', meaning: 'There are findings at or above --fail-on, or nothing matched what was named.' },
  { code: ExitCode.usage, name: 'usage', meaning: 'The command line or the configuration is wrong, or the program itself failed.' },
  { code: ExitCode.partial, name: 'partial', meaning: 'Some items failed; the others were done.' },
  { code: ExitCode.brake, name: 'brake', meaning: 'The plan is larger than the brake allows; nothing was removed.' },
  { code: ExitCode.noStore, name: 'no-store', meaning: 'No store was found, or nothing was recognised in one that is not empty.' },
  { code: ExitCode.locked, name: 'locked', meaning: 'The store is locked by another run, or the session is live.' },
  { code: ExitCode.newerFormat, name: 'newer-format', meaning: 'The store was written in a newer format than this version knows.' },
  { code: ExitCode.noSpace, name: 'no-space', meaning: 'The disk or the quota is full.' },
  { code: ExitCode.retentionUnknowable, name: 'retention-unknowable', meaning: 'A retention setting exists but cannot be used; nothing was removed.' },
  { code: ExitCode.putOff, name: 'put-off', meaning: 'A hook asked to put the run off; nothing was done.' },
  { code: ExitCode.interrupted, name: 'interrupted', meaning: 'Stopped by SIGINT; the item in work was finished.' },
  { code: ExitCode.terminated, name: 'terminated', meaning: 'Stopped by SIGTERM; the item in work was finished.' },
]

/** The code that says most about what went wrong. */
export function worstExit(codes: readonly ExitCode[]): ExitCode {
  return rank.find((code) => codes.includes(code)) ?? ExitCode.done
}

const rank: readonly ExitCode[] = [
  ExitCode.interrupted,
  ExitCode.terminated,
  ExitCode.noSpace,
  ExitCode.usage,
  ExitCode.retentionUnknowable,
  ExitCode.newerFormat,
  ExitCode.noStore,
  ExitCode.locked,
  ExitCode.brake,
  ExitCode.putOff,
  ExitCode.partial,
  ExitCode.findings,
]
