import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, readFileSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FormatId } from '../../src/model/session.js'
import { temporaryFolder } from './temp.js'

const corpus = fileURLToPath(new URL('../corpus', import.meta.url))

export interface CorpusStore {
  /** The folder the archive lies in: client version or generation; empty where a format has none. */
  readonly version: string
  readonly scenario: string
  readonly archive: string
  /** Path of the file with the expected results, where there is one. */
  readonly oracle: string | undefined
}

/** What a path became in the reference client's restore. `type: 'link'` has `to`. */
export interface OracleNode {
  readonly type: string
  readonly mode?: string
  readonly sha256?: string
  readonly size?: number
  readonly nlink?: number
  readonly to?: string
}

export interface OracleTarget {
  readonly session: string
  readonly message: string
  readonly prompt: string
  /** Path below the user's home (`tree`) to its new node, `null` when it was removed. */
  readonly changed: Readonly<Record<string, OracleNode | null>>
  readonly outcome: 'restored' | 'refused'
  readonly skipped: number
}

export interface Oracle {
  readonly client?: string
  readonly version: string
  readonly scenario: string
  readonly targets: readonly OracleTarget[]
}

export interface ExtractedStore {
  /** The client's home folder. */
  readonly home: string
  /** The store's root, `<home>/.claude`. */
  readonly root: string
  /** What stands for the user's home on that machine; the oracle's paths are relative to it. */
  readonly tree: string
  readonly project: string
  readonly oracle: Oracle | undefined
}

/** Every store of one format in the corpus, sorted by version and scenario. */
export function corpusStores(format: FormatId): CorpusStore[] {
  const base = join(corpus, format)
  const groups = readdirSync(base, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  return ['', ...groups.sort()].flatMap((version) =>
    readdirSync(join(base, version))
      .filter((name) => name.endsWith('.tar.gz'))
      .sort()
      .map((name): CorpusStore => {
        const scenario = name.slice(0, -'.tar.gz'.length)
        const candidates = ['.oracle.json', '.expected.json'].map((end) => join(base, version, scenario + end))
        return { version, scenario, archive: join(base, version, name), oracle: candidates.find((path) => existsSync(path)) }
      }),
  )
}

/** Extracts one Claude Code store into a temporary folder, with the paths inside set to where it now lies. */
export async function extractStore(
  version: string,
  scenario: string,
  register?: Parameters<typeof temporaryFolder>[0],
): Promise<ExtractedStore> {
  const folder = await temporaryFolder(register)
  const store = corpusStores('claude-code').find((each) => each.version === version && each.scenario === scenario)
  if (store === undefined) throw new Error(`the corpus has no claude-code store ${version}/${scenario}`)
  execFileSync('tar', ['-xpf', store.archive, '-C', folder])
  const homes = join(folder, 'tree', 'home')
  const [user, ...others] = readdirSync(homes)
  if (user === undefined || others.length > 0) throw new Error(`${store.archive} does not hold exactly one user's home`)
  relocate(join(folder, 'home'), homes)
  const tree = join(homes, user)
  const oracle = store.oracle === undefined ? undefined : (JSON.parse(readFileSync(store.oracle, 'utf8')) as Oracle)
  return { home: join(folder, 'home'), root: join(folder, 'home', '.claude'), tree, project: join(tree, 'project'), oracle }
}

/** Replaces `/home/dev…` in the text files by the folder it lies in now; modes and mtimes stay. */
function relocate(folder: string, homes: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isDirectory()) relocate(path, homes)
    else if (stat.isFile() && /\.jsonl?$/.test(name)) relocateFile(path, homes)
  }
}

function relocateFile(path: string, homes: string): void {
  const { atime, mtime } = statSync(path)
  // Latin-1 maps bytes to characters one to one, so that damaged UTF-8 survives.
  const before = readFileSync(path).toString('latin1')
  const place = Buffer.from(homes).toString('latin1')
  const after = before.replace(/\/home\/(dev[3-7]?)(?![A-Za-z0-9])/g, (_, user: string) => `${place}/${user}`)
  if (after === before) return
  writeFileSync(path, Buffer.from(after, 'latin1'))
  utimesSync(path, atime, mtime)
}
