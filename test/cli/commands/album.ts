import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { S1, emptyRoot, setTime, snap, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { M1, M2, M3, cliIn, hashA, hashB, newTime, type Cli, type Envelope } from '../world.js'

/** A store with one session that worked in a folder that is really there. */
export interface Album {
  readonly home: string
  readonly root: string
  readonly project: string
  readonly cli: Cli
  /** The envelope with what differs between two runs replaced: places, durations, ids that a run makes. */
  readonly json: (...argv: readonly string[]) => Promise<Record<string, unknown>>
}

export const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 10])

/**
 * `notes/a.md` held robin at the first message, robin and wren at the second, and robin, wren, crow now; `notes/b.md` (heron)
 * was made after the second. The third message has a picture and was sent in the permission mode `plan`.
 */
export async function album(given?: { readonly root: string; readonly session: string }): Promise<Album> {
  const root = given?.root ?? (await emptyRoot())
  const session = given?.session ?? S1
  const home = dirname(root)
  const project = join(home, 'notes')
  mkdirSync(project, { recursive: true })
  const at = { session, cwd: project, time: newTime }
  const third = JSON.parse(userLine(M3, { ...at, parent: M2 })) as Record<string, unknown>
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture.toString('base64') } }
  writeTranscript(root, '-home-u-notes', session, [
    JSON.stringify({ type: 'permission-mode', permissionMode: 'plan', sessionId: session }),
    userLine(M1, { ...at, text: 'start the list' }),
    snap(M1, { 'a.md': `${hashA}@v1` }, newTime),
    userLine(M2, { ...at, parent: M1, text: 'add the wren' }),
    snap(M2, { 'a.md': `${hashA}@v2`, 'b.md': null }, newTime),
    JSON.stringify({ ...third, message: { role: 'user', content: [{ type: 'text', text: 'is it [Image #1]\ncomplete?' }, image] } }),
    snap(M3, { 'a.md': `${hashA}@v2`, 'b.md': `${hashB}@v2` }, newTime),
  ], { mtime: newTime })
  writeBackup(root, session, `${hashA}@v1`, 'robin\n', { mtime: newTime })
  writeBackup(root, session, `${hashA}@v2`, 'robin\nwren\n', { mtime: newTime })
  writeBackup(root, session, `${hashB}@v2`, 'heron\n', { mtime: newTime })
  writeFileSync(join(project, 'a.md'), 'robin\nwren\ncrow\n', { mode: 0o644 })
  writeFileSync(join(project, 'b.md'), 'heron\n', { mode: 0o644 })
  for (const name of ['a.md', 'b.md']) setTime(join(project, name), newTime)
  const cli = cliIn(home)
  const json = async (...argv: readonly string[]): Promise<Record<string, unknown>> => normal(home, await cli.json(...argv, '--root', root))
  return { home, root, project, cli, json }
}

const known = new Set([S1, M1, M2, M3])

function normal(home: string, envelope: Envelope): Record<string, unknown> {
  const text = JSON.stringify(envelope, (key, value: unknown) => (key === 'durationMs' ? 0 : value))
  const placed = text.replaceAll(home, '<home>').replaceAll(/\d{8}T\d{9}Z-[0-9a-f]{8}/g, '<run>')
  return JSON.parse(placed.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => (known.has(id) ? id : '<new>'))) as Record<string, unknown>
}
