import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ping } from '../../../src/operations/notify/ping.js'

interface Seen {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly length: number
}

/** A real server, which notes what it is asked and answers with a status, or never. */
async function server(status: number | 'never'): Promise<{ readonly base: string; readonly seen: Seen[] }> {
  const seen: Seen[] = []
  const listening: Server = createServer((request: IncomingMessage, response) => {
    let length = 0
    request.on('data', (chunk: Buffer) => (length += chunk.length))
    request.on('end', () => {
      seen.push({ method: request.method, url: request.url, length })
      if (status !== 'never') response.writeHead(status).end('OK')
    })
  })
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    listening.closeAllConnections()
    listening.close()
  })
  return { base: `http://127.0.0.1:${String((listening.address() as AddressInfo).port)}`, seen }
}

describe('a ping', () => {
  it('asks for the address of the event and sends nothing else', async () => {
    const { base, seen } = await server(200)
    const settings = { start: `${base}/secret/start`, success: `${base}/secret`, fail: `${base}/secret/fail`, timeoutMs: 5000 }
    for (const event of ['start', 'success', 'fail'] as const) expect(await ping(settings, event, fetch)).toBeUndefined()
    expect(seen).toEqual(['/secret/start', '/secret', '/secret/fail'].map((url) => ({ method: 'GET', url, length: 0 })))
  })

  it('is not made where there is no address for it', async () => {
    const none = (): never => {
      throw new Error('asked')
    }
    expect(await ping(undefined, 'start', none)).toBeUndefined()
    expect(await ping({ success: 'https://x', timeoutMs: 1 }, 'start', none)).toBeUndefined()
  })

  it('that is answered with an error, or not at all, is told in words without the address', async () => {
    const refused = await server(404)
    expect(await ping({ fail: `${refused.base}/secret`, timeoutMs: 5000 }, 'fail', fetch)).toBe('the ping for fail was answered with status 404')
    const gone = await ping({ start: 'http://127.0.0.1:1/secret', timeoutMs: 5000 }, 'start', fetch)
    expect(gone).toMatch(/^the ping for start failed: /)
    expect(gone).not.toContain('secret')
  })

  it('that has no answer ends with its time limit, also when the request cannot be taken back', async () => {
    const { base } = await server('never')
    const words = 'the ping for start had no answer within 0.05 s'
    expect(await ping({ start: `${base}/secret`, timeoutMs: 50 }, 'start', fetch)).toBe(words)
    expect(await ping({ start: `${base}/secret`, timeoutMs: 50 }, 'start', () => new Promise(() => undefined))).toBe(words)
  })

  it('is given up when the run is stopped', async () => {
    const { base } = await server('never')
    const controller = new AbortController()
    const pinged = ping({ start: `${base}/secret`, timeoutMs: 60_000 }, 'start', fetch, controller.signal)
    controller.abort()
    expect(await pinged).toMatch(/^the ping for start (was given up|failed: .*)$/)
  })
})
