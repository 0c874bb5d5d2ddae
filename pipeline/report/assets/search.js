// Finds kernels, ops, modules, lines, passes and weights by a part of their names.

const MOST_FOUND = 40;

function searchBox(report, go) {
  const entries = entriesOf(report, go);
  const list = h("ul", { id: "found", role: "listbox", "aria-label": "found", hidden: true });
  const input = h("input", { type: "search", placeholder: "Search kernels, ops, lines, passes  ( / )", role: "combobox", "aria-label": "search", "aria-expanded": "false", "aria-controls": "found", autocomplete: "off" });
  let found = [];
  let at = -1;

  function look() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? entries.filter((entry) => words.every((word) => entry.words.includes(word))).slice(0, MOST_FOUND) : [];
    at = found.length ? 0 : -1;
    fill();
  }

  function fill() {
    list.hidden = !input.value;
    input.setAttribute("aria-expanded", String(!list.hidden));
    replaced(list, found.map((entry, number) => h("li", { role: "option", id: `found-${number}`, "aria-selected": String(number === at), onpointerdown: (event) => { event.preventDefault(); take(entry); } },
      h("span", { class: "badge" }, entry.kind), " ", entry.name, " ", h("small", {}, entry.detail))), found.length ? null : h("li", { class: "nothing" }, "Nothing has that name."));
    if (at >= 0) { input.setAttribute("aria-activedescendant", `found-${at}`); list.children[at].scrollIntoView({ block: "nearest" }); }
  }

  function take(entry) {
    input.value = "";
    fill();
    input.blur();
    entry.action();
  }

  input.addEventListener("input", look);
  input.addEventListener("blur", () => { list.hidden = true; });
  input.addEventListener("focus", look);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) { at = (at + step + found.length) % found.length; fill(); event.preventDefault(); }
    if (event.key === "Enter" && found[at]) take(found[at]);
    if (event.key === "Escape") { input.value = ""; fill(); input.blur(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); input.focus(); }
  });
  return h("div", { class: "search" }, input, list);
}

function entriesOf(report, go) {
  const entries = [];
  const add = (kind, name, detail, action) => entries.push({ kind, name, detail, action, words: `${kind} ${name} ${detail}`.toLowerCase() });
  for (const node of report.graphs.compiled?.nodes || []) if (node.kind === "kernel") add("kernel", node.label, `${node.module} ${short(node.source)}`, () => go.node("compiled", node.id));
  if (!report.graphs.compiled?.nodes.length) for (const kernel of report.kernels) add("kernel", kernel.name, kernel.kind, () => go.kernel(kernel.name));
  for (const stage of ["compiled", "imported"]) for (const box of report.graphs[stage]?.boxes || []) if (box.kind === "module") add("module", box.id.split("|")[1], `${report.classes.get(box.id.split("|")[1]) || ""} ${stage}`, () => go.node(stage, box.id));
  for (const node of report.graphs.imported?.nodes || []) if (node.kind === "op") add("op", node.label, `${node.origins.join(" ")} ${node.module} ${short(node.source)}`, () => go.node("imported", node.id));
  for (const source of new Set(Object.values(report.nodes).map((node) => node.source))) if (source) add("line", short(source), source, () => go.line(source));
  report.passes.forEach((pass, number) => { if (pass.changes.length) add("pass", pass.name, plural(pass.changes.length, "function"), () => go.pass(number)); });
  for (const weight of report.memory.weights) add("weight", weight.name, weight.type, () => go.tab("memory"));
  return entries;
}
