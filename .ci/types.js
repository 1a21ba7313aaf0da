// The types of a built library as one file: what its index exports, and what that needs.
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import ts from 'typescript'

/** The text of one file of types that stands for `index` and all that it leads to. Comments stay on what `index` exports. */
export function rollUp(index) {
  const files = new Map()
  const names = new Map()
  const taken = new Set()
  const outside = new Set()
  const exported = exportsOf(index, new Set()).map(([name, from, local]) => [name, declared(from, local)])
  // What is exported has its own name; what it only needs takes another where that is taken.
  for (const [name, { key }] of exported) if (!names.has(key)) names.set(key, unused(name))
  const words = new Set(names.keys())
  const queue = exported.map(([, found]) => found)
  const texts = new Map()
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    if (texts.has(next.key)) continue
    texts.set(next.key, '')
    texts.set(next.key, next.statements.map((statement) => textOf(next, statement)).join('\n'))
  }
  const list = exported.map(([name, { key }]) => (names.get(key) === name ? name : `${names.get(key)} as ${name}`))
  return `${[...outside, ...texts.values(), `export { ${[...new Set(list)].join(', ')} };`].join('\n')}\n`

  function fileAt(path) {
    if (!files.has(path)) files.set(path, read(path))
    return files.get(path)
  }

  /** The declaration that a name of a file means, wherever it stands. */
  function declared(path, name) {
    const file = fileAt(path)
    const statements = file.statements.get(name)
    if (statements !== undefined) return { key: `${path} ${name}`, path, name, statements }
    const led = file.imports.get(name) ?? file.reexports.get(name)
    if (led !== undefined) return declared(led.path, led.name)
    for (const star of file.stars) {
      const found = exportsOf(star, new Set()).find(([each]) => each === name)
      if (found !== undefined) return declared(found[1], found[2])
    }
    throw new Error(`${path} has no ${name}`)
  }

  /** `[name, file, name there]` of all that a file exports. */
  function exportsOf(path, seen) {
    if (seen.has(path)) return []
    seen.add(path)
    const file = fileAt(path)
    const own = [...file.exports].map((name) => [name, path, name])
    const others = [...file.reexports].map(([name, led]) => [name, led.path, led.name])
    return [...own, ...others, ...file.stars.flatMap((star) => exportsOf(star, seen))]
  }

  function textOf({ path, key, name }, statement) {
    const { source, statements, imports, spaces } = fileAt(path)
    const changes = []
    const name0 = ts.isVariableStatement(statement) ? statement.declarationList.declarations.find((each) => each.name.text === name)?.name : statement.name
    if (name0 !== undefined && nameOf(key, name) !== name) changes.push([name0.getStart(source), name0.end, nameOf(key, name)])
    const use = (node) => {
      if (spaces.has(node.text)) outside.add(spaces.get(node.text))
      if (!statements.has(node.text) && !imports.has(node.text)) return
      const found = declared(path, node.text)
      queue.push(found)
      const final = nameOf(found.key, found.name)
      if (final !== node.text) changes.push([node.getStart(source), node.end, final])
    }
    const visit = (node) => {
      if (ts.isTypeReferenceNode(node)) use(first(node.typeName))
      else if (ts.isTypeQueryNode(node)) use(first(node.exprName))
      else if (ts.isExpressionWithTypeArguments(node)) use(first(node.expression))
      ts.forEachChild(node, visit)
    }
    visit(statement)
    const from = words.has(key) ? statement.getFullStart() : statement.getStart(source)
    let text = source.text.slice(from, statement.end)
    for (const [start, end, word] of changes.toSorted((a, b) => b[0] - a[0])) text = text.slice(0, start - from) + word + text.slice(end - from)
    text = text.trim().replace(/^((?:\/\*\*[\s\S]*?\*\/\s*)*)export (?=declare|interface|type)/, '$1')
    return words.has(key) ? text : text.replaceAll(/^ *\/\*\*.*?\*\/\n/gms, '')
  }

  function nameOf(key, name) {
    if (!names.has(key)) names.set(key, unused(name))
    return names.get(key)
  }

  function unused(name) {
    let free = name
    for (let number = 2; taken.has(free); number += 1) free = `${name}${number}`
    taken.add(free)
    return free
  }
}

function read(path) {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ES2023, true)
  const file = { source, statements: new Map(), exports: new Set(), imports: new Map(), reexports: new Map(), stars: [], spaces: new Map() }
  const target = (specifier) => (specifier.text.startsWith('.') ? resolve(dirname(path), specifier.text.replace(/\.js$/, '.d.ts')) : undefined)
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) {
      const from = target(statement.moduleSpecifier)
      const { name, namedBindings: bindings } = statement.importClause ?? {}
      const locals = [name, ...(bindings === undefined ? [] : ts.isNamespaceImport(bindings) ? [bindings.name] : bindings.elements.map((each) => each.name))]
      for (const local of locals) if (local !== undefined && from === undefined) file.spaces.set(local.text, statement.getText(source))
      if (from !== undefined) for (const each of bindings.elements) file.imports.set(each.name.text, { path: from, name: (each.propertyName ?? each.name).text })
    } else if (ts.isExportDeclaration(statement)) {
      const from = statement.moduleSpecifier === undefined ? path : target(statement.moduleSpecifier)
      if (statement.exportClause === undefined) file.stars.push(from)
      else for (const each of statement.exportClause.elements) file.reexports.set(each.name.text, { path: from, name: (each.propertyName ?? each.name).text })
    } else {
      const declarations = ts.isVariableStatement(statement) ? statement.declarationList.declarations : [statement]
      for (const { name } of declarations) {
        file.statements.set(name.text, [...(file.statements.get(name.text) ?? []), statement])
        if (statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) file.exports.add(name.text)
      }
    }
  }
  return file
}

function first(name) {
  return ts.isQualifiedName(name) ? first(name.left) : ts.isPropertyAccessExpression(name) ? first(name.expression) : name
}
