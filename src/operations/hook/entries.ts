import { isFields, textOf, type Fields } from '../../model/fields.js'
import { UsageError } from '../../model/errors.js'
import { jsonSpans, type JsonSpan } from '../../model/json-spans.js'

/** One hook as the settings of Claude Code have it. */
export interface HookEntry {
  readonly event: string
  /** Which tools, for events of tools. */
  readonly matcher?: string
  readonly command: string
  /** Seconds after which the agent goes on without it. */
  readonly timeout: number
}

interface PlacedEntry extends HookEntry {
  /** Path in the settings: event, group, place in the group. */
  readonly at: readonly [string, number, number]
}

const word = String.raw`(?:'[^']*'|\\'|[\w./~:@%+=-])+`
const ours = new RegExp(`^(?:(${word}) +)?((?:${word})) +hook +claude-code(?: +${word})*$`)

/** The program and the script of a command of ours, without quotes; `undefined` for a command of others. */
export function programOf(command: string): readonly string[] | undefined {
  const [whole, program, script = ''] = ours.exec(command.trim()) ?? []
  if (whole === undefined) return undefined
  const words = [...(program === undefined ? [] : [program]), script].map((each) => each.replace(/\\'|'/g, (mark) => (mark === "'" ? '' : "'")))
  return /(?:^|[/\\])rewind-admin(?:\.js)?$/.test(words.at(-1) ?? '') ? words : undefined
}

/** Our hooks in settings, older ones included. */
export function ownEntries(settings: Fields): PlacedEntry[] {
  const found: PlacedEntry[] = []
  const hooks = isFields(settings.hooks) ? settings.hooks : {}
  for (const [event, groups] of Object.entries(hooks)) {
    if (!Array.isArray(groups)) continue
    for (const [group, each] of (groups as unknown[]).entries()) {
      const handlers: unknown[] = isFields(each) && Array.isArray(each.hooks) ? each.hooks : []
      const matcher = isFields(each) ? textOf(each.matcher) : undefined
      for (const [place, handler] of handlers.entries()) {
        const command = isFields(handler) ? textOf(handler.command) : undefined
        if (command === undefined || programOf(command) === undefined) continue
        const timeout = isFields(handler) && typeof handler.timeout === 'number' ? handler.timeout : 0
        found.push({ event, ...(matcher === undefined ? {} : { matcher }), command, timeout, at: [event, group, place] })
      }
    }
  }
  return found
}

/**
 * The text of settings with these hooks and no older ones of ours; every other byte stays. `undefined` is a file that is not there.
 * @throws UsageError when the text is no JSON object, or has hooks of a shape that no agent takes
 */
export function withEntries(before: string | undefined, entries: readonly HookEntry[]): string {
  const settings = before === undefined ? {} : settingsIn(before)
  const same = ownEntries(settings).map(({ event, matcher, command, timeout }) => JSON.stringify([event, matcher, command, timeout])).sort()
  if (before !== undefined && String(same) === String(entries.map(({ event, matcher, command, timeout }) => JSON.stringify([event, matcher, command, timeout])).sort())) return before
  const clean = before === undefined ? undefined : withoutEntries(before)
  if (clean === undefined) return `${JSON.stringify({ hooks: groupsOf(entries) }, null, 2)}\n`
  const { hooks } = settingsIn(clean)
  if (hooks === undefined) return appended(clean, jsonSpans(clean), groupsOf(entries), 'hooks')
  if (!isFields(hooks)) throw new UsageError('"hooks" in it is not an object')
  return entries.reduce((text, entry) => {
    const all = childNamed(jsonSpans(text), 'hooks')
    const groups = childNamed(all, entry.event)
    if (groups === undefined) return appended(text, all, [groupOf(entry)], entry.event)
    if (groups.opens !== '[') throw new UsageError(`"hooks.${entry.event}" in it is not a list`)
    return appended(text, groups, groupOf(entry))
  }, clean)
}

/**
 * The text of settings without our hooks, and without what was made for them alone; `undefined` when the file was made for them.
 * @throws UsageError when the text is no JSON object
 */
export function withoutEntries(before: string): string | undefined {
  let text = before
  for (let [found] = ownEntries(settingsIn(text)); found !== undefined; [found] = ownEntries(settingsIn(text))) {
    const cut = withoutOne(text, found.at)
    if (cut === undefined) return undefined
    text = cut
  }
  return text
}

/** The settings in a text. A byte order mark is no part of them. @throws UsageError */
export function settingsIn(text: string): Fields {
  let value: unknown
  try {
    value = JSON.parse(text.replace(/^\ufeff/, ''))
  } catch {
    throw new UsageError('it is no valid JSON (comments are none)')
  }
  if (!isFields(value)) throw new UsageError('it is no JSON object')
  return value
}

