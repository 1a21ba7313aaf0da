import ignore from 'ignore'

/**
 * What is not recorded unless it is asked for: what a tool can make again, and files that hold secrets. Patterns are those of
 * gitignore; the list follows the one of pi-candy-undo (formats/pi-candy-undo section 11).
 */
export const defaultExcludes: readonly string[] = ['.git/', 'node_modules/', '/dist/**', '/build/**', '/coverage/**', '.env*', '*.lock']

export interface ExcludeOptions {
  /** Patterns of gitignore; the last one that matches decides, and `!` takes back in. */
  readonly exclude?: readonly string[]
  /** False leaves `defaultExcludes` out. */
  readonly excludeDefaults?: boolean
}

/**
 * Tells for a tracked path whether it is excluded. Relative ones are matched from the working folder, absolute ones from the
 * root of the file system.
 */
export function excluder({ exclude = [], excludeDefaults = true }: ExcludeOptions): (key: string) => boolean {
  const rules = ignore({ ignorecase: false }).add([...(excludeDefaults ? defaultExcludes : []), ...exclude])
  return (key) => {
    const path = key.replace(/^(?:[A-Za-z]:)?[\\/]+/, '')
    return ignore.isPathValid(path) && rules.ignores(path)
  }
}
