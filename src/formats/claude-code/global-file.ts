import { readdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

import { readJsonObject, type JsonFile } from '../../fs/read-small.js'
import { finding, type Finding } from '../../model/finding.js'

const globalName = '.claude.json'
const globalLimit = 64 * 1024 * 1024
const attempts = 3
const pauseMs = 20

/**
 * Findings about the agent's global file, which several processes rewrite without a lock (R111): it is read again a
 * few times before it counts as damaged. It stands in the root or beside it (formats/claude-code section 1). `root` is
 * a real path. `pause` waits between attempts.
 */
export function checkGlobalFile(root: string, home: string, pause: (ms: number) => void = sleep): Finding[] {
  const findings: Finding[] = []
  for (const file of globalFiles(root, home)) {
    const read = readPatiently(file, pause)
    if (read.kind !== 'unusable') continue
    const copies = corruptedCopies(dirname(file))
    const aside = copies === 0 ? '' : `; ${String(copies)} corrupted copies lie beside it`
    findings.push(finding('global-file-damaged', `${file} cannot be used: ${read.reason}${aside}`, { path: file }))
  }
  return findings
}

function globalFiles(root: string, home: string): string[] {
  const files = new Set([join(root, globalName)])
  if (basename(root) === '.claude') files.add(join(dirname(root), globalName))
  if (realPathOrSelf(join(home, '.claude')) === root) files.add(join(home, globalName))
  return [...files]
}

function readPatiently(file: string, pause: (ms: number) => void): JsonFile {
  for (let attempt = 1; ; attempt++) {
    const read = readJsonObject(file, { follow: true, limit: globalLimit })
    if (read.kind !== 'unusable' || attempt === attempts) return read
    pause(pauseMs)
  }
}

function corruptedCopies(folder: string): number {
  try {
    return readdirSync(folder).filter((name) => name.startsWith(`${globalName}.corrupted.`)).length
  } catch {
    return 0
  }
}

function realPathOrSelf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
