// What is known of the kernel or op that is chosen.

class Details {
  /** go: {node(stage, id), pass(number, function), line(source)} bring something into sight. */
  constructor(report, go) {
    this.report = report;
    this.go = go;
    this.body = h("div", { class: "details-body" });
    this.element = h("aside", { class: "details", "aria-label": "details", hidden: true },
      h("button", { type: "button", class: "close", "aria-label": "close details", onclick: () => this.close() }, "×"), this.body);
  }

  close() {
    this.element.hidden = true;
  }

  open(...content) {
    this.element.hidden = false;
    this.element.scrollTop = 0;
    replaced(this.body, content);
  }

  show(stage, id) {
    const node = this.report.nodeOf(stage, id);
    if (!node) return;
    if (node.kind === "kernel") this.open(this.kernel(node));
    else this.open(this.op(stage, node));
  }

  heading(title, badges) {
    return h("header", {}, h("h2", {}, title), h("p", { class: "badges" }, badges.filter(Boolean).map(([text, kind]) => h("span", { class: `badge ${kind || ""}` }, text))));
  }

  kernel(node) {
    const kernel = this.report.kernelByName.get(node.kernel) || { name: node.kernel, kind: this.report.kindOf(node), ops: [], calls: 1, lines: [] };
    const site = this.report.sites.get(node.id);
    return [
      this.heading(kernel.name, [[kernel.kind, `k-${kernel.kind}`], node.module && [node.module], [plural(kernel.calls, "place")]]),
      this.numbers(kernel, site),
      this.section("Lines of the model", this.lines(node)),
      this.section("Came from", this.ops(node)),
      this.section("Chosen for it", this.schedule(kernel.name)),
      this.section("Not fused with", this.neighbours(node)),
      this.section("Reads and feeds", this.wires("compiled", node)),
      this.section("IR", stagesOf(kernel.name)),
      this.section("What passes made of it", this.way(kernel.name, node.origins)),
      this.section("Remarks", this.remarks(kernel.name)),
      this.section("Called in", this.others(node)),
    ];
  }

  /** The nodes of the captured graph that something was made of. */
  captured(node) {
    const found = node.origins.filter((name) => this.report.nodes[name]);
    return found.map((name) => h("p", { class: "mono" }, `${name}: ${this.report.nodes[name].op}`, " ", h("small", {}, this.report.nodes[name].path)));
  }

  op(stage, node) {
    const became = stage === "imported" ? this.report.graphs.compiled.nodes.filter((other) => other.kind === "kernel" && node.origins.some((name) => other.origins.includes(name))) : [];
    return [
      this.heading(node.label, [[node.op || node.kind], node.module && [node.module]]),
      node.types.length ? h("p", { class: "mono" }, node.types.join(", ")) : null,
      this.section("Captured as", this.captured(node)),
      this.section("Lines of the model", this.lines(node)),
      became.length ? this.section("Became", h("ul", { class: "links" }, became.map((other) => h("li", {}, link(other.label, () => this.go.node("compiled", other.id)), " ", other.module)))) : null,
      this.section("Reads and feeds", this.wires(stage, node)),
      node.origins.length ? this.section("Passes that changed it", this.way(null, node.origins)) : null,
    ];
  }

  section(title, content) {
    if (content === null || (Array.isArray(content) && !content.length)) return null;
    return h("section", {}, h("h3", {}, title), content);
  }

  numbers(kernel, site) {
    const peak = this.report.profile?.peak;
    const cells = [];
    if (site) {
      cells.push([seconds(site.seconds), "a call of the model"], [percent(site.seconds / this.report.profile.seconds), "of the call"]);
      if (site.operations) cells.push([`${digits(site.operations / site.seconds / 1e9)}`, "GFLOP/s"]);
      if (site.operations !== null && site.bytes && peak.operations) cells.push([percent(Math.max(site.operations / peak.operations, site.bytes / peak.bytes) / site.seconds), "of the roof"]);
    }
    cells.push([count(kernel.operations), "operations"], [bytes(kernel.bytes), "read and written"]);
    if (kernel.operations && kernel.bytes) cells.push([digits(kernel.operations / kernel.bytes), "FLOP per byte"]);
    return h("dl", { class: "numbers" }, cells.map(([value, name]) => h("div", {}, h("dd", {}, value), h("dt", {}, name))));
  }

  /** The source lines of a node, each with the ops there. */
  lines(node) {
    const found = new Map();
    for (const name of node.origins) {
      const origin = this.report.nodes[name];
      if (!origin?.source) continue;
      if (!found.has(origin.source)) found.set(origin.source, new Set());
      found.get(origin.source).add(origin.path || "");
    }
    if (!found.size && node.source) found.set(node.source, new Set([node.module || ""]));
    if (!found.size) return null;
    return h("ul", { class: "lines" }, [...found].map(([source, paths]) => {
      const text = h("code", { class: "line" }, "");
      part("sources").then((files) => {
        const [, file, number] = source.match(/^(.*):(\d+)$/);
        replaced(text, python((files[file]?.lines[number] || "").trim()));
      });
      return h("li", {}, link(short(source), () => this.go.line(source)), h("span", { class: "path" }, [...paths].filter(Boolean).join(", ")), text);
    }));
  }

