/**
 * The one script of the page: column heads become buttons that sort. Without it every table is whole, in its first order. Cells
 * with a `data-value` are sorted by that number, others by their text.
 */
export const script = `
'use strict'
const said = document.getElementById('said')
for (const table of document.querySelectorAll('table[data-sortable]')) {
  const heads = Array.from(table.tHead.rows[0].cells)
  const body = table.tBodies[0]
  heads.forEach((head, column) => {
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = head.textContent
    head.textContent = ''
    head.append(button)
    button.addEventListener('click', () => {
      const cells = Array.from(body.rows, (row) => row.cells[column])
      const numbers = cells.every((cell) => cell.dataset.value !== undefined)
      const before = head.getAttribute('aria-sort')
      const down = before === null ? numbers : before === 'ascending'
      const order = (a, b) => numbers ? Number(a.dataset.value) - Number(b.dataset.value) : a.textContent.localeCompare(b.textContent)
      const rows = cells.sort((a, b) => (down ? -1 : 1) * order(a, b)).map((cell) => cell.parentNode)
      body.append(...rows)
      for (const other of heads) other.removeAttribute('aria-sort')
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending')
      said.textContent = 'Sorted by ' + button.textContent + (down ? ', descending' : ', ascending')
    })
  })
}
`
