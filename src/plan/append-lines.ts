import { closeSync, constants, fstatSync, fsyncSync, openSync, readSync } from 'node:fs'
import { writeWhole } from '../fs/atomic-write.js'
import { FenceError } from '../model/errors.js'
import type { StorePlace } from './sidecar.js'
import { Sidecar } from './sidecar.js'

/**
 * Appends whole lines to a file of the sidecar, which is made when it is not there. Hold the store's lock.
 * @param path in the sidecar
 * @param text every line with its line end
 * @throws NoSpaceError and FenceError when the sidecar cannot be made or something else stands at the path; system errors, for instance of a full disk
 */
export function appendLines(place: StorePlace, path: string, text: string): void {
  const sidecar = new Sidecar(place)
  sidecar.prepare()
  sidecar.withRoom(() => {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK
    const fd = openSync(path, flags, 0o600)
    try {
      if (!fstatSync(fd).isFile()) throw new FenceError(`${path} is not a plain file; nothing was written to it`, { hint: `move ${path} away, then run again` })
      // A run that was killed may have left half a line: what follows shall begin on its own.
      writeWhole(fd, Buffer.from(endsWhole(fd) ? text : `\n${text}`))
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  })
  sidecar.own(path)
}

function endsWhole(fd: number): boolean {
  const { size } = fstatSync(fd)
  const last = Buffer.alloc(1, '\n')
  if (size > 0) readSync(fd, last, 0, 1, size - 1)
  return last[0] === 0x0a
}
