// What `npm pack` ships of the build: the modules in a few files without blanks and comments, and the types in one,
// without what the library's own types do not lead to. Run after the build, on the package itself or on a copy of it: `slim.js [folder]`;
// `npm run build` makes all of it again.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { rollUp } from './types.js'

const root = process.argv[2] ?? fileURLToPath(new URL('../', import.meta.url))
const dist = join(root, 'dist')
/** What is started or imported from outside; everything else is reached from these. */
const entries = ['src/cli/main.js', 'src/index.js', 'src/fs/probe-worker.js', 'src/cli/home-worker.js']

/** Commands share most of what they load: one part with all of them is smaller than a part for each and for all that several share. */
const together = {
  name: 'commands-together',
  setup(build) {
    build.onLoad({ filter: /[\\/]cli[\\/]commands[\\/](?:table|daemon)\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll(/await import\('\.\/([a-z]+)\.js'\)/g, "(await import('./together.js')).$1"),
    }))
    build.onResolve({ filter: /^\.\/together\.js$/ }, ({ resolveDir }) => ({ path: join(resolveDir, 'together.js'), namespace: 'together', pluginData: resolveDir }))
    build.onLoad({ filter: /./, namespace: 'together' }, ({ pluginData: resolveDir }) => {
      const table = readFileSync(join(resolveDir, 'table.js'), 'utf8')
      const names = [...table.matchAll(/import\('\.\/([a-z]+)\.js'\)/g)].map(([, name]) => name)
      return { contents: names.map((name) => `export * as ${name} from './${name}.js'`).join('\n'), resolveDir }
    })
  },
}

await build({
  absWorkingDir: root,
  entryPoints: entries.map((entry) => join(dist, entry)),
  outbase: dist,
  outdir: join(dist, 'packed'),
  // Three folders below the package, as deep as the modules that look for files of the package.
  chunkNames: 'src/parts/[hash]',
  bundle: true,
  splitting: true,
  plugins: [together],
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
