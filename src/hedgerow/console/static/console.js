// The console's own script: copying, and the editor of SQL. Everything else is done by the server, and works without this.

const announce = (button, text) => {
  const before = button.textContent
  button.textContent = text
  setTimeout(() => { button.textContent = before }, 1500)
}

document.addEventListener("click", event => {
  const button = event.target.closest("[data-copy], [data-copy-address], [data-reload]")
  if (!button) return
  if (button.matches("[data-reload]")) {
    event.preventDefault()
    location.reload()
    return
  }
  const near = button.closest("figure, p, div")
  const text = button.matches("[data-copy]") ? near.querySelector("code").textContent : location.href
  navigator.clipboard?.writeText(text).then(() => announce(button, "Copied"), () => announce(button, "Select and copy"))
})

// On a narrow screen the menu is scrolled to the page that is shown.
const here = document.querySelector(".menu [aria-current]")
if (here) {
  const menu = here.closest(".menu")
  menu.scrollLeft = here.offsetLeft + here.offsetWidth / 2 - menu.clientWidth / 2
}

// A menu that is open closes when something else is clicked, or by Escape.
document.addEventListener("click", event => {
  for (const menu of document.querySelectorAll("details.switch[open]")) {
    if (!menu.contains(event.target)) menu.open = false
  }
})
document.addEventListener("keydown", event => {
  if (event.key !== "Escape") return
  for (const menu of document.querySelectorAll("details.switch[open]")) {
    menu.open = false
    menu.querySelector("summary").focus()
  }
})

const form = document.querySelector("form[data-editor]")
if (form) {
  const area = form.querySelector("textarea")
  const host = document.createElement("div")
  host.className = "editor"
  const root = host.attachShadow({mode: "open"}) // its styles are adopted, so that none is inline
  const style = document.createElement("link")
  style.rel = "stylesheet"
  style.href = form.dataset.sheet
  const inner = document.createElement("div")
  root.append(style, inner)
  const [{createEditor}, words] = await Promise.all([
    import(new URL(form.dataset.editor, location.href)),
    fetch(form.dataset.words).then(response => response.json()),
  ])
  area.before(host)
  area.hidden = true
  const editor = createEditor({
    parent: inner, root, text: area.value, label: "Statement", onRun: () => form.requestSubmit(),
    schema: {columns: words.columns}, words,
  })
  form.addEventListener("submit", () => { area.value = editor.text })
  if (form.dataset.line) editor.fault(Number(form.dataset.line), Number(form.dataset.column), form.dataset.fault)
  host.dataset.ready = "yes"
}
