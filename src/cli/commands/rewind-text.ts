import { isFields, textOf } from '../../model/fields.js'
import type { Report } from '../../model/report.js'
import { printable } from '../text/printable.js'
import { table } from '../text/table.js'
import { countText } from '../text/units.js'
import { fieldsOf, wordOf } from './session-table.js'

const changeColumns = [{ title: '' }, { title: 'lines', align: 'right' }, { title: 'file' }] as const
const noteColumns = [{ title: 'differs from the agent' }, { title: 'how' }] as const
const leftColumns = [{ title: 'left alone' }, { title: 'reason' }] as const

/** The text of `rewind` and `redo`: what changes, what is left alone, and the prompt to send again. */
export function rewindText(report: Report): string {
  const { summary, extra } = report
  const changes = fieldsOf(extra?.changes).map((change) => [wordOf(change.action), linesText(change), wordOf(change.path)])
  const skipped = fieldsOf(extra?.skipped).map((left) => [wordOf(left.path), wordOf(left.reason)])
  const notes = fieldsOf(extra?.changes).flatMap((change) => (change.note === undefined ? [] : [[wordOf(change.path), wordOf(change.note)]]))
  const verb = report.applied ? 'changed' : 'would change'
  const counted = `${countText(changes.length, 'file')} ${verb}, ${countText(Number(summary.insertions), 'line')} in, ${wordOf(summary.deletions)} out\n`
  return [
    `${headText(summary)}${counted}`,
    table(changeColumns, changes, '  '),
    table(noteColumns, notes, '  '),
    table(leftColumns, skipped, '  '),
    diffText(textOf(extra?.diff)),
    summary.rolledBack === true ? 'A file could not be written, so everything was put back.\n' : '',
    conversationText(extra?.conversation),
  ]
    .filter((part) => part !== '')
    .join('\n')
}

function headText(summary: Report['summary']): string {
  const checkpoint = summary.checkpoint === null ? '' : `checkpoint ${wordOf(summary.checkpoint)}${summary.time === null ? '' : `, ${wordOf(summary.time)}`}\n`
  return `session ${printable(wordOf(summary.session))}\n${printable(checkpoint.trimEnd())}${checkpoint === '' ? '' : '\n'}`
}

function linesText(change: Readonly<Record<string, unknown>>): string {
  return change.binary === true ? 'binary' : `+${wordOf(change.insertions)} -${wordOf(change.deletions)}`
}

/** A diff keeps its line ends; everything else in it is made safe to print. */
function diffText(diff: string | undefined): string {
  if (diff === undefined) return ''
  return diff.split('\n').map((line) => line.split('\t').map(printable).join('\t')).join('\n')
}

function conversationText(conversation: unknown): string {
  if (!isFields(conversation)) return ''
  const mode = conversation.permissionMode === null ? '' : ` (permission mode ${printable(wordOf(conversation.permissionMode))})`
  const session = conversation.session === null ? '' : `The conversation goes on in session ${printable(wordOf(conversation.session))}.\n`
  const images = Array.isArray(conversation.imagePaths) ? conversation.imagePaths.map((path) => `  ${printable(wordOf(path))}\n`).join('') : ''
  const prompt = wordOf(conversation.prompt).split('\n').map((line) => `  ${printable(line)}\n`).join('')
  return `${session}The prompt to send again${mode}:\n${prompt}${images === '' ? '' : `Its pictures:\n${images}`}`
}
