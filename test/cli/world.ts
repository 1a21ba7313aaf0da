import { dirname, join } from 'node:path'
import { runCli, type CliHost, type CliResult } from '../../src/cli/run-cli.js'
import { uuidOf } from '../helpers/identity.js'
import { snapshotTree, type Tree, type TreeNode } from '../helpers/tree.js'
import { S1, S2, emptyRoot, setTime, snap, userLine, writeBackup, writeStoreFile, writeTranscript } from '../helpers/store.js'

/** The clock of these tests, as `--now` takes it. */
export const nowText = '2026-11-30T12:00:00.000Z'
export const now = Date.parse(nowText)
export const dayMs = 86_400_000

/** The JSON envelope as a caller reads it. */
export interface Envelope {
  readonly summary: Readonly<Record<string, unknown>>
  readonly findings: readonly Readonly<Record<string, unknown>>[]
  readonly plan: readonly Readonly<Record<string, unknown>>[]
  readonly kept: readonly Readonly<Record<string, unknown>>[]
  readonly errors: readonly Readonly<Record<string, unknown>>[]
  readonly exitCode: number
  readonly applied: boolean
  readonly runId?: string
  readonly root: string | readonly string[]
  readonly [field: string]: unknown
}

/** Command lines of one user, as the program's own entry runs them. */
export interface Cli {
  readonly home: string
  (...argv: readonly string[]): Promise<CliResult>
  /** The same with `--json`, parsed. */
  json(...argv: readonly string[]): Promise<Envelope>
}

/** Command lines in a home folder, with the fixed clock unless `--now` is among the words. */
export function cliIn(home: string, given: Partial<CliHost> = {}): Cli {
  const run = (...argv: readonly string[]): Promise<CliResult> =>
    runCli(argv.includes('--now') ? argv : [...argv, '--now', nowText], { env: {}, cwd: home, home, ...given })
  return Object.assign(run, {
    home,
    json: async (...argv: readonly string[]): Promise<Envelope> => {
      const { stdout, stderr, exitCode } = await run(...argv, '--json')
      const envelope = JSON.parse(stdout) as Envelope
      if (envelope.exitCode !== exitCode) throw new Error(`the envelope says ${String(envelope.exitCode)}, the process ${String(exitCode)}: ${stderr}`)
      return envelope
    },
  })
}

export interface Notes {
  readonly home: string
  readonly root: string
  readonly cli: Cli
  /** Sizes in bytes of the two transcripts. */
  readonly transcripts: { readonly new: number; readonly old: number }
  /** Sizes in bytes of their history lines, line ends left out. */
  readonly history: { readonly new: number; readonly old: number }
}

/** Message ids of the store that `notes` makes, oldest first; the last one is in the old session. */
export const [M1, M2, M3, M0] = ['m1', 'm2', 'm3', 'm0'].map(uuidOf) as [string, string, string, string]
// sha256('/home/u/notes/a.md') and sha256('/home/u/notes/b.md'), 16 digits each (formats/claude-code section 3).
export const hashA = 'b6001c86ace16e89'
export const hashB = '8264f008d4d49436'

export const newTime = '2026-11-29T09:00:00.000Z'
export const oldTime = '2026-10-01T09:00:00.000Z'

/**
 * A store with two sessions of `/home/u/notes`, whose every byte is known. S1, of yesterday: three checkpoints; `a.md` is
 * there from the start and edited twice (versions 1 and 2), `b.md` is created after the second. S2, 60 days old: one
 * checkpoint with version 1 of `a.md`. The agent keeps 30 days.
 */
export async function notes(): Promise<Notes> {
  const root = await emptyRoot()
  writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays":30}', { mtime: newTime })
  const at = { session: S1, cwd: '/home/u/notes', time: newTime }
  const young = [
    userLine(M1, { ...at, text: 'start the list' }),
    snap(M1, { 'a.md': `${hashA}@v1` }, newTime),
    userLine(M2, { ...at, parent: M1, text: 'add the wren' }),
    snap(M2, { 'a.md': `${hashA}@v2`, 'b.md': null }, newTime),
    userLine(M3, { ...at, parent: M2, text: 'is it complete?' }),
    snap(M3, { 'a.md': `${hashA}@v2`, 'b.md': `${hashB}@v2` }, newTime),
  ]
  const old = [userLine(M0, { ...at, session: S2, time: oldTime, text: 'old list' }), snap(M0, { 'a.md': `${hashA}@v1` }, oldTime)]
  writeTranscript(root, '-home-u-notes', S1, young, { mtime: newTime })
  writeTranscript(root, '-home-u-notes', S2, old, { mtime: oldTime })
  writeBackup(root, S1, `${hashA}@v1`, 'robin\n', { mtime: newTime })
  writeBackup(root, S1, `${hashA}@v2`, 'robin\nwren\n', { mtime: newTime })
  writeBackup(root, S1, `${hashB}@v2`, 'heron\n', { mtime: newTime })
  writeBackup(root, S2, `${hashA}@v1`, 'robin\n', { mtime: oldTime })
  for (const folder of ['projects/-home-u-notes', `file-history/${S1}`, `file-history/${S2}`, 'projects', 'file-history', '.']) setTime(join(root, folder), oldTime)
  const size = (lines: readonly string[]): number => lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)
  const home = dirname(root)
  const history = (lines: readonly string[]): number => lines.reduce((sum, line, index) => (index % 2 === 1 ? sum + Buffer.byteLength(line) : sum), 0)
  return { home, root, cli: cliIn(home), transcripts: { new: size(young), old: size(old) }, history: { new: history(young), old: history(old) } }
}

/** Old sessions of one project; returns their ids. */
export function manyOld(root: string, count: number, label = 'old'): string[] {
  return Array.from({ length: count }, (_, index) => {
    const id = uuidOf(`${label}/${String(index)}`)
    writeTranscript(root, '-p', id, [userLine('m', { session: id, cwd: '/home/u/p', time: oldTime })], { mtime: oldTime })
    return id
  })
}

/** A session of yesterday. */
export function young(root: string, id = S1): void {
  writeTranscript(root, '-p', id, [userLine('m', { session: id, cwd: '/home/u/p', time: newTime })], { mtime: newTime })
  setTime(root, newTime)
}

/** What the agent sees of its store: everything but our own folder, which adds one link to the root. */
export function agentsView(root: string): Record<string, TreeNode> {
  const tree: Tree = snapshotTree(root)
  const rest = Object.entries(tree).filter(([path]) => path !== '.rewind-admin' && !path.startsWith('.rewind-admin/'))
  return Object.fromEntries(rest.map(([path, node]) => [path, path === '.' ? { ...node, nlink: 0 } : node]))
}
