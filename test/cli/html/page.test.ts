import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { growthChart, growthWords } from '../../../src/cli/html/chart.js'
import { html } from '../../../src/cli/html/markup.js'
import { dataTable } from '../../../src/cli/html/table.js'
import { evil, evilStore } from './page-store.js'
import type { HistoryEntry } from '../../../src/operations/history.js'

function run(day: number, bytes: number, ownBytes = 0): HistoryEntry {
  const time = new Date(Date.UTC(2026, 10, day)).toISOString()
  return { time, job: 'nightly', runId: 'r', exitCode: 0, sessions: 3, backups: 2, bytes, backupBytes: 0, ownBytes, removedSessions: 0, removedBytes: 0 }
}

async function page(): Promise<string> {
  const { root, cli } = await evilStore()
  const file = join(cli.home, 'report.html')
  expect((await cli('report', '--html', file, '--root', root)).exitCode).toBe(0)
  return readFileSync(file, 'utf8')
}

describe('markup', () => {
  it('lets no text out of an element or a quoted attribute', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.constant(evil)), (text) => {
        expect(html`${text}`.text).not.toMatch(/[<>"'\u0000-\u001f]|&(?!amp;|lt;|gt;|quot;|#39;)/)
      }),
    )
  })

  it('keeps what it made itself, joins lists, and drops what is not there', () => {
    expect(html`<p>${html`<b>${'a<b'}</b>`}${[html`<i>${1}</i>`, ' & ']}${undefined}</p>`.text).toBe('<p><b>a&lt;b</b><i>1</i> &amp; </p>')
  })
})

describe('the page', () => {
  it('allows its own style and script by their digests, and nothing else', async () => {
    const text = await page()
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(text)?.[1]?.replaceAll('&#39;', "'")
    const digest = (tag: string): string => {
      const [, inner = ''] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(text) ?? []
      return `sha256-${createHash('sha256').update(inner).digest('base64')}`
    }
    expect(policy).toBe(`default-src 'none'; style-src '${digest('style')}'; script-src '${digest('script')}'; img-src data:; base-uri 'none'; form-action 'none'`)
    expect(text.indexOf('Content-Security-Policy')).toBeLessThan(text.indexOf('<style>'))
  })

  it('names no other place, and has one script, one style, and no handler or style in an attribute', async () => {
    const text = await page()
    expect(text.match(/<script|<style/g)).toEqual(['<style', '<script'])
    expect(text.match(/https?:|@import|url\(|<iframe|<object|<form|<base/gi)).toBeNull()
    // What stands between < and > is only what the page is made of.
    const tags = text.replace(/<(script|style)>[\s\S]*?<\/\1>/g, '').match(/<[^>]*>/g) ?? []
    expect(tags.filter((tag) => /\son\w+=|\sstyle=|\ssrc=|javascript:/i.test(tag))).toEqual([])
  })

  it('never turns text around or hides it: marks that do are written out', async () => {
    expect(await page()).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202a-\u202e]/)
  })
})

describe('the chart of growth', () => {
  it('says in words what it shows', () => {
    expect(growthWords(run(1, 1000), run(11, 3500, 40), 11)).toBe(
      'Over the last 11 recorded runs (10 d): sessions up 2.5 kB, from 1.0 kB. After the last one: 3.5 kB in 3 sessions, and 40 B in our own folder.',
    )
    expect(growthWords(run(1, 3500), run(2, 1000), 2)).toContain('sessions down 2.5 kB, from 3.5 kB')
    expect(growthWords(run(1, 7), run(2, 7), 2)).toContain('sessions unchanged, from 7 B')
    expect(growthWords(run(1, 1000), run(1, 1000), 1)).toBe('After the only recorded run: 1.0 kB in 3 sessions, and 0 B in our own folder.')
  })

  it('draws each bar as high as its bytes, from nought, against round marks', () => {
    const { text } = growthChart([run(1, 1_000_000), run(2, 500_000, 1_500_000)], 'c')
    const heights = [...text.matchAll(/class="(store|own)"[^>]*height="([\d.]+)"/g)].map(([, name, height]) => [name, Number(height)])
    // The largest is 2 MB, and 0, 0.5, 1, 1.5 and 2 MB are marked: the whole height of 180 stands for 2 MB.
    expect(heights).toEqual([['store', 90], ['own', 0], ['store', 45], ['own', 135]])
    expect([...text.matchAll(/text-anchor="end">([\d.]+ \w+)</g)].map(([, mark]) => mark)).toEqual(['0 B', '500 kB', '1.0 MB', '1.5 MB', '2.0 MB'])
  })

  it('copes with a store that is empty, and with none of the runs recorded', () => {
    expect(growthChart([run(1, 0)], 'c').text).not.toMatch(/NaN|Infinity/)
    expect(growthChart([], 'c').text).toContain('No run was recorded yet')
  })

  it('draws the last 60 runs and the table has the same', () => {
    const { text } = growthChart(Array.from({ length: 80 }, (_, index) => run(index + 1, index)), 'c')
    expect(text.match(/class="store" x/g)).toHaveLength(60)
    expect(text.match(/<tr>/g)).toHaveLength(61)
  })
})

it('a table counts the rows that it does not show', () => {
  const { text } = dataTable({ id: 't', label: 'T', columns: [{ title: 'n', kind: 'number' }], rows: Array.from({ length: 1200 }, (_, index) => [index]), most: 10 })
  expect(text.match(/<td/g)).toHaveLength(10)
  expect(text).toContain('and 1,190 more')
})
