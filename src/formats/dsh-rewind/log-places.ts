import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { folderOfId } from './layout.js'

const logPattern = /^session(?:\.v([0-9]{1,6}))?\.jsonl(\.zstd)?$/

/** A conversation log of the agent (section 5.1). It lies outside the store; only a repair of its markers writes it. */
export interface LogFile {
  /** Absolute. */
  readonly path: string
  /** Log format by its name; 0 for a name without one. */
  readonly version: number
  readonly packed: boolean
}

/** Where the logs of sessions are, by the folder that the plugin makes of their id. */
export class LogPlaces {
  readonly #roots: readonly string[]
  #folders: Map<string, string[]> | undefined

  /** @param roots absolute paths of folders with conversations */
  constructor(roots: readonly string[]) {
    this.#roots = roots
  }

  /** True when there is any folder with conversations. */
  get isKnown(): boolean {
    return this.#roots.length > 0
  }

  /** Forgets what was found, so that a session that began meanwhile is seen. */
  refresh(): void {
    this.#folders = undefined
  }

  /** The log that counts for a session: the highest version, then the one written last. */
  of(session: string): LogFile | undefined {
    return bestOf(this.#all(session))
  }

  /** Every log that counts in its folder, with the session that the plugin makes of it; sorted by their paths. */
  each(): { readonly session: string; readonly file: LogFile }[] {
    this.#folders ??= this.#index()
    const found = [...this.#folders].flatMap(([session, folders]) =>
      folders.flatMap((folder) => {
        const file = bestOf(logsIn(folder))
        return file === undefined ? [] : [{ session, file }]
      }),
    )
    return found.sort((a, b) => (a.file.path < b.file.path ? -1 : 1))
  }

  /** True when a log of an older format lies beside the one that counts: the host converted it, and counted anew. */
  hasOlder(session: string): boolean {
    return new Set(this.#all(session).map(({ version }) => version)).size > 1
  }

  #all(session: string): LogFile[] {
    this.#folders ??= this.#index()
    return (this.#folders.get(session) ?? []).flatMap((folder) => logsIn(folder))
  }

  /** True when a log of any session is packed. */
  get hasPacked(): boolean {
    this.#folders ??= this.#index()
    return [...this.#folders.values()].some((folders) => folders.some((folder) => logsIn(folder).some(({ packed }) => packed)))
  }

  #index(): Map<string, string[]> {
    const folders = new Map<string, string[]>()
    for (const root of this.#roots) {
      for (const project of listFolder(root).entries) {
        if (!project.isDirectory()) continue
        for (const session of listFolder(join(root, project.name)).entries) {
          if (!session.isDirectory()) continue
          const id = folderOfId(decoded(session.name))
          folders.set(id, [...(folders.get(id) ?? []), join(root, project.name, session.name)])
        }
      }
    }
    return folders
  }
}

function bestOf(logs: readonly LogFile[]): LogFile | undefined {
  return logs.toSorted((a, b) => b.version - a.version || modifiedAt(b) - modifiedAt(a) || Number(a.packed) - Number(b.packed))[0]
}

function logsIn(folder: string): LogFile[] {
  return listFolder(folder).entries.flatMap((entry) => {
    const match = logPattern.exec(entry.name)
    if (match === null || !entry.isFile()) return []
    return [{ path: join(folder, entry.name), version: Number(match[1] ?? 0), packed: match[2] !== undefined }]
  })
}

function modifiedAt({ path }: LogFile): number {
  return lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/** The host writes a character that is not safe in a name as `~` and its four hex digits. */
function decoded(segment: string): string {
  return segment.replaceAll(/~([0-9A-Fa-f]{4})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}
