import { readFileSync } from 'node:fs'

/**
 * The version of this package, from its own `package.json`: two folders above the source, three above the built file.
 * Throws when the package is incomplete.
 */
export function readVersion(): string {
  for (const above of ['../../package.json', '../../../package.json']) {
    const version = versionIn(new URL(above, import.meta.url))
    if (version !== undefined) return version
  }
  throw new Error('package.json of rewind-admin is missing')
}

function versionIn(file: URL): string | undefined {
  let text
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
  const manifest: unknown = JSON.parse(text)
  if (typeof manifest !== 'object' || manifest === null || !('name' in manifest) || !('version' in manifest)) return undefined
  return manifest.name === 'rewind-admin' && typeof manifest.version === 'string' ? manifest.version : undefined
}
