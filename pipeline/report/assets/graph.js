// The view of the model: the graph as imported or as fused, in boxes that open and close.

/** How many nodes are shown before anybody opens a box. */
const SHOWN_AT_FIRST = 70;

/** And how many with the ops of all kernels, for kernels to be open then. */
const KERNELS_OPEN_AT_FIRST = 50;

class GraphView {
  /** report: the part `main` with what `indexed` adds; chosen: is called with a stage and an id. */
  constructor(report, chosen) {
    this.report = report;
    this.chosen = chosen;
    this.stage = "compiled";
    this.trees = {};
    this.open = {};
    for (const [stage, graph] of Object.entries(report.graphs)) {
      this.trees[stage] = treeOf(graph);
      this.open[stage] = this.openedAtFirst(this.trees[stage]);
    }
    this.selected = null;
    this.scale = 1;
    this.shift = { x: 0, y: 0 };
    this.canvas = s("g");
    this.svg = s("svg", { class: "graph", "aria-label": "graph of the model", role: "group" }, this.arrow(), this.canvas);
    this.element = h("div", { class: "graph-view" }, this.toolbar(), this.svg);
    this.makeMovable();
  }

  arrow() {
    return s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      s("path", { d: "M0 0.5L8 4L0 7.5z", class: "arrow" })));
  }

  toolbar() {
    const stages = [["imported", "As imported"], ["compiled", "As fused"]];
    this.switch = h("div", { class: "segments", role: "radiogroup", "aria-label": "stage" }, stages.map(([stage, text]) =>
      h("button", { type: "button", role: "radio", id: `stage-${stage}`, "aria-checked": String(stage === this.stage), onclick: () => this.show(stage) }, text)));
    const button = (text, label, action) => h("button", { type: "button", class: "tool", title: label, "aria-label": label, onclick: action }, text);
    return h("div", { class: "toolbar" }, this.switch,
      button("Open all", "open all boxes", () => this.openAll(true)),
      button("Close all", "close all boxes", () => this.openAll(false)),
      this.legend(),
      button("−", "zoom out", () => this.zoom(1 / 1.25)), button("+", "zoom in", () => this.zoom(1.25)),
      button("Fit", "fit the graph into the window", () => this.fit()));
  }

  legend() {
    const kinds = new Set(this.report.kernels.map((kernel) => kernel.kind));
    return h("ul", { class: "legend" }, [...kinds].map((kind) => h("li", {}, h("i", { class: `k-${kind}` }), kind)));
  }

  /** What is open at first: outer boxes before inner ones, as long as not too much is shown; @prepare is closed. */
  openedAtFirst(tree) {
    const open = new Set();
    const kernels = [];
    let shown = 0;
    const waiting = [...tree.children.get("")].filter((id) => id !== "@prepare");
    while (waiting.length) {
      const id = waiting.shift();
      const children = tree.children.get(id) || [];
      if (tree.nodes.has(id)) { kernels.push(...(children.length ? [id] : [])); continue; }
      if (shown + children.length > SHOWN_AT_FIRST) continue;
      open.add(id);
      shown += children.length;
      waiting.push(...children);
    }
    const inside = sum(kernels.map((id) => tree.children.get(id).length));
    if (shown + inside <= KERNELS_OPEN_AT_FIRST) kernels.forEach((id) => open.add(id));
    return open;
  }

  openAll(all) {
    const tree = this.trees[this.stage];
    const ids = [...tree.children.keys()].filter((id) => id && tree.children.get(id).length);
    this.open[this.stage] = new Set(all ? ids : ids.filter((id) => tree.parent.get(id) === "" && id !== "@prepare"));
    this.draw();
    this.fit();
  }

  show(stage) {
    this.stage = stage;
    for (const button of this.switch.children) button.setAttribute("aria-checked", String(button.id === `stage-${stage}`));
    this.selected = null;
    this.draw();
    this.fit();
  }

  toggle(id) {
    const open = this.open[this.stage];
    if (open.has(id)) open.delete(id); else open.add(id);
    this.draw();
    this.focus(id);
  }

  focus(id) {
    this.canvas.querySelector(`[data-id="${CSS.escape(id)}"]`)?.focus({ preventScroll: true });
  }

  /** Selects a node, opens the boxes around it, and brings it into sight. */
  reveal(stage, id) {
    if (!this.trees[stage]?.parent.has(id)) return;
    if (stage !== this.stage) this.show(stage);
    for (const around of chainOf(this.trees[stage], id).slice(0, -1)) this.open[stage].add(around);
    this.scale = Math.max(this.scale, 0.8);
    this.select(id);
    this.bringIntoSight();
  }

  /** Moves the graph if what is selected is not to be seen, or only at the border. */
  bringIntoSight() {
    const spot = this.spots.get(this.selected);
    const { width, height } = this.svg.getBoundingClientRect();
    if (!spot || !width) return;
    const [x, y] = [(spot.x + spot.width / 2) * this.scale + this.shift.x, (spot.y + Math.min(spot.height, 80) / 2) * this.scale + this.shift.y];
    const [inside, below] = [x > 120 && x < width - 120, y > 60 && y < height - 60];
    this.shift = { x: this.shift.x + (inside ? 0 : width / 2 - x), y: this.shift.y + (below ? 0 : height / 2 - y) };
    this.move();
  }

  select(id) {
    this.selected = id;
    this.draw();
    this.focus(id);
  }

  label(id) {
    const tree = this.trees[this.stage];
    const node = tree.nodes.get(id);
    if (!node) {
      const box = tree.boxes.get(id);
      const inside = this.leaves(id);
      return { title: box.kind === "module" && inside.kind ? `${box.label}: ${inside.kind}` : box.label, detail: plural(inside.count, this.stage === "compiled" ? "call" : "op") };
    }
    const time = this.timeOf(id);
    const shape = (node.types[0] || "").replace(/^\w+<|>$/g, "");
    const more = node.types.length > 1 ? ` +${node.types.length - 1}` : "";
    return { title: node.label, detail: time === undefined ? shape + more : `${seconds(time)} · ${shape}${more}` };
  }

  /** How long a call of a kernel takes in one call of the model, where it was measured. */
  timeOf(id) {
    return this.stage === "compiled" ? this.report.times.get(id) : undefined;
  }

  /** How many nodes a box has, and the class of the module that it is. */
  leaves(id) {
    const tree = this.trees[this.stage];
    let found = 0;
    const visit = (at) => {
      const node = tree.nodes.get(at);
      if (node) { found += node.kind === "kernel" || (node.kind === "op" && this.stage === "imported") ? 1 : 0; return; }
      for (const child of tree.children.get(at) || []) visit(child);
    };
    visit(id);
    return { count: found, kind: this.report.classes.get(id.split("|")[1]) };
  }

  draw() {
    const tree = this.trees[this.stage];
    const drawn = laidOut(tree, this.open[this.stage], (id) => this.label(id));
    this.drawn = drawn;
    this.spots = new Map([...drawn.boxes, ...drawn.nodes].map((spot) => [spot.id, spot]));
    replaced(this.canvas,
      drawn.boxes.map((spot) => this.box(spot, tree)),
      drawn.edges.map((edge) => this.edge(edge)),
      drawn.nodes.map((spot) => this.node(spot, tree)));
    this.move();
  }

  edge(edge) {
    const near = this.selected && (edge.from === this.selected || edge.to === this.selected);
    const ends = edge.to === "out" ? {} : { "marker-end": "url(#arrow)" };
    return s("path", { class: near ? "edge near" : "edge", d: curve(edge.points), ...ends });
  }

  box(spot, tree) {
    const box = tree.boxes.get(spot.id);
    const node = tree.nodes.get(spot.id);
    const kind = box ? `b-${box.kind}` : `b-kernel k-${this.report.kindOf(node)}`;
    const title = this.label(spot.id).title;
    const time = node && this.timeOf(spot.id);
    const chosen = node ? () => this.choose(spot.id) : () => this.toggle(spot.id);
    return s("g", { class: `box ${kind} ${spot.id === this.selected ? "selected" : ""}`, transform: `translate(${spot.x} ${spot.y})` },
      s("rect", { class: "frame", width: spot.width, height: spot.height, rx: 10 }),
      s("g", { class: "title", tabindex: "0", role: "button", "data-id": spot.id, "aria-expanded": "true", "aria-label": title, ...this.keys(spot.id, chosen), ondblclick: () => this.toggle(spot.id) },
        s("rect", { class: "head", width: spot.width, height: BOX.title, rx: 10 }),
        s("text", { class: "sign", x: 12, y: 19, ...pressed(() => this.toggle(spot.id)) }, "▾"),
        s("text", { x: 28, y: 19 }, fitted(title, spot.width - 40), time === undefined ? null : s("tspan", { class: "time", dx: 8 }, seconds(time)))));
  }

  node(spot, tree) {
    const node = tree.nodes.get(spot.id);
    const label = this.label(spot.id);
    const closed = isContainer(tree, spot.id);
    const kind = !node ? `n-box n-${tree.boxes.get(spot.id).kind}` : `n-${node.kind} k-${this.report.kindOf(node)}`;
    const chosen = node ? () => this.choose(spot.id) : () => this.toggle(spot.id);
    const part = (node && this.timeOf(spot.id) || 0) / this.report.longest;
    return s("g", {
      class: `node ${kind} ${spot.id === this.selected ? "selected" : ""}`, transform: `translate(${spot.x} ${spot.y})`, tabindex: "0", role: "button",
      "data-id": spot.id, "aria-label": `${label.title}, ${label.detail}`, "aria-expanded": closed ? "false" : null,
      ...this.keys(spot.id, chosen), ondblclick: closed ? () => this.toggle(spot.id) : null,
    },
      closed ? s("rect", { class: "behind", x: 3, y: 3, width: spot.width, height: spot.height, rx: 8 }) : null,
      s("rect", { class: "body", width: spot.width, height: spot.height, rx: 8 }),
      s("rect", { class: "stripe", width: 5, height: spot.height, rx: 2.5 }),
      part ? s("rect", { class: "heat", x: 5, y: spot.height - 4, width: (spot.width - 10) * part, height: 4 }) : null,
      s("text", { class: "name", x: 14, y: 19 }, fitted(label.title, spot.width - 22)),
      s("text", { class: "detail", x: 14, y: 34 }, fitted(label.detail, (spot.width - 22) / 0.88)),
      s("title", {}, `${label.title}\n${label.detail}${node?.module ? `\n${node.module}` : ""}${node?.source ? `\n${node.source}` : ""}`));
  }

  choose(id) {
    this.select(id);
    this.chosen(this.stage, id);
    this.bringIntoSight();
  }

  /** Enter chooses, space opens and closes, arrows go along the edges. */
  keys(id, chosen) {
    const opens = isContainer(this.trees[this.stage], id);
    return {
      ...pressed(chosen),
      onkeydown: (event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step) this.step(id, step);
        else if (event.key === " " && opens) this.toggle(id);
        else if (event.key === "Enter" || event.key === " ") chosen();
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
    };
  }

  step(id, direction) {
    const next = this.drawn.edges.find((edge) => (direction > 0 ? edge.from : edge.to) === id);
    const other = next && (direction > 0 ? next.to : next.from);
    if (other && other !== "in" && other !== "out") this.focus(other);
  }

  makeMovable() {
    let start = null;
    this.svg.addEventListener("pointerdown", (event) => { start = { x: event.clientX - this.shift.x, y: event.clientY - this.shift.y, moved: false }; });
    window.addEventListener("pointermove", (event) => {
      if (!start) return;
      this.shift = { x: event.clientX - start.x, y: event.clientY - start.y };
      this.move();
    });
    window.addEventListener("pointerup", () => { start = null; });
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || !event.shiftKey) this.zoom(Math.exp(-event.deltaY / 500), event.offsetX, event.offsetY);
    }, { passive: false });
  }

  zoom(factor, x, y) {
    const { width, height } = this.svg.getBoundingClientRect();
    [x, y] = [x ?? width / 2, y ?? height / 2];
    const scale = Math.max(0.08, Math.min(2.5, this.scale * factor));
    this.shift = { x: x - (x - this.shift.x) * scale / this.scale, y: y - (y - this.shift.y) * scale / this.scale };
    this.scale = scale;
    this.move();
  }

  /** The whole graph where it can be read then; else its start. */
  fit() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width) return;
    const wide = Math.min(width / this.drawn.width, 1.15);
    this.scale = Math.max(Math.min(wide, height / this.drawn.height), Math.min(wide, 0.8));
    this.shift = { x: (width - this.drawn.width * this.scale) / 2, y: Math.max(0, (height - this.drawn.height * this.scale) / 2) };
    this.move();
  }

  move() {
    this.canvas.setAttribute("transform", `translate(${this.shift.x} ${this.shift.y}) scale(${this.scale})`);
  }
}

function fitted(text, width) {
  if (textWidth(text) <= width) return text;
  let most = Math.max(1, Math.floor(text.length * width / textWidth(text)) - 1);
  while (most > 1 && textWidth(`${text.slice(0, most)}…`) > width) most -= 1;
  return `${text.slice(0, most)}…`;
}
