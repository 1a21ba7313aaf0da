// What `npm pack` ships of the build: the modules in a few files without blanks and comments, and the types in one,
// without what the library's own types do not lead to. Run after the build, on the package itself or on a copy of it: `slim.js [folder]`;
// `npm run build` makes all of it again.
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { rollUp } from './types.js'

const root = process.argv[2] ?? fileURLToPath(new URL('../', import.meta.url))
const dist = join(root, 'dist')
/** What is started or imported from outside; everything else is reached from these. */
const entries = ['src/cli/main.js', 'src/index.js', 'src/fs/probe-worker.js', 'src/cli/home-worker.js']

await build({
  absWorkingDir: root,
  entryPoints: entries.map((entry) => join(dist, entry)),
  outbase: dist,
  outdir: join(dist, 'packed'),
  // Three folders below the package, as deep as the modules that look for files of the package.
  chunkNames: 'src/parts/[hash]',
  bundle: true,
  splitting: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20',
  minify: true,
  logLevel: 'error',
})

const index = join(dist, 'src/index.d.ts')
const types = rollUp(index)
for (const name of readdirSync(dist, { recursive: true })) {
  if (!name.startsWith('packed/') && (name.endsWith('.js') || name.endsWith('.d.ts'))) rmSync(join(dist, name))
}
// Words that a program reads, and no compiler.
writeFileSync(index, types.replaceAll(/(?<=readonly (?:title|remedy): )".*"(?=;$)/gm, 'string'))
rmSync(join(dist, 'jobs'), { recursive: true, force: true })
for (const name of readdirSync(join(dist, 'packed', 'src'), { recursive: true })) {
  if (!name.endsWith('.js')) continue
  const target = join(dist, 'src', name)
  if (!existsSync(dirname(target))) renameSync(join(dist, 'packed', 'src', dirname(name)), dirname(target))
  else if (!existsSync(target)) renameSync(join(dist, 'packed', 'src', name), target)
}
rmSync(join(dist, 'packed'), { recursive: true })
