import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { corpusStores } from './corpus.js'
import { temporaryFolder } from './temp.js'

/** What stands at a path in the plugin's own results. */
export interface PiNode {
  readonly type: 'file' | 'dir' | 'symlink'
  readonly mode?: string
  readonly size?: number
  readonly sha256?: string
  readonly nlink?: number
  readonly target?: string
}

type PiTree = Readonly<Record<string, PiNode>>

export interface PiRestore {
  readonly session: string
  readonly cwd: string
  /** Of a damaged snapshot there is nothing but its place. */
  readonly target: { readonly index: number; readonly id: string; readonly key: string; readonly kind: string; readonly damaged?: true }
  readonly result?: { readonly changed: readonly string[]; readonly skipped: readonly { readonly path: string; readonly reason: string }[] }
  readonly changed: Readonly<Record<string, PiNode | null>>
  readonly tree: PiTree
}

interface PiMessage {
  readonly session: string
  readonly entryId: string
  readonly text: string
  /** Absent where the snapshot of the message is damaged. */
  readonly resolvesTo?: { readonly id: string; readonly key: string; readonly kind: string }
}


/** The plugin's own answer to one cap. */
interface PiCap {
  readonly session: string
  readonly max: number
  readonly keptSnapshotIds: readonly string[]
  readonly backupsKept: readonly string[]
}

/** What the plugin's expiry removed. */
interface PiCleanup {
  readonly cleanupPeriodDays: number
  readonly nowMs: number
  readonly removed: readonly string[]
}

export interface PiOracle {
  readonly scenario: string
  readonly projectRoot: string
  readonly messages: readonly PiMessage[]
  readonly restores: readonly PiRestore[]
  readonly cap?: readonly PiCap[]
  readonly cleanup?: readonly PiCleanup[]
}

export interface PiStore {
  /** The folder that all lies in. */
  readonly base: string
  /** The storage root. */
  readonly root: string
  readonly project: string
  readonly outside: string
  readonly sessions: string
  readonly oracle: PiOracle
}

/** Names of the scenarios in the corpus. */
export function piScenarios(): string[] {
  return corpusStores('pi-candy-undo').map(({ scenario }) => scenario)
}

/** The expected results of a scenario, as recorded. */
export function piOracle(scenario: string): PiOracle {
  const path = corpusStores('pi-candy-undo').find((each) => each.scenario === scenario)?.oracle
  if (path === undefined) throw new Error(`the corpus has no pi-candy-undo store ${scenario}`)
  return JSON.parse(readFileSync(path, 'utf8')) as PiOracle
}

/** Extracts one store into a temporary folder, with the paths inside set to where it now lies; modes, times and links stay. */
export async function extractPi(scenario: string, register?: Parameters<typeof temporaryFolder>[0]): Promise<PiStore> {
  const base = await temporaryFolder(register)
  const store = corpusStores('pi-candy-undo').find((each) => each.scenario === scenario)
  if (store === undefined) throw new Error(`the corpus has no pi-candy-undo store ${scenario}`)
  execFileSync('tar', ['-xpf', store.archive, '-C', base])
  for (const name of ['store', 'sessions']) if (existsSync(join(base, name))) relocate(join(base, name), base)
  return {
    base,
    root: join(base, 'store'),
    project: join(base, 'project'),
    outside: join(base, 'outside'),
    sessions: join(base, 'sessions'),
    oracle: piOracle(scenario),
  }
}

/** Puts the folder it lies in now in place of `/home/dev3` in the text files. */
function relocate(folder: string, base: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isDirectory()) relocate(path, base)
    else if (stat.isFile() && /\.jsonl?$/.test(name)) relocateFile(path, base)
  }
}

function relocateFile(path: string, base: string): void {
  const { atime, mtime, mode } = statSync(path)
  const before = readFileSync(path).toString('latin1')
  const after = before.replaceAll('/home/dev3/', `${Buffer.from(base).toString('latin1')}/`)
  if (after === before) return
  writeFileSync(path, Buffer.from(after, 'latin1'))
  chmodSync(path, mode & 0o7777)
  utimesSync(path, atime, mtime)
}