  /** The ops as imported that a kernel was made of. */
  ops(node) {
    const found = this.report.graphs.imported.nodes.filter((other) => other.kind === "op" && other.origins.some((name) => node.origins.includes(name)));
    return [h("p", { class: "chips" }, found.map((other) => link(other.label, () => this.go.node("imported", other.id)))), this.captured(node)];
  }

  schedule(name) {
    const chosen = this.report.remarksOf(name).filter((remark) => remark.kind === "passed" && SCHEDULES.has(remark.pass_name));
    const launches = this.report.kernelByName.get(name)?.launches || [];
    if (!chosen.length && !launches.length) return null;
    return h("ul", {},
      chosen.map((remark) => h("li", {}, remark.reason, " ", h("small", {}, remark.pass_name))),
      launches.map((launch) => h("li", {}, `${launch.threads < 0 ? "as many threads as the call says" : plural(launch.threads, "thread")} in blocks of ${launch.block}${launch.items > launch.block ? `, a block for ${launch.items} items` : ""} `, h("small", {}, launch.name))));
  }

  neighbours(node) {
    const edges = this.report.edges.filter((edge) => edge.from === node.id || edge.to === node.id);
    return edges.map((edge) => {
      const feeds = edge.from === node.id;
      const [other, id] = feeds ? [edge.consumer, edge.to] : [edge.producer, edge.from];
      return h("div", { class: "edge-why" },
        h("p", {}, feeds ? "→ " : "← ", link(this.report.nodeOf("compiled", id).label, () => this.go.node("compiled", id)), ` (${other.label}) `, h("small", {}, short(other.source))),
        h("p", {}, edge.key ? h("span", { class: "badge" }, edge.key) : null, " ", edge.reason.replace(/^is not in a group with its producer, [\w.]+: /, "")),
        edge.change ? h("p", { class: "change" }, h("b", {}, "To change it: "), edge.change) : null);
    });
  }

  wires(stage, node) {
    const known = (id) => this.report.nodeOf(stage, id);
    const from = node.inputs.map(known).filter(Boolean);
    const to = this.report.graphs[stage].nodes.filter((other) => other.inputs.includes(node.id));
    const links = (nodes) => h("span", { class: "chips" }, nodes.map((other) => link(other.label, () => this.go.node(stage, other.id))));
    return h("dl", { class: "wires" },
      from.length ? [h("dt", {}, "reads"), h("dd", {}, links(from))] : null,
      node.reads.length ? [h("dt", {}, "weights"), h("dd", {}, node.reads.map((name) => h("span", { class: "badge" }, name)))] : null,
      to.length ? [h("dt", {}, "feeds"), h("dd", {}, links(to))] : null,
      h("dt", {}, "gives"), h("dd", { class: "mono" }, node.types.join(", ") || "–"));
  }

  /** The passes that changed the function of a kernel, or before there was one, what became it. */
  way(name, origins) {
    const place = h("div", {}, nothing("unpacking…"));
    part("changes").then((changes) => {
      const words = origins.map((origin) => new RegExp(`%${origin.replace(/\W/g, "\\$&")}(?![a-zA-Z]|_[a-zA-Z])`));
      const found = [];
      changes.forEach((functions, number) => {
        for (const change of functions) {
          const own = name && isOf(change.function, name);
          const before = this.report.passes[number].stage !== "code" && (change.function === "main" || change.function === "prepare") && change.lines.some((line) => (line[0] === "+" || line[0] === "-") && words.some((word) => word.test(line)));
          if (own || before) found.push([number, change]);
        }
      });
      if (!found.length) { replaced(place, nothing("none that is recorded")); return; }
      replaced(place, h("ol", { class: "way" }, found.map(([number, change]) => h("li", {},
        link(this.report.passes[number].name, () => this.go.pass(number, change.function)),
        h("small", {}, change.function === "main" || change.function === "prepare" ? ` in @${change.function}` : ""),
        h("span", { class: "plus" }, ` +${change.added}`), h("span", { class: "minus" }, ` −${change.removed}`)))));
    });
    return place;
  }

  remarks(name) {
    const found = this.report.remarksOf(name).filter((remark) => !remark.edge);
    return found.length ? h("ul", { class: "remarks" }, found.map(remarkItem)) : null;
  }

  others(node) {
    const places = this.report.graphs.compiled.nodes.filter((other) => other.kernel === node.kernel && other.id !== node.id);
    return places.map((other) => h("p", {}, link(other.module || other.label, () => this.go.node("compiled", other.id)), " ", h("small", {}, short(other.source))));
  }
}

const SCHEDULES = new Set(["tile-groups", "tile-and-vectorize", "parallelize-kernels", "pack-weights", "winograd-weights", "propagate-layouts", "compute-channels-last", "read-transposed-rows", "map-to-threads", "outline-dispatches", "tile-groups-to-blocks", "mark-flash-attention", "mark-library-gemm", "fold-pads-into-kernels"]);

function remarkItem(remark) {
  return h("li", { class: `r-${remark.kind}` }, h("span", { class: "badge" }, remark.kind), " ", remark.reason, " ", h("small", {}, remark.pass_name, remark.source ? `, ${short(remark.source)}` : ""));
}
