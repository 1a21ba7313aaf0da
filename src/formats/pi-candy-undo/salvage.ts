import { isFields, type Fields } from '../../model/fields.js'
import { parseState, stateVersion, type State } from './state.js'

/** What is left of a state that the plugin would not accept. */
export interface Salvaged {
  readonly state: State
  /** What was lost of it, in words. */
  readonly lost: readonly string[]
}

/**
 * Takes what is whole out of the bytes of a broken state: a text that was cut, a mark before it, a field that is missing or
 * of the wrong type, values of an unexpected shape. Of a cut text only whole snapshots and whole records count, since half a
 * snapshot would say something else. `undefined` when it is of another version, or nothing of it can be read.
 */
export function salvageState(bytes: Buffer, session: string): Salvaged | undefined {
  const text = new TextDecoder('utf-8').decode(bytes)
  if (text.includes('\uFFFD')) return undefined
  const whole = parseJson(text)
  const value = whole ?? parseJson(closed(text))
  if (!isFields(value)) return undefined
  // A field that is gone is no other version; any other value may be.
  if (Object.hasOwn(value, 'version') && value.version !== stateVersion) return undefined
  const lost = whole === undefined ? ['what came after the place where it was cut'] : []
  const completed = { ...value, ...defaultsFor(value, session, lost), version: stateVersion }
  const parsed = parseState(Buffer.from(JSON.stringify(completed)))
  if (parsed.kind !== 'state') return undefined
  const { state, faults } = parsed
  if (faults.length > 0) lost.push(...faults.map(({ at, reason }) => `${at} (${reason})`))
  return { state: { ...state, trackedFiles: allPaths(state) }, lost }
}

/** Every path that a state names, those that it says it tracks first. */
export function allPaths({ trackedFiles, originals, snapshots }: State): string[] {
  return [...new Set([...trackedFiles, ...originals.keys(), ...snapshots.flatMap(({ files }) => [...files.keys()])])]
}

function defaultsFor(value: Fields, session: string, lost: string[]): Fields {
  const defaults: Record<string, unknown> = {}
  const note = (name: string, fallback: unknown): void => {
    defaults[name] = fallback
    if (!lost.includes(name)) lost.push(name)
  }
  if (typeof value.sessionId !== 'string') note('sessionId', session)
  for (const name of ['snapshots', 'trackedFiles', 'redo'] as const) if (!Array.isArray(value[name])) note(name, [])
  if (!isFields(value.originals)) note('originals', {})
  return defaults
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text)
  } catch {
    return undefined
  }
}

/** A cut JSON text up to its last value that is whole and lies no deeper than a snapshot or an original, closed behind it. */
function closed(text: string): string {
  const open: string[] = []
  let end = 0
  let ends = ''
  let inString = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (inString) {
      if (character === '\\') at += 1
      else if (character === '"') inString = false
      continue
    }
    if (character === '"') inString = true
    else if (character === '{') open.push('}')
    else if (character === '[') open.push(']')
    else if (character === '}' || character === ']') {
      if (open.pop() !== character) break
      if (open.length <= 2) {
        end = at + 1
        ends = open.toReversed().join('')
      }
    }
  }
  return text.slice(0, end) + ends
}
