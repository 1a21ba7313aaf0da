import type { Gate, Store } from '../../formats/format.js'
import { finding, type Finding } from '../../model/finding.js'
import type { Json } from '../../model/report.js'

/** The gates of a store, and findings for those that stop checkpoints. */
export interface GateState {
  readonly gates: readonly Gate[]
  readonly findings: readonly Finding[]
}

/** The gates of a store in every settings file that speaks for it or for one of `projects` (recorded folders). */
export function checkGates(store: Store, projects: readonly string[]): GateState {
  const gates = gatesOfAll(store, projects)
  const findings = gates.filter((gate) => gate.stops).map((gate) => {
    const message = `${gate.gate} is ${gate.value ?? 'set'} in ${gate.from ?? 'the settings'}: ${gate.effect}`
    return finding('checkpointing-off', message, gate.from === undefined || gate.from === 'environment' ? {} : { path: gate.from })
  })
  return { gates, findings }
}

/** A gate as a row of the report. */
export function gateRow({ gate, value, from, effect }: Gate): Json {
  return { gate, value: value ?? null, from: from ?? null, effect }
}

function gatesOfAll(store: Store, projects: readonly string[]): Gate[] {
  const gates = store.gates()
  const seen = new Set(gates.map(place))
  for (const project of projects) {
    for (const gate of store.gates(project)) {
      if (gate.from === undefined || seen.has(place(gate))) continue
      seen.add(place(gate))
      gates.push(gate)
    }
  }
  // The row for "set nowhere" is for a gate that is set nowhere at all.
  return gates.filter((gate) => gate.from !== undefined || !gates.some((other) => other.gate === gate.gate && other.from !== undefined))
}

function place(gate: Gate): string {
  return `${gate.gate} ${gate.from ?? ''}`
}
