// What `npm pack` ships of the build: the modules in a few files without blanks and comments, and of the types only those that
// the library's own types lead to. Run after the build, on the package itself or on a copy of it: `slim.js [folder]`;
// `npm run build` makes all of it again.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

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

const types = new Set()
const index = join(dist, 'src/index.d.ts')
collect(index)
// What the library exports keeps its words; what it only leads to is read by compilers alone.
const described = new Set([index, ...importsOf(index)])
for (const file of types) if (!described.has(file)) writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/^ *\/\*\*.*?\*\/\n/gms, ''))
for (const name of readdirSync(dist, { recursive: true })) {
  if (name.startsWith('packed/')) continue
  if (name.endsWith('.js') || (name.endsWith('.d.ts') && !types.has(join(dist, name)))) rmSync(join(dist, name))
}
rmSync(join(dist, 'jobs'), { recursive: true, force: true })
for (const name of readdirSync(join(dist, 'packed', 'src'), { recursive: true })) {
  if (!name.endsWith('.js')) continue
  const target = join(dist, 'src', name)
  if (!existsSync(dirname(target))) renameSync(join(dist, 'packed', 'src', dirname(name)), dirname(target))
  else if (!existsSync(target)) renameSync(join(dist, 'packed', 'src', name), target)
}
rmSync(join(dist, 'packed'), { recursive: true })

/** Notes a file of types and all that it imports. */
function collect(file) {
  if (types.has(file)) return
  types.add(file)
  for (const other of importsOf(file)) collect(other)
}

function importsOf(file) {
  const paths = readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?['"](\.[^'"]+)\.js['"]/g)
  return [...paths].map(([, path]) => resolve(dirname(file), `${path}.d.ts`))
}
