import { createHash } from 'node:crypto'
import type { StoreFacts } from '../../operations/report/gather.js'
import { html, Markup } from './markup.js'
import { script } from './script.js'
import { storeSection } from './store-section.js'
import { style } from './style.js'
import { timeMarkup } from './table.js'

export interface PageMeta {
  readonly version: string
  /** Milliseconds since 1970. */
  readonly now: number
}

/** A whole page on some stores: it needs nothing else and may do nothing else, its policy allows only its own style and script. */
export function reportPage(stores: readonly StoreFacts[], { version, now }: PageMeta): string {
  const policy = `default-src 'none'; style-src '${digest(style)}'; script-src '${digest(script)}'; img-src data:; base-uri 'none'; form-action 'none'`
  // Style and script are ours, hold nothing from outside, and must keep their bytes.
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>Rewind stores – report</title>
<link rel="icon" href="data:,">
<style>${new Markup(style)}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header>
<h1>Rewind stores</h1>
<p class="soft">As of ${timeMarkup(now)} UTC, by rewind-admin ${version}. Sizes count each file once, however many names it has.</p>
<nav aria-label="Stores"><ul>
${stores.map(({ root }, index) => html`<li><a href="#store-${index + 1}"><code>${root}</code></a></li>
`)}</ul></nav>
</header>
<main id="main" tabindex="-1">
<p id="said" class="unseen" role="status"></p>
${stores.map((facts, index) => storeSection(facts, `store-${String(index + 1)}`))}</main>
<footer>
<p>Nothing was changed to make this page. It names projects and files of yours: look before you pass it on.</p>
</footer>
<script>${new Markup(script)}</script>
</body>
</html>
`.text
}

function digest(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}
