import { chmod, lstat, mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

type Registrar = (remove: () => Promise<void>) => void

/**
 * An empty folder by its real path, mode 0700, removed after the test even when modes inside are 000. Outside of a test
 * (`beforeAll`) pass `afterAll` as the registrar.
 */
export async function temporaryFolder(register: Registrar = onTestFinished): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'rewind-admin-'))
  register(() => removeFolder(folder))
  return folder
}

async function removeFolder(folder: string): Promise<void> {
  await openUp(folder)
  await rm(folder, { recursive: true, force: true })
}

/** An unprivileged owner can only empty folders that it may write and search. */
async function openUp(folder: string): Promise<void> {
  const stat = await lstat(folder).catch(() => undefined)
  if (stat?.isDirectory() !== true) return
  await chmod(folder, 0o700)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await openUp(join(folder, entry.name))
  }
}
