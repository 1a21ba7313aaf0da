import { claudeCode } from './claude-code/index.js'
import { dshRewind } from './dsh-rewind/index.js'
import type { Format } from './format.js'
import { piCandyUndo } from './pi-candy-undo/index.js'
import { qwenCode } from './qwen-code/index.js'

/** Every format, in the order in which stores are looked for. */
export const formats: readonly Format[] = [claudeCode, piCandyUndo, dshRewind, qwenCode]
