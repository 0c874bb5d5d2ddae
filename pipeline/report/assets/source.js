// The files of the model: each line with its time, the ops that it makes, the kernels that these are in.

class SourceView {
  constructor(report, go) {
    this.report = report;
    this.go = go;
    this.lines = this.index();
    this.files = h("select", { "aria-label": "file", onchange: () => this.show(this.files.value) });
    this.body = h("div", { class: "source", tabindex: "0", "aria-label": "source file" });
    this.beside = h("div", { class: "source-side" }, nothing("Choose a line to see what became of it."));
    this.element = h("div", { class: "sources" }, h("div", { class: "source-main" }, h("div", { class: "toolbar" }, this.files), this.body), this.beside);
    this.ready = part("sources").then((files) => {
      this.texts = files;
      const weight = (file) => sum([...this.lines].filter(([source]) => source.startsWith(`${file}:`)).map(([, line]) => line.seconds * 1e6 + line.ops.size));
      const names = Object.keys(files).sort((a, b) => weight(b) - weight(a));
      append(this.files, names.map((file) => h("option", { value: file }, file)));
      if (names.length) this.show(names[0]); else replaced(this.body, nothing("No file of the model's source could be read."));
    });
  }

  /** What is known of each line, by `file.py:12`. */
  index() {
    const lines = new Map();
    const at = (source) => {
      if (!lines.has(source)) lines.set(source, { ops: new Map(), kernels: new Map(), modules: new Set(), seconds: 0 });
      return lines.get(source);
    };
    for (const [name, node] of Object.entries(this.report.nodes)) {
      if (!node.source) continue;
      at(node.source).ops.set(name, node);
      if (node.path) at(node.source).modules.add(node.path);
    }
    for (const node of this.report.graphs.compiled?.nodes || []) {
      if (node.kind !== "kernel") continue;
      for (const source of new Set(node.origins.map((name) => this.report.nodes[name]?.source))) if (source) at(source).kernels.set(node.id, node);
    }
    for (const site of this.report.profile?.sites || []) if (site.source) at(site.source).seconds += site.seconds;
    return lines;
  }

  show(file) {
    this.files.value = file;
    const most = Math.max(...[...this.lines.values()].map((line) => line.seconds), 1e-12);
    let last = 0;
    requestAnimationFrame(() => this.body.querySelector(".selected, .known")?.scrollIntoView({ block: "center" }));
    replaced(this.body, Object.entries(this.texts[file].lines).map(([number, text]) => {
      const source = `${file}:${number}`;
      const known = this.lines.get(source);
      const gap = Number(number) !== last + 1 ? h("div", { class: "d-gap" }, "⋯") : null;
      last = Number(number);
      const attributes = known ? { class: "row known", tabindex: "0", role: "button", ...pressed(() => this.choose(source)) } : { class: "row" };
      return [gap, h("div", { "data-line": number, ...attributes },
        h("span", { class: "time" }, known?.seconds ? bar(known.seconds / most, seconds(known.seconds)) : ""),
        h("span", { class: "number" }, number),
        h("code", {}, python(text)),
        known ? h("span", { class: "tags" }, plural(known.ops.size, "op"), known.kernels.size ? `, ${plural(known.kernels.size, "kernel")}` : "") : null)];
    }));
  }

  choose(source) {
    for (const row of this.body.querySelectorAll(".selected")) row.classList.remove("selected");
    const [, file, number] = source.match(/^(.*):(\d+)$/);
    if (this.files.value !== file) this.show(file);
    const row = this.body.querySelector(`[data-line="${number}"]`);
    row?.classList.add("selected");
    row?.scrollIntoView({ block: "center" });
    const known = this.lines.get(source);
    if (!known) { replaced(this.beside, nothing("No op comes from this line.")); return; }
    const imported = this.report.graphs.imported?.nodes.filter((node) => node.origins.some((name) => known.ops.has(name))) || [];
    replaced(this.beside, h("h2", {}, short(source)),
      known.seconds ? h("p", { class: "hint" }, `${seconds(known.seconds)} a call in kernels that begin here`) : null,
      h("h3", {}, "Kernels"), known.kernels.size ? h("ul", { class: "links" }, [...known.kernels.values()].map((node) => h("li", {}, link(node.label, () => this.go.node("compiled", node.id)), " ", h("small", {}, node.module)))) : nothing("None: it was folded away or is not recorded."),
      h("h3", {}, "Ops as imported"), h("ul", { class: "links" }, imported.map((node) => h("li", {}, link(node.label, () => this.go.node("imported", node.id)), " ", h("small", {}, `${node.op} ${node.module}`)))),
      known.modules.size ? [h("h3", {}, "Modules"), h("p", { class: "mono" }, [...known.modules].join(", "))] : null);
  }

  async reveal(source) {
    await this.ready;
    const [, file] = source.match(/^(.*):(\d+)$/) || [];
    if (this.texts[file]) this.choose(source);
  }
}
