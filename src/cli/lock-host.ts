import { hostname } from 'node:os'

/** How locks name this machine and its pid namespace: those who name it alike see the same pids. */
export function lockHost(machine: { readonly pidDomain: string | undefined }): string {
  return `${hostname()} ${machine.pidDomain ?? ''}`.trim()
}
