/** An element of a small, strict reading of XML 1.0: enough for what JUnit needs, and nothing that is not well formed passes. */
export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: Element[]
  text: string
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const token =
  /<\/(?<close>[A-Za-z][\w.-]*)>|<(?<open>[A-Za-z][\w.-]*)(?<attributes>(?:\s+[A-Za-z][\w.-]*="[^"<]*")*)\s*(?<empty>\/?)>|(?<text>[^<]+)/gy

/** Parses a document; throws where it is not well formed or holds a character that XML 1.0 section 2.2 forbids. */
export function parseXml(document: string): Element {
  if (/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(document)) throw new Error('a character that XML does not allow')
  const head = '<?xml version="1.0" encoding="UTF-8"?>\n'
  if (!document.startsWith(head)) throw new Error('no XML declaration')
  const top: Element = { name: '', attributes: {}, children: [], text: '' }
  const open = [top]
  token.lastIndex = head.length
  while (token.lastIndex < document.length) {
    const at = token.lastIndex
    const groups = token.exec(document)?.groups
    const parent = open.at(-1)
    if (groups === undefined || parent === undefined) throw new Error(`not well formed at ${String(at)}: ${document.slice(at, at + 60)}`)
    if (groups.close !== undefined) {
      if (open.pop()?.name !== groups.close) throw new Error(`</${groups.close}> closes nothing`)
    } else if (groups.open !== undefined) {
      const element: Element = { name: groups.open, attributes: attributesOf(groups.attributes ?? ''), children: [], text: '' }
      parent.children.push(element)
      if (groups.empty === '') open.push(element)
    } else {
      parent.text += unescape(groups.text ?? '')
    }
  }
  const [root, ...others] = top.children
  if (open.length !== 1 || root === undefined || others.length > 0 || top.text.trim() !== '') throw new Error('not one closed root element')
  return root
}

function attributesOf(text: string): Record<string, string> {
  const attributes: Record<string, string> = {}
  for (const [, name = '', value = ''] of text.matchAll(/([A-Za-z][\w.-]*)="([^"<]*)"/g)) {
    if (name in attributes) throw new Error(`${name} given twice`)
    attributes[name] = unescape(value)
  }
  return attributes
}

function unescape(text: string): string {
  return text.replace(/&([^;]*;?)/g, (whole, body: string) => {
    const character = body.endsWith(';') ? entities[body.slice(0, -1)] : undefined
    if (character === undefined) throw new Error(`a bare ampersand or an unknown entity: ${whole}`)
    return character
  })
}
