import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { evil, evilStore } from './page-store.js'

/** What runs inside the page is given as text: it belongs to the browser, whose types are not ours. */
const browserPaths = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome']
const executablePath = browserPaths.find((path) => existsSync(path))
const required = process.env.REWIND_ADMIN_TEST_BROWSER === 'required'

if (executablePath === undefined && !required) console.log('the page was not looked at: there is no Chromium on this machine')

// Ratios of WCAG 2.2: 1.4.3 for text, 1.4.11 for what is drawn.
const contrastOfTexts = `(() => {
  const channels = (text) => (/rgba?\\(([^)]*)\\)/.exec(text)?.[1] ?? '').split(',').map(Number)
  const light = (text) => {
    const [r, g, b] = channels(text).map((value) => { const c = value / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const ratio = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + 0.05) / (low + 0.05) }
  const ground = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor
      if (channels(colour)[3] !== 0) return colour
    }
    return 'rgb(255, 255, 255)'
  }
  const found = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement
    if (node.textContent.trim() === '' || ['SCRIPT', 'STYLE', 'TITLE', 'DESC'].includes(element.tagName.toUpperCase())) continue
    const style = getComputedStyle(element)
    found.push({ what: element.tagName + '.' + element.getAttribute('class'), ratio: ratio(element.closest('svg') ? style.fill : style.color, ground(element)), least: 4.5 })
  }
  for (const shape of document.querySelectorAll('.share .part, .chart .store, .chart .own')) {
    found.push({ what: shape.getAttribute('class'), ratio: ratio(getComputedStyle(shape).fill, ground(shape)), least: 3 })
  }
  for (const key of document.querySelectorAll('.key')) found.push({ what: 'key', ratio: ratio(getComputedStyle(key).backgroundColor, ground(key.parentElement)), least: 3 })
  return found
})()`

