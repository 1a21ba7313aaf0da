import { NoStoreError } from '../../model/errors.js'
import { thisMachine } from '../../fs/machine.js'
import type { Report } from '../../model/report.js'
import { doctor } from '../../operations/doctor.js'
import { acknowledge } from '../../operations/doctor/acknowledge.js'
import { configOf, openWorkplace, surroundingsOf, type Workplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { doctorText } from './doctor-text.js'

export const command = defineCommand({
  positionals: {},
  options: {
    ack: { type: 'boolean', describe: 'A failed job was looked at: let jobs remove again' },
  },
  run(context, { ack }) {
    const { stores, config, around, machine } = workplace()
    const noted = ack === true ? acknowledge(stores) : (report: Report): Report => report
    const report = noted(doctor({
      stores,
      config,
      around,
      machine,
      nodeVersion: process.version,
      now: context.now(),
    }))
    return Promise.resolve({ report, text: () => ({ body: doctorText(report) }) })

    /** A machine without a store is worth a look too: the report then says so. */
    function workplace(): Workplace {
      try {
        return openWorkplace(context)
      } catch (error) {
        if (!(error instanceof NoStoreError) || context.globals.roots.length > 0) throw error
        return { stores: [], config: configOf(context), around: surroundingsOf(context), machine: thisMachine() }
      }
    }
  },
})
