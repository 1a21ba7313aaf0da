import { AnchoredFolder } from '../../fs/anchored-folder.js'

/** Holds one folder open at a time: work sorted by folder opens each once. */
export class FolderCursor {
  #folder: AnchoredFolder | undefined

  /** The folder with this real path, opened and checked now unless it is the one that is open. */
  to(path: string): AnchoredFolder {
    if (this.#folder?.path === path) return this.#folder
    this.close()
    this.#folder = AnchoredFolder.open(path)
    return this.#folder
  }

  isAt(path: string): boolean {
    return this.#folder?.path === path
  }

  close(): void {
    this.#folder?.close()
    this.#folder = undefined
  }
}
