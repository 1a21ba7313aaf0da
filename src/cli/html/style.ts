/**
 * The look of the page. Colours come in a light and a dark set with at least 4.5:1 between text and ground, and 3:1 for what
 * is drawn. Nothing is fetched: the fonts are those of the reader's system.
 */
export const style = `
:root {
  color-scheme: light dark;
  --ground: #fbfaf7; --panel: #ffffff; --line: #d9d5cb; --text: #23211c; --soft: #5d584d;
  --accent: #1f5f8b; --second: #8a6414; --error: #a3221f; --warn: #7a5200; --info: #1f5f8b; --edge: #767065;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #16181b; --panel: #1e2125; --line: #3a3f46; --text: #e9e6df; --soft: #b3aea3;
    --accent: #7db8e0; --second: #d3a955; --error: #ff9d94; --warn: #e9bd63; --info: #8fc3e8; --edge: #8b8f96;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--ground); color: var(--text);
  overflow-wrap: anywhere; font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
header, main, footer { max-width: 72rem; margin: 0 auto; padding: 0 clamp(1rem, 4vw, 2.5rem); }
header { padding-top: 2rem; }
footer { padding-top: 2rem; padding-bottom: 3rem; color: var(--soft); font-size: .9rem; }
h1 { font-size: clamp(1.6rem, 1.3rem + 1.6vw, 2.3rem); line-height: 1.15; letter-spacing: -.015em; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .25rem; overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 2.25rem 0 .5rem; }
p { margin: .4rem 0; max-width: 68ch; }
thead th, td { overflow-wrap: normal; }
.soft { color: var(--soft); }
a { color: var(--accent); text-underline-offset: .15em; }
code { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; overflow-wrap: anywhere; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: 1rem; top: -4rem; padding: .5rem 1rem; background: var(--panel); border: 1px solid var(--edge); }
.skip:focus { top: .5rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; padding: 0; margin: 1rem 0 0; }
nav a { display: inline-block; padding: .25rem 0; overflow-wrap: anywhere; }
dl.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 8.5rem), 1fr)); gap: .75rem; margin: 1.25rem 0 0; }
dl.cards div { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem; min-width: 0; }
dl.cards dt { color: var(--soft); font-size: .85rem; }
dl.cards dd { margin: 0; font-size: 1.35rem; font-weight: 600; line-height: 1.3; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
dl.cards dd.words { font-size: 1rem; font-weight: 400; }
.scroll { overflow-x: auto; background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; }
table { border-collapse: collapse; width: 100%; font-size: .925rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .8rem; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 600; white-space: nowrap; vertical-align: bottom; }
tbody th { font-weight: 400; min-width: 11rem; overflow-wrap: anywhere; }
td.words { min-width: 10rem; overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.time { white-space: nowrap; font-variant-numeric: tabular-nums; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: .3rem 0; margin: 0; cursor: pointer; min-height: 1.75rem; }
th button::after { content: " \\2195"; color: var(--edge); }
th[aria-sort="ascending"] button::after { content: " \\2191"; color: var(--text); }
th[aria-sort="descending"] button::after { content: " \\2193"; color: var(--text); }
th button:hover { color: var(--text); text-decoration: underline; text-underline-offset: .2em; }
.share { display: block; width: 100%; min-width: 4rem; max-width: 12rem; margin-left: auto; height: .4rem; margin-top: .35rem; }
.share .track { fill: var(--line); }
.share .part, .chart .store { fill: var(--accent); }
.chart .own { fill: var(--second); }
.chart text { fill: var(--soft); font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
@media (max-width: 40rem) { .chart text { font-size: 26px; } }
.chart line { stroke: var(--line); }
.chart { display: block; width: 100%; height: auto; }
figure { margin: 0; background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .6rem; }
.key { display: inline-block; width: .8rem; height: .8rem; border-radius: .15rem; margin: 0 .35rem 0 0; vertical-align: -.05rem; }
.key.store { background: var(--accent); } .key.own { background: var(--second); margin-left: 1rem; }
.error { color: var(--error); font-weight: 600; } .warn { color: var(--warn); font-weight: 600; } .info { color: var(--info); }
details { margin: .75rem 0; } summary { cursor: pointer; padding: .35rem 0; }
.note { border-left: 3px solid var(--warn); padding: .3rem 0 .3rem .9rem; margin: .75rem 0; overflow-wrap: anywhere; }
@media (forced-colors: active) { .share .part, .chart .store { fill: Highlight; } .chart .own { fill: CanvasText; } .key { forced-color-adjust: none; } }
@media print { nav, .skip { display: none; } .scroll { overflow: visible; } body { background: #fff; } }
`
