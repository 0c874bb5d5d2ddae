// The page: its head, its views, what is chosen.

/** Adds to the part `main` what several views look up. */
function indexed(report) {
  report.kernelByName = new Map(report.kernels.map((kernel) => [kernel.name, kernel]));
  report.kinds = new Map(report.kernels.map((kernel) => [kernel.name, kernel.kind]));
  report.kindOf = (node) => node.kernel ? report.kinds.get(node.kernel) ?? opKind(node) : node.kind === "op" ? opKind(node) : node.kind;
  report.sites = new Map((report.profile?.sites || []).filter((site) => site.node).map((site) => [site.node, site]));
  report.times = new Map([...report.sites].map(([id, site]) => [id, site.seconds]));
  report.longest = Math.max(...report.times.values(), 1e-12);
  report.classes = new Map(Object.entries(report.summary.classes));
  const nodes = {};
  for (const [stage, graph] of Object.entries(report.graphs)) nodes[stage] = new Map(graph.nodes.map((node) => [node.id, node]));
  report.nodeOf = (stage, id) => nodes[stage]?.get(id);
  report.remarksOf = (name) => report.remarks.filter((remark) => remark.kernel && isOf(remark.kernel, name));
  report.missing = (word) => report.summary.missing.find((text) => text.includes(word));
  return report;
}

function opKind(node) {
  if (/conv/.test(node.label)) return "conv";
  if (/matmul|dot/.test(node.label)) return "matmul";
  if (/pool/.test(node.label)) return "pooling";
  if (/reduce|softmax|norm/.test(node.label)) return "reduction";
  return /pad|concat|broadcast|transpose|copy|fill/.test(node.label) ? "copy" : "elementwise";
}

function head(report, search, tabs) {
  const { summary, memory, profile } = report;
  const ops = (report.graphs.imported?.nodes || []).filter((node) => node.kind === "op").length;
  const prepared = new Set((report.graphs.compiled?.nodes || []).filter((node) => node.id.startsWith("p")).map((node) => node.kernel));
  const tiles = [
    profile ? [seconds(profile.seconds), "a call"] : null,
    [report.kernels.length, prepared.size ? `kernels, ${report.kernels.filter((kernel) => prepared.has(kernel.name)).length} in @prepare` : "kernels"],
    ops ? [ops, "ops as imported"] : null,
    memory.footprint ? [bytes(memory.footprint.workspace), "workspace"] : null,
    [bytes(sum(memory.weights.map((weight) => weight.bytes || 0))), "weights"],
  ].filter(Boolean);
  return h("header", { class: "head" },
    h("div", { class: "head-row" },
      h("div", {}, h("h1", {}, summary.title), h("p", { class: "hint" }, [summary.target, ...Object.entries(summary.options).map(([name, value]) => `${name}=${value}`), summary.made.replace("T", " ").slice(0, 16)].join(" · "))),
      h("ul", { class: "tiles" }, tiles.map(([value, name]) => h("li", {}, h("b", {}, value), " ", h("span", {}, name)))),
      search),
    tabs,
    summary.missing.length ? h("p", { class: "missing" }, "Not in this report: ", summary.missing.map((text) => h("span", {}, text))) : null);
}

function aboutView(report) {
  const { summary } = report;
  const rows = [["made", summary.made], ["pipeline", summary.pipeline], ["target", `${summary.target}, ${summary.machine}`], ["threads", summary.threads ?? "as many as OpenMP says"], ["options", Object.entries(summary.options).map(([name, value]) => `${name}=${value}`).join(", ") || "all as they are by default"]];
  return h("div", { class: "view" },
    card("What was compiled", h("dl", { class: "facts" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      h("h3", {}, "Arguments"), h("ul", { class: "mono" }, summary.arguments.map((argument) => h("li", {}, `${argument.name}: ${argument.type}`))),
      h("h3", {}, "Results"), h("ul", { class: "mono" }, summary.results.map((type) => h("li", {}, type)))),
    summary.fallbacks.length ? card("Run by torch", h("ul", {}, summary.fallbacks.map((fallback) => h("li", {}, h("b", {}, fallback.op), ` ${short(fallback.source)}: ${fallback.reason}`)))) : null,
    summary.pipelines ? card("All passes as one pipeline", h("pre", { class: "code wrap", tabindex: "0" }, summary.pipelines)) : null,
    card(`Remarks that are about no kernel`, h("ul", { class: "remarks" }, report.remarks.filter((remark) => !remark.kernel && !remark.edge).slice(0, 300).map(remarkItem))));
}

function start(main) {
  const report = indexed(main);
  const go = {
    tab: (name) => show(name),
    node: (stage, id) => { show("model"); details.show(stage, id); graph.reveal(stage, id); },
    kernel: (name) => {
      const node = report.graphs.compiled?.nodes.find((other) => other.kernel === name);
      if (node) go.node("compiled", node.id);
    },
    pass: (number, name) => { show("passes"); passes.show(number, name); },
    line: (source) => { show("source"); views.source().reveal(source); },
  };
  const details = new Details(report, go);
  const graph = new GraphView(report, (stage, id) => details.show(stage, id));
  const passes = new PassesView(report);
  let source = null;
  const modelView = h("div", { class: "model" }, report.graphs.compiled.nodes.length ? graph.element : h("div", { class: "view" }, card("The graph", nothing(report.missing("graph") || "It was not recorded.")), kernelTable(report, go)), details.element);
  const views = {
    model: () => modelView,
    time: once(() => timeView(report, go)),
    passes: () => passes.element,
    memory: once(() => memoryView(report, go)),
    source: () => (source ??= new SourceView(report, go)),
    about: once(() => aboutView(report)),
  };
  const names = { model: "Model", time: "Time", passes: "Passes", memory: "Memory", source: "Source", about: "About" };
  const stage = h("main", { id: "view", tabindex: "-1" });
  const buttons = Object.entries(names).map(([name, text]) => h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "view", onclick: () => show(name) }, text));
  const tabs = h("nav", { class: "tabs", role: "tablist", "aria-label": "views", onkeydown: (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
  } }, buttons);

  function show(name) {
    const view = views[name]();
    for (const button of buttons) {
      const chosen = button.id === `tab-${name}`;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
    const element = view.element || view;
    if (stage.firstChild !== element) replaced(stage, element);
    if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
  }

  replaced(document.getElementById("page"), head(report, searchBox(report, go), tabs), stage);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !details.element.hidden) details.close(); });
  if (report.graphs.compiled.nodes.length) graph.draw();
  const wanted = location.hash.slice(1);
  show(wanted in views ? wanted : "model");
  graph.fit();
  document.body.dataset.ready = "true";
}

function once(make) {
  let made = null;
  return () => (made ??= make());
}

// What is in the page already is painted first.
requestAnimationFrame(() => setTimeout(() => part("main").then(start).catch(failed)));
