/** Text between tags of XML. Control characters, which XML 1.0 forbids, must have been refused before. */
export function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
