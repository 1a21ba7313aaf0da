import { mkdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { uuidOf } from '../../helpers/identity.js'
import { H, S1, S2, emptyRoot, snap, userLine, writeBackup, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { cliIn, newTime, oldTime, type Cli } from '../world.js'

/** A name that breaks out of elements, attributes, scripts and styles where it is not escaped, and turns the text around. */
export const evil = `"><script>window.hacked=1</script><img src=x onerror="window.hacked=2">'\`</style></title>&lt;\u202e`
const folder = `e"vil'<b onclick=hacked>&amp;`

export interface PageStore {
  readonly root: string
  readonly cli: Cli
}

/**
 * A store whose root, projects and tracked paths carry markup, after a night that removed an old session, with history of many
 * runs, a missing backup, and a session that the next night would remove.
 */
export async function evilStore(register?: Parameters<typeof emptyRoot>[0]): Promise<PageStore> {
  const plain = await emptyRoot(register)
  const home = join(dirname(plain), folder)
  mkdirSync(home)
  const root = join(home, '.claude')
  renameSync(plain, root)
  writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays":30}')
  const at = { session: S1, cwd: `/w/${evil}`, time: newTime }
  writeTranscript(root, '-evil', S1, [userLine('m1', at), snap('m1', { [evil]: `${H}@v1` }, newTime), userLine('m2', { ...at, parent: 'm1' }), snap('m2', { [evil]: `${H}@v2` }, newTime)], { mtime: newTime })
  writeBackup(root, S1, `${H}@v1`, 'x'.repeat(3000), { mtime: newTime })
  old(S2)
  const cli = cliIn(home)
  await cli('run', 'nightly', '--apply', '--root', root)
  old(uuidOf('next'))
  for (let index = 0; index < 12; index += 1) {
    const id = uuidOf(`small/${String(index)}`)
    writeTranscript(root, `-w-${String(index)}`, id, [userLine('m', { session: id, cwd: `/w/very/long/path/of/a/project/that/goes/on/and/on/number-${String(index)}`, time: newTime, text: 'x'.repeat(index * 10) })], { mtime: newTime })
  }
  return { root, cli }

  function old(id: string): void {
    writeTranscript(root, '-evil', id, [userLine('m3', { session: id, cwd: `/w/${evil}`, time: oldTime })], { mtime: oldTime })
  }
}
