import type { Identities, TestClock } from './identity.js'

/** How lines were written by the released clients; seen in the corpus stores of the same versions. */
export type Generation = 'G1' | 'G2' | 'G3' | 'G4'

const clientVersions: Readonly<Record<Generation, string>> = { G1: '2.0.64', G2: '2.1.112', G3: '2.1.208', G4: '2.1.332' }

export type Line = Readonly<Record<string, unknown>>

export interface Scene {
  readonly generation: Generation
  readonly session: string
  readonly project: string
  readonly clock: TestClock
  readonly ids: Identities
  /** Uuid of the message that the next one hangs off. */
  readonly parent: string | null
  /** Number of the turn, from 1. */
  readonly turn: number
  readonly promptId: string
}

/** A tool call as a model writes it. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: Line
}

function tail(scene: Scene): Line {
  return {
    userType: 'external',
    entrypoint: 'sdk-cli',
    cwd: scene.project,
    sessionId: scene.session,
    version: clientVersions[scene.generation],
    gitBranch: 'HEAD',
  }
}

function headOfG1(scene: Scene): Line {
  const { parent, project, session, turn } = scene
  const head = { parentUuid: parent, isSidechain: false, userType: 'external', cwd: project, sessionId: session, version: clientVersions.G1, gitBranch: '' }
  return turn > 1 ? { ...head, slug: 'quiet-wading-heron' } : head
}

function fromUser(scene: Scene, uuid: string, content: unknown, extra: Line): Line {
  const message = { role: 'user', content }
  const timestamp = scene.clock.tick()
  if (scene.generation === 'G1') return { ...headOfG1(scene), type: 'user', message, uuid, timestamp, ...extra }
  const { parent, promptId } = scene
  return { parentUuid: parent, isSidechain: false, promptId, type: 'user', message, uuid, timestamp, ...extra, ...tail(scene) }
}

/** What the client notes as it takes a prompt from its queue. */
export function queueLines(scene: Scene): Line[] {
  const operations = scene.generation === 'G1' ? ['dequeue'] : ['enqueue', 'dequeue']
  return operations.map((operation) => ({ type: 'queue-operation', operation, timestamp: scene.clock.tick(1), sessionId: scene.session }))
}

export function promptLine(scene: Scene, uuid: string, text: string): Line {
  const newer = { promptSource: 'sdk', sentAtMs: scene.clock.now, rowSource: 'local', turnOrigin: 'sdk', turnPosition: { promptIndex: 0, turnIndex: scene.turn } }
  const extra = {
    G1: {},
    G2: { permissionMode: 'bypassPermissions' },
    G3: { permissionMode: 'bypassPermissions' },
    G4: { permissionMode: 'bypassPermissions', ...newer },
  }[scene.generation]
  return fromUser(scene, uuid, [{ type: 'text', text }], extra)
}

export function toolResult(scene: Scene, uuid: string, call: ToolCall, result: Line, assistant: string): Line {
  const extra = {
    G1: {},
    G2: { sourceToolAssistantUUID: assistant },
    G3: { sourceToolAssistantUUID: assistant },
    G4: { sourceToolAssistantUUID: assistant, permissionDecision: { decision: 'accept', source: 'config', reasonType: 'mode' } },
  }[scene.generation]
  const content = [{ tool_use_id: call.id, type: 'tool_result', content: '…' }]
  return fromUser(scene, uuid, content, { toolUseResult: result, ...extra })
}

/** A message of the model: a tool call, or `done` at the end of a turn. */
export function modelLine(scene: Scene, uuid: string, call?: ToolCall): Line {
  const content = call === undefined ? [{ type: 'text', text: 'done' }] : [{ type: 'tool_use', ...call }]
  const message = {
    id: `msg_${uuid.slice(0, 8)}`,
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content,
    stop_reason: call === undefined ? 'end_turn' : 'tool_use',
    stop_sequence: null,
    usage: { input_tokens: 5, output_tokens: 9, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
  }
  const timestamp = scene.clock.tick()
  if (scene.generation === 'G1') return { ...headOfG1(scene), message, type: 'assistant', uuid, timestamp }
  const head = { parentUuid: scene.parent, isSidechain: false, message }
  if (scene.generation !== 'G4') return { ...head, type: 'assistant', uuid, timestamp, ...tail(scene) }
  const request = { apiBlockIndex: 0, requestRef: scene.ids.next(), requestedModel: 'claude-sonnet-4-5', promptCacheRequested: '5m' }
  return { ...head, ...request, type: 'assistant', uuid, timestamp, perTurnEffort: null, madeBy: 'model', ...tail(scene) }
}

/** An `attachment` message; it takes part in the chain of parents. */
export function attachmentLine(scene: Scene, uuid: string, kind: string): Line {
  const rendered = scene.generation === 'G4' ? { rendered: '…', renderedRole: 'system' } : {}
  const head = { parentUuid: scene.parent, isSidechain: false, attachment: { type: kind }, type: 'attachment' }
  return { ...head, uuid, timestamp: scene.clock.tick(1), ...rendered, ...tail(scene) }
}

/** Bookkeeping that only the newest clients write around a request. */
export function requestLines(scene: Scene): Line[] {
  const { session: sessionId, clock } = scene
  return [
    { type: 'api-request-blob', sessionId },
    { type: 'api-request', sessionId, timestamp: clock.tick(1), version: clientVersions[scene.generation] },
  ]
}

interface Hunk {
  readonly oldStart: number
  readonly oldLines: number
  readonly newStart: number
  readonly newLines: number
  readonly lines: readonly string[]
}

const context = 3

/** One hunk from the first to the last line that differ, with three lines around; as clients write `structuredPatch`. */
export function structuredPatch(before: string, after: string): Hunk[] {
  if (before === after) return []
  const a = splitLines(before)
  const b = splitLines(after)
  let head = 0
  while (head < Math.min(a.length, b.length) && a[head] === b[head]) head += 1
  let foot = 0
  while (foot < Math.min(a.length, b.length) - head && a[a.length - 1 - foot] === b[b.length - 1 - foot]) foot += 1
  const start = Math.max(0, head - context)
  const extra = Math.min(foot, context)
  const kept = (lines: readonly string[]): string[] => lines.flatMap((line) => marked(' ', line))
  const lines = [
    ...kept(a.slice(start, head)),
    ...a.slice(head, a.length - foot).flatMap((line) => marked('-', line)),
    ...b.slice(head, b.length - foot).flatMap((line) => marked('+', line)),
    ...kept(a.slice(a.length - foot, a.length - foot + extra)),
  ]
  const [oldLines, newLines] = [a.length - foot + extra - start, b.length - foot + extra - start]
  return [{ oldStart: start + 1, oldLines, newStart: start + 1, newLines, lines }]
}

function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

function marked(sign: string, line: string): string[] {
  return line.endsWith('\n') ? [sign + line.slice(0, -1)] : [sign + line, '\\ No newline at end of file']
}
