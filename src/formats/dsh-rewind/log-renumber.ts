import { isFields, type Fields } from '../../model/fields.js'

/** Why a log cannot be repaired, in words. */
export class CannotRepair extends Error {}

const targetPattern = /(^|\s)@([0-9]+)(?=\s|$)/
/** Fields of an event, or of its data, that name other events; a field of such a name that is not among them is not known. */
const known: ReadonlySet<string> = new Set(['seq', 'sourceEventSeqs', 'sourceEventSeq', 'shadowedSeqs', 'shadowedRange', 'messageSeqs'])

/** The numbers of events once some were dropped, and every place that names one (formats/dsh-rewind section 5.4). */
export class Renumbering {
  readonly #dropped: readonly number[]

  /** @param dropped numbers of events that go, ascending */
  constructor(dropped: readonly number[]) {
    this.#dropped = dropped
  }

  /** An event as it is afterwards. @throws CannotRepair when it names one that goes, or names events in a way that is not known */
  event(event: Fields): Fields {
    const { data, surfaceOp, sourceEventSeqs } = event
    refuseUnknown(event)
    if (isFields(data)) refuseUnknown(data)
    return {
      ...event,
      seq: this.#one(event.seq),
      ...(isFields(data) ? { data: this.#data(event.type, data) } : {}),
      ...(sourceEventSeqs === undefined ? {} : { sourceEventSeqs: this.#list(sourceEventSeqs) }),
      ...(isFields(surfaceOp) ? { surfaceOp: this.#numbersIn(surfaceOp, ['start', 'end', 'startSeq', 'endSeq']) } : {}),
    }
  }

  #data(type: unknown, data: Fields): Fields {
    const { shadowedRange } = data
    const range = Array.isArray(shadowedRange)
      ? { shadowedRange: (shadowedRange as unknown[]).map((seq) => this.#one(seq)) }
      : isFields(shadowedRange)
        ? { shadowedRange: this.#numbersIn(shadowedRange, Object.keys(shadowedRange)) }
        : {}
    return {
      ...data,
      ...range,
      ...(data.shadowedSeqs === undefined ? {} : { shadowedSeqs: this.#list(data.shadowedSeqs) }),
      ...(data.messageSeqs === undefined ? {} : { messageSeqs: this.#list(data.messageSeqs) }),
      ...(typeof data.sourceEventSeq === 'number' ? { sourceEventSeq: this.#one(data.sourceEventSeq) } : {}),
      ...(isRewind(type, data) ? { args: withTarget(data.args, (target) => this.#one(target)) } : {}),
    }
  }

  #numbersIn(fields: Fields, keys: readonly string[]): Fields {
    const numbers = keys.filter((key) => typeof fields[key] === 'number')
    return { ...fields, ...Object.fromEntries(numbers.map((key) => [key, this.#one(fields[key])])) }
  }

  /** Numbers, and runs of them as `[first, last]`. */
  #list(value: unknown): unknown[] {
    if (!Array.isArray(value)) throw new CannotRepair('it names events in a way that is not known')
    return (value as unknown[]).map((item) => (Array.isArray(item) ? this.#run(item) : this.#one(item)))
  }

  #run(run: readonly unknown[]): number[] {
    const [first, last] = run
    if (run.length !== 2 || typeof first !== 'number' || typeof last !== 'number') throw new CannotRepair('it names events in a way that is not known')
    const gone = this.#dropped.find((seq) => seq >= first && seq <= last)
    if (gone !== undefined) throw new CannotRepair(`event ${String(gone)} would go, and another one names it`)
    return [this.#one(first), this.#one(last)]
  }

  #one(seq: unknown): number {
    if (typeof seq !== 'number') throw new CannotRepair('it names events in a way that is not known')
    if (this.#dropped.includes(seq)) throw new CannotRepair(`event ${String(seq)} would go, and another one names it`)
    return seq - this.#dropped.filter((dropped) => dropped < seq).length
  }
}

/** True for a command of the user that rewinds. */
export function isRewind(type: unknown, data: Fields): data is Fields & { readonly args: string } {
  return type === 'command/run' && data.name === 'rewind' && typeof data.args === 'string'
}

/** The arguments of a command with its target changed; other words stay. */
export function withTarget(args: string, change: (target: number) => number): string {
  return args.replace(targetPattern, (_, space: string, digits: string) => `${space}@${String(change(Number(digits)))}`)
}

function refuseUnknown(fields: Fields): void {
  const odd = Object.keys(fields).find((key) => /seqs?$|Range$/i.test(key) && !known.has(key) && fields[key] !== null)
  if (odd !== undefined) throw new CannotRepair(`it names events by "${odd}", which is not known`)
}
