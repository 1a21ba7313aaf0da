import { execFileSync } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync, readlinkSync, statSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { corpusStores } from './corpus.js'
import { temporaryFolder } from './temp.js'

/** The home of the user that the stores were recorded with. */
const recordedHome = '/home/dev4'

interface QwenNode {
  readonly type: string
  readonly mode: string
  readonly sha256: string
  readonly size: number
}

interface QwenTarget {
  /** Absolute path to what the product makes of it, `null` when it removes it. */
  readonly changed: Readonly<Record<string, QwenNode | null>>
  readonly filesChanged: readonly string[]
  readonly filesFailed: readonly string[]
}

interface QwenSnapshot {
  readonly promptId: string
  readonly timestamp: string
  readonly tracked: Readonly<Record<string, { readonly file: string | null; readonly version: number }>>
}

export interface QwenOracle {
  readonly sessions: Readonly<
    Record<string, { readonly snapshots: readonly QwenSnapshot[]; readonly store: readonly string[]; readonly targets: Readonly<Record<string, QwenTarget>> }>
  >
}

export interface QwenStore {
  /** Stands for the user's home. */
  readonly home: string
  /** `<home>/.qwen`. */
  readonly root: string
  readonly project: string
  readonly outside: string
}

/** Every recorded store with expected results, by scenario. */
export function qwenScenarios(): { readonly scenario: string; readonly oracle: QwenOracle }[] {
  return corpusStores('qwen-code').flatMap(({ scenario, oracle }) =>
    // The paths of the user's home begin with `@/`.
    oracle === undefined ? [] : [{ scenario, oracle: JSON.parse(readFileSync(oracle, 'utf8').replaceAll(`${recordedHome}/`, '@/')) as QwenOracle }],
  )
}

/** The path in a store of what the results of `qwenScenarios` call `@/…`. */
export function placed(store: QwenStore, path: string): string {
  return path.replace(/^@\//, `${store.home}/`)
}

/** Extracts one store into a temporary folder, with the paths inside set to where it now lies. Times stay. */
export async function extractQwen(scenario: string, register?: Parameters<typeof temporaryFolder>[0]): Promise<QwenStore> {
  const folder = await temporaryFolder(register)
  const found = corpusStores('qwen-code').find((each) => each.scenario === scenario)
  if (found === undefined) throw new Error(`the corpus has no qwen-code store ${scenario}`)
  execFileSync('tar', ['-xpzf', found.archive, '-C', folder])
  // The archive has the store in `home`, and the trees beside it.
  execFileSync('mv', [join(folder, 'home', '.qwen'), join(folder, '.qwen')])
  execFileSync('rmdir', [join(folder, 'home')])
  relocate(join(folder, '.qwen'), folder)
  return { home: folder, root: join(folder, '.qwen'), project: join(folder, 'project'), outside: join(folder, 'outside') }
}

function relocate(path: string, home: string): void {
  for (const name of readdirSync(path)) {
    const inside = join(path, name)
    const status = lstatSync(inside)
    if (status.isDirectory()) relocate(inside, home)
    else if (status.isSymbolicLink()) {
      const target = readlinkSync(inside)
      unlinkSync(inside)
      symlinkSync(target.replace(recordedHome, home), inside)
    } else if (name.endsWith('.jsonl')) relocateFile(inside, home)
  }
}

function relocateFile(path: string, home: string): void {
  const { atime, mtime } = statSync(path)
  // Latin-1 maps bytes to characters one to one, so that damaged UTF-8 survives.
  const text = readFileSync(path).toString('latin1')
  writeFileSync(path, Buffer.from(text.replaceAll(`${recordedHome}/`, `${Buffer.from(home).toString('latin1')}/`), 'latin1'))
  utimesSync(path, atime, mtime)
}
