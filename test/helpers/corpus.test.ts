import { execFileSync } from 'node:child_process'
import { lstatSync, readFileSync, readdirSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { corpusStores, extractStore, type Oracle } from './corpus.js'
import { temporaryFolder } from './temp.js'
import { snapshotTree, type Tree } from './tree.js'

test('the corpus holds every store of the four formats', () => {
  const stores = corpusStores('claude-code')
  const targets = stores.flatMap((store) => (store.oracle === undefined ? [] : (JSON.parse(readFileSync(store.oracle, 'utf8')) as Oracle).targets))
  // formats/claude-code section 4 counts the results.
  expect(targets).toHaveLength(237)
  const without = stores.filter((store) => store.oracle === undefined).map((store) => `${store.version}/${store.scenario}`)
  expect(without).toEqual(['1.0.128/tui', '2.0.64/fork', '2.1.112/fork', '2.1.332/fork'])
  for (const format of ['pi-candy-undo', 'dsh-rewind', 'qwen-code'] as const) expect(corpusStores(format).length).toBeGreaterThan(3)
})

describe('extracting a store', () => {
  test.each([['2.0.64', 'modes'], ['2.1.332', 'hardlink'], ['2.1.332', 'fork'], ['2.1.332', 'links']])(
    'keeps modes, mtimes and links of %s/%s, and every byte but the paths',
    async (version, scenario) => {
      const store = corpusStores('claude-code').find((each) => each.version === version && each.scenario === scenario)
      const plain = await temporaryFolder()
      execFileSync('tar', ['-xpf', store?.archive ?? '', '-C', plain])
      const { home } = await extractStore(version, scenario)
      expect(withoutText(snapshotTree(join(home, '..')))).toEqual(withoutText(snapshotTree(plain)))
    },
  )

  test('sets the paths in transcripts to where the tree now lies', async () => {
    const { root, tree, project } = await extractStore('2.1.332', 'rewound')
    const [slug = ''] = readdirSync(join(root, 'projects'))
    const [name = ''] = readdirSync(join(root, 'projects', slug)).filter((each) => each.endsWith('.jsonl'))
    const text = readFileSync(join(root, 'projects', slug, name), 'utf8')
    expect(text).toContain(`"cwd":"${project}"`)
    expect(text).toContain(`"realParentDir":"${project}"`)
    expect(text.replaceAll(tree, '')).not.toContain('/home/dev')
    expect(tree.endsWith('/tree/home/dev7')).toBe(true)
    expect(slug).toBe('-home-dev7-project')
  })

  test('keeps the hard links of a fork', async () => {
    const { root } = await extractStore('2.0.64', 'fork')
    const at = (session: string): Stats => lstatSync(join(root, 'file-history', session, '69982231bd9d5d65@v4'))
    const [old, fork] = [at('364877d0-c82c-4839-b8c9-ef76a3624f27'), at('310cb7ff-c009-49eb-b6ae-9420d7a9dbbc')]
    expect([old.ino, old.nlink, (old.mode & 0o7777).toString(8)]).toEqual([fork.ino, 2, '600'])
  })
})

/** A transcript changes in content and size only; the extraction folder itself is new. */
function withoutText(tree: Tree): unknown {
  return Object.fromEntries(
    Object.entries(tree)
      .filter(([path]) => path !== '.')
      .map(([path, { sha256, size, ...rest }]) => [path, path.endsWith('.jsonl') ? rest : { ...rest, sha256, size }]),
  )
}
