import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDshRewind } from '../../src/formats/dsh-rewind/index.js'
import type { Store } from '../../src/formats/format.js'
import type { SessionRef } from '../../src/model/session.js'
import { corpusStores, type CorpusStore } from './corpus.js'
import { temporaryFolder } from './temp.js'

/** What the reference reader did when asked to restore to a target; paths are relative to the workspace. */
export interface DshRestore {
  readonly target: number
  readonly reader: string
  readonly impacts?: readonly { readonly path: string; readonly action: 'restore' | 'delete' }[]
  readonly outcome?: Readonly<Record<'restored' | 'deleted' | 'skipped', readonly string[]>> & { readonly failed: readonly { readonly path: string; readonly reason: string }[] }
  readonly error?: string
  readonly changedFiles: Readonly<Record<string, DshFile | null>>
}

export interface DshFile {
  readonly utf8?: string
  readonly base64?: string
  readonly mode?: string
}

interface DshAfter {
  readonly op: 'continueRestore' | 'rollbackRestore'
  readonly opId: string
  readonly journalStateAfter: string
  readonly changedFiles: DshRestore['changedFiles']
}

export interface DshExpected {
  readonly sessionId: string
  readonly maxFileBytes?: number
  readonly restores: readonly DshRestore[]
  readonly afterReconcile?: readonly DshAfter[]
}

export interface DshFixture {
  readonly folder: string
  readonly home: string
  readonly root: string
  readonly workspace: string
  readonly store: Store
  readonly session: SessionRef
  readonly expected: DshExpected
}

/** Every store of the corpus with its expected results. */
export function dshStores(): { readonly name: string; readonly store: CorpusStore; readonly expected: DshExpected }[] {
  return corpusStores('dsh-rewind').flatMap((store) =>
    store.oracle === undefined ? [] : [{ name: `${store.version}/${store.scenario}`, store, expected: JSON.parse(readFileSync(store.oracle, 'utf8')) as DshExpected }],
  )
}

/** Extracts a store, with the paths inside set to where it now lies (the README of the corpus). */
export async function extractDsh(name: string): Promise<DshFixture> {
  const found = dshStores().find((each) => each.name === name)
  if (found === undefined) throw new Error(`the corpus has no dsh-rewind store ${name}`)
  const folder = await temporaryFolder()
  execFileSync('tar', ['-xpf', found.store.archive, '-C', folder])
  const [home, workspace] = [join(folder, 'dsh-home'), join(folder, 'workspace')]
  mkdirSync(workspace, { recursive: true })
  relocate(home, (text) => text.replaceAll('/home/dev/.dsh', home).replaceAll('/home/dev/project', workspace))
  const { expected } = found
  const root = join(home, 'rewind-snapshots')
  const limit = expected.maxFileBytes === undefined ? {} : { DSH_REWIND_MAX_FILE_BYTES: String(expected.maxFileBytes) }
  const store = openDshRewind(root, { home: folder, env: limit, platform: 'linux' })
  const id = expected.sessionId.replaceAll(/[^A-Za-z0-9._-]/g, '_')
  const session = store.inventory().sessions.find((each) => each.id === id) ?? { id, members: [] }
  return { folder, home, root, workspace, store, session, expected }
}

/** The log of a session-logs fixture, put where the host keeps it; returns the folder of the snapshots. */
export async function extractDshLog(name: string, file: string): Promise<{ readonly folder: string; readonly home: string; readonly session: string; readonly log: string }> {
  const archive = corpusStores('dsh-rewind').find(({ version, scenario }) => version === 'session-logs' && scenario === name)?.archive
  if (archive === undefined) throw new Error(`the corpus has no session log ${name}`)
  const folder = await temporaryFolder()
  const session = 'session-3f0c2a51-7d64-4b8e-9a10-5c1e2d3f4a5b'
  const home = join(folder, '.dsh')
  const place = join(home, 'sessions', '--home-dev-project--', session)
  mkdirSync(place, { recursive: true })
  mkdirSync(join(home, 'rewind-snapshots', session), { recursive: true })
  execFileSync('tar', ['-xpf', archive, '-C', place])
  for (const other of readdirSync(place)) if (other !== file) execFileSync('rm', ['-r', join(place, other)])
  return { folder, home, session, log: join(place, file) }
}

function relocate(folder: string, change: (text: string) => string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isDirectory()) relocate(path, change)
    else if (stat.isFile() && name.endsWith('.json')) {
      const before = readFileSync(path).toString('latin1')
      const after = change(before)
      if (after !== before) writeFileSync(path, Buffer.from(after, 'latin1'))
    }
  }
}