function groupOf({ matcher, command, timeout }: HookEntry): Fields {
  return { ...(matcher === undefined ? {} : { matcher }), hooks: [{ type: 'command', command, timeout }] }
}

function groupsOf(entries: readonly HookEntry[]): Fields {
  return Object.fromEntries(entries.map((entry) => [entry.event, [groupOf(entry)]]))
}

/** The last member of a name counts, as it does for every reader of JSON. */
function childNamed(span: JsonSpan | undefined, key: string): JsonSpan | undefined {
  return span?.children.findLast((child) => child.key === key)?.value
}

/** What stands between the bracket that opens a value and the first thing in it. */
function leadOf(text: string, { start, end, children }: JsonSpan): string {
  return text.slice(start + 1, children[0]?.start ?? end - 1)
}

/**
 * Adds a value at the end of an object or a list, as its neighbours are written. What is added to an empty one begins so that
 * `wasEmpty` can tell it from one that was made by us.
 */
function appended(text: string, into: JsonSpan | undefined, value: unknown, key?: string): string {
  if (into === undefined) throw new UsageError('"hooks" in it is not an object')
  const last = into.children.at(-1)
  const lead = leadOf(text, into)
  const wide = last !== undefined && lead.includes('\n')
  const name = key === undefined ? '' : `${JSON.stringify(key)}:${wide ? ' ' : ''}`
  if (last === undefined) return `${text.slice(0, into.start + 1)}${emptyMark(text, into)}${name}${JSON.stringify(value)}${text.slice(into.end - 1)}`
  if (!wide) return `${text.slice(0, last.end)},${name}${JSON.stringify(value)}${text.slice(last.end)}`
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const indent = lead.slice(lead.lastIndexOf('\n') + 1)
  const lines = JSON.stringify(value, null, unitOf(text)).split('\n').join(`${eol}${indent}`)
  return `${text.slice(0, last.end)},${eol}${indent}${name}${lines}${text.slice(last.end)}`
}

/** One step of indentation: what stands before the first member of the settings. */
function unitOf(text: string): string {
  const lead = leadOf(text, jsonSpans(text))
  return lead.slice(lead.lastIndexOf('\n') + 1)
}

/** Inside of something that has its values on lines of their own nothing of ours begins at once; elsewhere, with a blank. */
function emptyMark(text: string, span: JsonSpan): string {
  const above = parentOf(jsonSpans(text), span)
  return above !== undefined && leadOf(text, above).includes('\n') ? '' : ' '
}

/** True when an object or a list was there, empty, before something of ours was put in. */
function wasEmpty(text: string, span: JsonSpan): boolean {
  const above = parentOf(jsonSpans(text), span)
  const lead = leadOf(text, span)
  return above === undefined ? !lead.includes('\n') : lead === emptyMark(text, span)
}

function parentOf(root: JsonSpan, span: JsonSpan): JsonSpan | undefined {
  const next = root.children.find(({ value }) => value.start <= span.start && span.end <= value.end)?.value
  if (next === undefined) return undefined
  return next.start === span.start ? root : parentOf(next, span)
}

/** Takes one hook out, then what holds nothing any more. `undefined` when that is the whole file. */
function withoutOne(text: string, [event, group, place]: readonly [string, number, number]): string | undefined {
  const root = jsonSpans(text)
  const hooks = childNamed(root, 'hooks')
  const groups = childNamed(hooks, event)
  const own = groups?.children[group]?.value
  const handlers = childNamed(own, 'hooks')
  if (hooks === undefined || groups === undefined || handlers === undefined) return text
  if (handlers.children.length > 1) return withoutChild(text, handlers, place)
  if (groups.children.length > 1 || wasEmpty(text, groups)) return withoutChild(text, groups, group)
  const at = hooks.children.findIndex(({ value }) => value === groups)
  if (hooks.children.length > 1 || wasEmpty(text, hooks)) return withoutChild(text, hooks, at)
  const member = root.children.findIndex(({ value }) => value === hooks)
  return root.children.length > 1 || wasEmpty(text, root) ? withoutChild(text, root, member) : undefined
}

function withoutChild(text: string, { start, end, children }: JsonSpan, index: number): string {
  const [child, before, after] = [children[index], children[index - 1], children[index + 1]]
  if (child === undefined) return text
  if (before !== undefined) return text.slice(0, before.end) + text.slice(child.end)
  if (after !== undefined) return text.slice(0, child.start) + text.slice(after.start)
  return text.slice(0, start + 1) + text.slice(end - 1)
}