describe.runIf(executablePath !== undefined || required)('the page in a browser', () => {
  let browser: Browser
  let address = ''
  let page: Page
  let requests: string[] = []
  let complaints: string[] = []

  beforeAll(async () => {
    if (executablePath === undefined) throw new Error('a browser is required here, and there is no Chromium on this machine')
    browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
    const { root, cli } = await evilStore(afterAll)
    const file = join(cli.home, 'report.html')
    await cli('report', '--html', file, '--root', root)
    address = pathToFileURL(file).href
  })

  afterAll(() => browser.close())
  afterEach(() => page.context().close())

  async function open(looks: { readonly colorScheme?: 'light' | 'dark'; readonly width?: number; readonly javaScriptEnabled?: boolean } = {}): Promise<void> {
    const { width = 1200, ...others } = looks
    const context = await browser.newContext({ viewport: { width, height: 800 }, ...others })
    page = await context.newPage()
    requests = []
    complaints = []
    page.setDefaultTimeout(20_000)
    page.on('request', (request) => requests.push(request.url()))
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(address)
  }

  it('asks for nothing but itself, and has nothing to complain of', async () => {
    await open()
    await page.waitForTimeout(200)
    expect(requests.filter((url) => url !== 'data:,')).toEqual([address])
    expect(complaints).toEqual([])
  })

  it('shows names that hold markup as they are, and does nothing that they say', async () => {
    await open()
    await page.evaluate(`for (const button of document.querySelectorAll('th button')) { button.click(); button.click() }`)
    expect(await page.evaluate('window.hacked')).toBeUndefined()
    expect(await page.evaluate(`[document.scripts.length, document.images.length, document.querySelectorAll('[onclick], [onerror], main b').length]`)).toEqual([1, 0, 0])
    const shown = evil.replace('\u202e', '\\u202e')
    const names = await page.locator('#store-1-projects-table tbody th').allTextContents()
    expect(names).toContain(`/w/${shown}`)
    expect(await page.locator('#store-1-files-table tbody th').allTextContents()).toEqual([shown])
    expect(await page.locator('h2').textContent()).toContain(`e"vil'<b onclick=hacked>&amp;`)
    expect(await page.title()).toBe('Rewind stores – report')
  })

  it('may not run a script that was slipped in: the policy stops it', async () => {
    await open()
    await page.evaluate(`(() => { const script = document.createElement('script'); script.textContent = 'window.hacked = 3'; document.body.append(script) })()`)
    expect(await page.evaluate('window.hacked')).toBeUndefined()
    expect(complaints.join()).toContain('Content Security Policy')
  })

  it.each(['light', 'dark'] as const)('is readable in %s: every text has 4.5:1 and every shape 3:1', async (colorScheme) => {
    await open({ colorScheme })
    await page.locator('summary').click()
    const found: { what: string; ratio: number; least: number }[] = await page.evaluate(contrastOfTexts)
    expect(found.length).toBeGreaterThan(100)
    expect(found.filter(({ ratio, least }) => !(ratio >= least))).toEqual([])
    const ground = await page.evaluate('getComputedStyle(document.body).backgroundColor')
    expect(ground).toBe(colorScheme === 'light' ? 'rgb(251, 250, 247)' : 'rgb(22, 24, 27)')
  })

  it.each([360, 320, 1200])('at %i pixels scrolls down only; what is wider scrolls in its own box, and letters stay legible', async (width) => {
    await open({ width })
    await page.locator('summary').click()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    expect(await page.evaluate(`Array.from(document.querySelectorAll('main *:not(.scroll *)')).filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.unseen')).length`)).toBe(0)
    // What a reader sees: the size that the drawing has after it was scaled.
    const letters: number[] = await page.evaluate(`Array.from(document.querySelectorAll('.chart text'), (text) => parseFloat(getComputedStyle(text).fontSize) * text.closest('svg').getBoundingClientRect().width / 720)`)
    expect(Math.min(...letters)).toBeGreaterThan(8)
  })

  it('sorts by the keyboard alone, tells so, and shows where the focus is', async () => {
    await open()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the report')
    expect(await page.evaluate('document.activeElement.getBoundingClientRect().top')).toBeGreaterThanOrEqual(0)
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')

    const table = page.locator('#store-1-sessions-table')
    const sizes = (): Promise<number[]> => page.evaluate(`Array.from(document.querySelectorAll('#store-1-sessions-table tbody td:nth-child(2)'), (cell) => Number(cell.dataset.value))`)
    const head = table.locator('th', { hasText: 'size' })
    const inOrder = (await sizes()).toSorted((a, b) => a - b)
    expect(new Set(inOrder).size).toBeGreaterThan(3)
    expect(await head.getAttribute('aria-sort')).toBeNull()

    await table.locator('thead button', { hasText: 'session' }).focus()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth')).toBe('solid3px')
    await page.keyboard.press('Enter')
    expect([await head.getAttribute('aria-sort'), await sizes()]).toEqual(['descending', inOrder.toReversed()])
    expect(await page.locator('#said').textContent()).toBe('Sorted by size, descending')
    await page.keyboard.press('Space')
    expect([await head.getAttribute('aria-sort'), await sizes()]).toEqual(['ascending', inOrder])

    // Text sorts as text, the other way round, and only one head says that it sorts.
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    const ids = await table.locator('tbody th').allTextContents()
    expect(ids).toEqual(ids.toSorted((a, b) => a.localeCompare(b)))
    expect(await table.locator('[aria-sort]').count()).toBe(1)
  })

  it('has landmarks, one first heading, a language, and a name for every table and drawing', async () => {
    await open()
    expect(await page.evaluate(`['header', 'nav', 'main', 'footer', 'h1'].map((name) => document.querySelectorAll(name).length)`)).toEqual([1, 1, 1, 1, 1])
    expect(await page.evaluate('document.documentElement.lang')).toBe('en')
    expect(await page.evaluate(`Array.from(document.querySelectorAll('table')).filter((t) => t.caption === null || t.caption.textContent === '').length`)).toBe(0)
    expect(await page.evaluate(`(() => { const ids = Array.from(document.querySelectorAll('[id]'), (e) => e.id); return ids.length - new Set(ids).size })()`)).toBe(0)
    expect(await page.getByRole('img', { name: /^Size after each run/ }).count()).toBe(1)
    expect(await page.locator('main h2').count()).toBe(1)
    // Each box that scrolls can be reached and has a name.
    expect(await page.evaluate(`Array.from(document.querySelectorAll('.scroll')).filter((box) => box.tabIndex !== 0 || !box.getAttribute('aria-label')).length`)).toBe(0)
  })

  it('is whole without a script', async () => {
    await open({ javaScriptEnabled: false })
    expect(await page.locator('#store-1-sessions-table tbody tr').count()).toBe(14)
    expect(await page.locator('th button').count()).toBe(0)
    expect(complaints).toEqual([])
  })
})
