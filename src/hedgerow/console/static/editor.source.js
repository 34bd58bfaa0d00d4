// The SQL editor of the console: a small surface over CodeMirror. See README.md beside the bundle.
import {EditorState} from "@codemirror/state"
import {EditorView, keymap, lineNumbers, highlightActiveLine, drawSelection} from "@codemirror/view"
import {defaultKeymap, history, historyKeymap} from "@codemirror/commands"
import {syntaxHighlighting, HighlightStyle, bracketMatching} from "@codemirror/language"
import {autocompletion, completionKeymap, closeBrackets, closeBracketsKeymap} from "@codemirror/autocomplete"
import {lintGutter, setDiagnostics} from "@codemirror/lint"
import {sql, SQLDialect} from "@codemirror/lang-sql"
import {tags} from "@lezer/highlight"

export function createEditor({parent, root, text, schema, words, label, onRun}) {
  const dialect = SQLDialect.define({
    keywords: words.keywords.join(" ").toLowerCase(),
    builtin: words.functions.join(" ").toLowerCase(),
  })
  const style = HighlightStyle.define([
    {tag: tags.keyword, class: "sql-keyword"}, {tag: tags.string, class: "sql-string"},
    {tag: tags.number, class: "sql-number"}, {tag: tags.comment, class: "sql-comment"},
    {tag: [tags.standard(tags.name), tags.function(tags.name)], class: "sql-function"},
  ])
  const options = [
    ...schema.columns.map(c => ({label: c.name, type: "property", detail: c.kind, apply: c.quoted, boost: 3})),
    ...schema.columns.flatMap(c => c.values.map(v => ({label: v, type: "constant", detail: c.name, boost: -1}))),
    ...words.functions.map(f => ({label: f, type: "function", apply: f + "(", boost: 1})),
    ...words.keywords.map(k => ({label: k, type: "keyword"})),
    {label: "data", type: "class", detail: "the table"},
  ]
  const complete = context => {
    const word = context.matchBefore(/'[^']*|"[^"]*|[\w]+/)
    if (!word && !context.explicit) return null
    return {from: word ? word.from : context.pos, options, validFor: /^['"]?[\w \-]*$/}
  }
  const view = new EditorView({
    parent, root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), highlightActiveLine(),
        lintGutter(), sql({dialect}), syntaxHighlighting(style), EditorView.lineWrapping,
        autocompletion({override: [complete]}),
        EditorView.contentAttributes.of({"aria-label": label}),
        EditorView.domEventHandlers({
          // The browser itself would keep the style of a replaced text in an inline style, which the policy forbids.
          beforeinput(event, view) {
            if (event.inputType !== "insertText" || !event.data || view.state.selection.main.empty) return false
            event.preventDefault()
            view.dispatch(view.state.replaceSelection(event.data), {userEvent: "input.type", scrollIntoView: true})
            return true
          },
        }),
        keymap.of([
          {key: "Mod-Enter", run: () => { onRun(); return true }},
          ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap,
        ]),
      ],
    }),
  })
  return {
    get text() { return view.state.doc.toString() },
    focus() { view.focus() },
    fault(line, column, message) {
      const doc = view.state.doc
      const at = doc.line(Math.min(Math.max(line, 1), doc.lines))
      const from = Math.min(at.from + Math.max(column - 1, 0), at.to)
      const token = /^\w+|^\S/.exec(doc.sliceString(from, at.to))
      const to = Math.min(from + (token ? token[0].length : 1), doc.length)
      view.dispatch(setDiagnostics(view.state, [{from, to: Math.max(to, from), severity: "error", message}]))
    },
  }
}
