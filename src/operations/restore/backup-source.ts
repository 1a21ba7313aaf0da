import { AnchoredFolder } from '../../fs/anchored-folder.js'
import type { ContentAt } from '../../fs/content.js'

/**
 * The folder that the bytes of a restore come from, held open. The name of a backup is that of a file in it, or of one in a
 * folder below it (`12/name`); a format that keeps texts in its records hands over the bytes of those.
 */
export class BackupSource {
  readonly #folder: AnchoredFolder
  readonly #inline: ReadonlyMap<string, Buffer>
  readonly #inner = new Map<string, AnchoredFolder>()

  private constructor(folder: AnchoredFolder, inline: ReadonlyMap<string, Buffer>) {
    this.#folder = folder
    this.#inline = inline
  }

  /** @throws as `AnchoredFolder.open` */
  static open(path: string, inline: ReadonlyMap<string, Buffer> = new Map()): BackupSource {
    return new BackupSource(AnchoredFolder.open(path), inline)
  }

  /** Where the bytes of a backup are. @throws FenceError or the system error when its folder is none, or is not there */
  at(name: string): ContentAt {
    const bytes = this.#inline.get(name)
    return bytes === undefined ? this.fileAt(name) : { bytes }
  }

  /** The file of that name, also when its bytes are at hand. @throws as `at` */
  fileAt(name: string): { readonly folder: AnchoredFolder; readonly name: string } {
    const slash = name.lastIndexOf('/')
    if (slash === -1) return { folder: this.#folder, name }
    return { folder: this.#innerFolder(name.slice(0, slash)), name: name.slice(slash + 1) }
  }

  close(): void {
    for (const folder of this.#inner.values()) folder.close()
    this.#inner.clear()
    this.#folder.close()
  }

  #innerFolder(name: string): AnchoredFolder {
    const known = this.#inner.get(name)
    if (known !== undefined) return known
    const folder = AnchoredFolder.open(`${this.#folder.path}/${name}`)
    this.#inner.set(name, folder)
    return folder
  }
}

/** True for a text that names a file in a folder, or one at most two folders below it, and nothing else. */
export function isFileName(name: string): boolean {
  const parts = name.split('/')
  return parts.length <= 3 && parts.every((part) => part !== '' && part !== '.' && part !== '..' && !/[\\\0]/.test(part))
}
