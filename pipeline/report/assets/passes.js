// The way: each pass in order, how long it took, what it changed, what it said.

class PassesView {
  constructor(report) {
    this.report = report;
    this.onlyChanging = true;
    this.current = null;
    this.list = h("ol", { class: "pass-list" });
    this.content = h("div", { class: "pass-content" }, nothing("Choose a pass to see what it changed. Here is the program at each stage."),
      ["main", "prepare"].map((name) => [h("h3", {}, `@${name}`), stagesOf(name)]));
    const only = h("input", { type: "checkbox", checked: true, onchange: (event) => { this.onlyChanging = event.target.checked; this.fill(); } });
    const total = sum(report.passes.map((pass) => pass.seconds));
    this.element = !report.passes.length
      ? h("div", { class: "view" }, card("Passes", nothing(report.missing("passes") || "Nothing was recorded.")))
      : h("div", { class: "passes" },
        h("div", { class: "pass-side" },
          h("p", { class: "hint" }, `${plural(report.passes.length, "pass", "passes")}, ${seconds(total)} in all`),
          h("label", {}, only, " only those that changed something"), this.list),
        this.content);
    if (report.passes.length) this.fill();
  }

  fill() {
    const passes = this.report.passes.map((pass, number) => ({ ...pass, number })).filter((pass) => !this.onlyChanging || pass.changes.length || pass.number === this.current);
    const most = Math.max(...passes.map((pass) => pass.seconds), 1e-9);
    const items = [];
    let stage = null;
    for (const pass of passes) {
      if (pass.stage !== stage) items.push(h("li", { class: "stage" }, `towards “${pass.stage}”`));
      stage = pass.stage;
      const [added, removed] = [sum(pass.changes.map((change) => change[1])), sum(pass.changes.map((change) => change[2]))];
      items.push(h("li", {}, h("button", { type: "button", class: "pass", "data-pass": pass.number, "aria-current": pass.number === this.current ? "true" : null, onclick: () => this.show(pass.number) },
        h("span", { class: "pass-name" }, pass.name),
        h("span", { class: "counts" }, added ? h("span", { class: "plus" }, `+${added}`) : null, " ", removed ? h("span", { class: "minus" }, `−${removed}`) : null),
        bar(pass.seconds / most, seconds(pass.seconds)))));
    }
    replaced(this.list, items);
  }

  async show(number, chosen) {
    this.current = number;
    this.fill();
    const pass = this.report.passes[number];
    const functions = (await part("changes"))[number];
    const remarks = this.report.remarks.slice(...pass.remarks);
    const said = remarks.map((remark) => remark.reason).join();
    replaced(this.content,
      h("header", {}, h("h2", {}, pass.name), pass.options ? h("p", { class: "mono" }, pass.options) : null,
        h("p", { class: "hint" }, `${seconds(pass.seconds)}; pass ${number + 1} of ${this.report.passes.length}; `, plural(functions.length, "function"), " changed",
          " ", link("previous", () => this.step(-1)), " ", link("next", () => this.step(1)))),
      said ? h("details", { open: remarks.length < 12 }, h("summary", {}, plural(remarks.length, "remark")), h("ul", { class: "remarks" }, remarks.map(remarkItem))) : null,
      functions.map((change, place) => {
        const block = h("details", { open: chosen ? change.function === chosen : place === 0 }, h("summary", {}, h("span", { class: "mono" }, `@${change.function}`), h("span", { class: "plus" }, ` +${change.added}`), h("span", { class: "minus" }, ` −${change.removed}`)));
        const fill = () => { if (block.open && block.children.length === 1) block.append(diffBlock(change)); };
        block.addEventListener("toggle", fill);
        fill();
        return block;
      }),
      functions.length ? null : nothing("It changed nothing but, at most, the numbers of values."));
    this.content.scrollTop = 0;
    const button = this.list.querySelector(`[data-pass="${number}"]`);
    button?.scrollIntoView({ block: "nearest" });
  }

  step(direction) {
    let number = this.current + direction;
    while (this.onlyChanging && this.report.passes[number] && !this.report.passes[number].changes.length) number += direction;
    if (this.report.passes[number]) this.show(number);
  }
}
