import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

interface LockedPackage {
  readonly version?: string
  readonly integrity?: string
  readonly dev?: boolean
}

const text = readFileSync('package-lock.json', 'utf8')
const lock = JSON.parse(text) as { readonly packages: Readonly<Record<string, LockedPackage>> }
const locked = Object.entries(lock.packages).filter(([path]) => path !== '')
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Readonly<Record<'dependencies' | 'devDependencies', Readonly<Record<string, string>>>>

interface Bom {
  readonly bomFormat: string
  readonly specVersion: string
  readonly metadata: { readonly component: { readonly purl: string } }
  readonly components: readonly {
    readonly purl: string
    readonly properties: readonly { readonly name: string; readonly value: string }[]
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
    readonly licenses?: readonly object[]
  }[]
}

/** The list of parts as npm makes it, from the lock file alone and without a network. */
function readBom(): Bom {
  // An address where nobody listens: whoever asks a registry fails.
  const env = { ...process.env, npm_config_registry: 'http://127.0.0.1:9/' }
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', 'sbom', '--offline'], { encoding: 'utf8', env, shell: process.platform === 'win32' })
  expect([status, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as Bom
}

/** `name@version` of a place in the lock file, and of a part in the list. */
const lockedName = ([path, { version = '' }]: readonly [string, LockedPackage]): string => `${path.replace(/^.*node_modules\//, '')}@${version}`
const partName = ({ purl }: { readonly purl: string }): string => decodeURIComponent(purl).replace('pkg:npm/', '')

describe('the lock file', () => {
  it('names no address that anything is downloaded from: whoever installs decides on the registry', () => {
    expect(text.match(/"resolved"/g)).toBeNull()
    // The only addresses in it are those where authors ask for support.
    const addresses = [...text.matchAll(/^\s*"(\w+)": "\w+:\/\/[^"]*"/gm)].map(([, key]) => key)
    expect(new Set(addresses)).toEqual(new Set(['url']))
    expect(readFileSync('.npmrc', 'utf8')).toMatch(/^omit-lockfile-registry-resolved=true$/m)
    expect(readFileSync('.npmrc', 'utf8')).not.toMatch(/registry=(?!true)|_auth|:\/\//)
  })

  it('holds a digest of everything, so that no registry can put something else in its place', () => {
    expect(locked.length).toBeGreaterThan(100)
    expect(locked.filter(([, { integrity, version }]) => version === undefined || !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')).map(([path]) => path)).toEqual([])
  })

  it('and the manifest agree on exact versions', () => {
    const wanted = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
    expect(wanted.filter(([name, version]) => lock.packages[`node_modules/${name}`]?.version !== version)).toEqual([])
  })
})

describe('npm sbom', () => {
  const bom = readBom()
  // What npm leaves out with --omit dev is more than that: also what runs and is shared with a tool.
  const running = bom.components.filter(({ properties }) => !properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true'))

  it('makes a list of all parts in the format CycloneDX without a network, in which those that only build and test are marked', () => {
    expect([bom.bomFormat, /^1\.\d$/.test(bom.specVersion), bom.metadata.component.purl.startsWith('pkg:npm/rewind-admin@')]).toEqual(['CycloneDX', true, true])
    expect(new Set(bom.components.map(partName))).toEqual(new Set(locked.map(lockedName)))
    expect(new Set(running.map(partName))).toEqual(new Set(locked.filter(([, { dev }]) => dev !== true).map(lockedName)))
    for (const [name, version] of Object.entries(manifest.dependencies)) expect(running.map(partName)).toContain(`${name}@${version}`)
  })

  it('gives each part that runs its digest and its licence, all of which allow that they are passed on', () => {
    const digests = new Map(locked.map((each) => [lockedName(each), Buffer.from((each[1].integrity ?? '').slice('sha512-'.length), 'base64').toString('hex')]))
    expect(running.length).toBeGreaterThan(10)
    for (const part of running) {
      const name = partName(part)
      expect([name, part.hashes?.map(({ alg, content }) => `${alg} ${content}`)]).toEqual([name, [`SHA-512 ${digests.get(name) ?? ''}`]])
      expect([name, /"(MIT|ISC|BSD-2-Clause|BSD-3-Clause|Apache-2\.0|0BSD|BlueOak-1\.0\.0)"/.test(JSON.stringify(part.licenses))]).toEqual([name, true])
    }
  })
})
