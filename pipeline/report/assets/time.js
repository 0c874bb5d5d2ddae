// Where the time of a call goes: kernels, a time line, the roofline, lines and modules.

function timeView(report, go) {
  const profile = report.profile;
  if (!profile) return h("div", { class: "view" }, card("Time", nothing(report.missing("times") || "Nothing was measured.")), kernelTable(report, go));
  const inside = sum(profile.sites.map((site) => site.seconds));
  const kinds = [...groupedBy(profile.sites, (site) => report.kinds.get(site.name) || "copy")].map(([kind, sites]) => {
    const total = sum(sites.map((site) => site.seconds));
    return { kind, label: kind, value: total, text: `${seconds(total)}, ${percent(total / profile.seconds)}` };
  }).sort((a, b) => b.value - a.value);
  const rest = [["between kernels", profile.code_seconds - inside], ["arguments and results", profile.seconds - profile.code_seconds]];
  kinds.push(...rest.filter(([, value]) => value > 0).map(([label, value]) => ({ kind: "rest", label, value, text: `${seconds(value)}, ${percent(value / profile.seconds)}` })));
  return h("div", { class: "view" },
    card(`A call takes ${seconds(profile.seconds)}`, h("p", { class: "hint" }, `Mean of ${plural(profile.calls, "call")}. This machine: ${profile.peak.operations ? digits(profile.peak.operations / 1e9) : "?"} GFLOP/s, ${digits(profile.peak.bytes / 1e9)} GB/s, one thread.`), stackedBar(kinds)),
    card("Time line", h("p", { class: "hint" }, "The last call. Drag or use the arrow keys to move, the wheel or + and − to zoom."), timeline(report, go)),
    h("div", { class: "columns" },
      card("Roofline", h("p", { class: "hint" }, "A dot is a kernel in all its places, larger where it takes more. The roofs are measured through memory, on one thread: data in caches and threads that share work can be above."), rooflineOf(report, go)),
      card("By module", h("p", { class: "hint" }, "A kernel counts for the module of its product, convolution or reduction."), moduleTable(report))),
    kernelTable(report, go),
    card("By line of the model", lineTable(report, go)));
}

/** The kernels with what they take in all their places. */
function kernelRows(report) {
  const sites = report.profile ? groupedBy(report.profile.sites, (site) => site.name) : new Map();
  const rows = report.kernels.map((kernel) => row(kernel.name, kernel.kind, kernel, sites.get(kernel.name) || []));
  for (const [name, found] of sites) if (!report.kernelByName.has(name)) rows.push(row(name, "copy", null, found));
  return rows;

  function row(name, kind, kernel, found) {
    const taken = found.length ? sum(found.map((site) => site.seconds)) : null;
    const known = found.length && found.every((site) => site.operations !== null && site.bytes !== null);
    const operations = known ? sum(found.map((site) => site.operations)) : null;
    const moved = known ? sum(found.map((site) => site.bytes)) : null;
    return { name, kind, kernel, seconds: taken, runs: sum(found.map((site) => site.runs)), operations, bytes: moved, places: kernel?.calls ?? found.length, source: kernel?.lines[0] || found[0]?.source || "" };
  }
}

function kernelTable(report, go) {
  const rows = kernelRows(report);
  const most = Math.max(...rows.map((row) => row.seconds || 0), 1e-12);
  const peak = report.profile?.peak;
  const roof = (row) => peak?.operations && row.seconds && row.operations !== null ? Math.max(row.operations / peak.operations, row.bytes / peak.bytes) / row.seconds : null;
  const measured = report.profile ? [
    { name: "time", value: (row) => row.seconds, cell: (row) => row.seconds === null ? "–" : bar(row.seconds / most, seconds(row.seconds), `k-${row.kind}`) },
    { name: "% of call", value: (row) => row.seconds, cell: (row) => row.seconds === null ? "–" : percent(row.seconds / report.profile.seconds) },
    { name: "runs", value: (row) => row.runs, cell: (row) => row.runs ? digits(row.runs).replace(/\.0+$/, "") : "–" },
    { name: "GFLOP/s", value: (row) => row.operations ? row.operations / row.seconds : null, cell: (row) => row.operations ? digits(row.operations / row.seconds / 1e9) : "–" },
    { name: "GB/s", value: (row) => row.bytes ? row.bytes / row.seconds : null, cell: (row) => row.bytes ? digits(row.bytes / row.seconds / 1e9) : "–" },
    { name: "% of roof", hint: "what the work would take at the machine's peak, as a part of what it took", value: roof, cell: (row) => percent(roof(row)) },
  ] : [];
  const columns = [
    { name: "kernel", text: true, value: (row) => row.name, cell: (row) => [h("i", { class: `dot-mark k-${row.kind}` }), row.name] },
    { name: "kind", text: true, value: (row) => row.kind },
    ...measured,
    { name: "places", value: (row) => row.places },
    { name: "operations", value: (row) => row.kernel?.operations, cell: (row) => count(row.kernel?.operations) },
    { name: "bytes", value: (row) => row.kernel?.bytes, cell: (row) => bytes(row.kernel?.bytes) },
    { name: "source", text: true, value: (row) => row.source, cell: (row) => row.source ? short(row.source) : "" },
  ];
  return card("Kernels", table(columns, rows, { by: report.profile ? 2 : null, chosen: (row) => go.kernel(row.name) }));
}

function rooflineOf(report, go) {
  const points = kernelRows(report).filter((row) => row.operations && row.bytes && row.seconds).map((row) => ({ ...row, rate: row.operations / row.seconds, intensity: row.operations / row.bytes }));
  if (report.profile && !report.profile.peak.operations) return nothing("What arithmetic this machine can do is measured by installations that compile alone.");
  return points.length ? roofline(points, report.profile.peak, (point) => go.kernel(point.name)) : nothing("No kernel has operations that can be counted.");
}

/** Seconds by what `keys` gives for the node of each place that was timed. */
function secondsBy(report, keys) {
  const found = new Map();
  for (const site of report.profile.sites) {
    for (const key of keys(site, site.node && report.nodeOf("compiled", site.node))) {
      const entry = found.get(key) || { key, seconds: 0, kernels: new Set() };
      entry.seconds += site.seconds;
      entry.kernels.add(site.name);
      found.set(key, entry);
    }
  }
  return [...found.values()].sort((a, b) => b.seconds - a.seconds);
}

/** The module of the op of a kernel that it is named after: that of a product, not of what is added behind it. */
function homeOf(report, node) {
  const kind = report.kinds.get(node.kernel);
  const own = report.graphs.compiled.nodes.find((other) => other.box === node.id && opKind(other) === kind);
  return (own || node).module;
}

function moduleTable(report) {
  const rows = secondsBy(report, (site, node) => {
    const path = node ? homeOf(report, node) : "\uffff";
    if (!node) return [path];
    const parts = path ? path.split(".") : [];
    return ["", ...parts.map((_, number) => parts.slice(0, number + 1).join("."))];
  });
  const order = rows.sort((a, b) => a.key.localeCompare(b.key, undefined, { numeric: true }));
  return table([
    { name: "module", text: true, value: (row) => row.key, cell: (row) => row.key === "\uffff" ? "copies, and what is in no one place" : h("span", { style: `padding-left:${row.key ? row.key.split(".").length * 14 : 0}px` }, row.key.split(".").pop() || report.summary.title, " ", h("small", {}, report.classes.get(row.key) || "")) },
    { name: "time", value: (row) => row.seconds, cell: (row) => bar(row.seconds / report.profile.seconds, seconds(row.seconds)) },
    { name: "% of call", value: (row) => row.seconds, cell: (row) => percent(row.seconds / report.profile.seconds) },
  ], order, { limit: 40 });
}

function lineTable(report, go) {
  const rows = secondsBy(report, (site) => [site.source || ""]);
  return table([
    { name: "line", text: true, value: (row) => row.key, cell: (row) => row.key ? short(row.key) : "unknown line" },
    { name: "text", text: true, value: (row) => row.key, cell: (row) => sourceLine(row.key) },
    { name: "time", value: (row) => row.seconds, cell: (row) => bar(row.seconds / report.profile.seconds, seconds(row.seconds)) },
    { name: "% of call", value: (row) => row.seconds, cell: (row) => percent(row.seconds / report.profile.seconds) },
    { name: "kernels", value: (row) => row.kernels.size },
  ], rows, { chosen: (row) => row.key && go.line(row.key) });
}

function sourceLine(source) {
  const place = h("code", { class: "line" });
  part("sources").then((files) => {
    const found = source.match(/^(.*):(\d+)$/);
    if (found) replaced(place, python((files[found[1]]?.lines[found[2]] || "").trim()));
  });
  return place;
}

/** The runs of a call as bars along time. */
function timeline(report, go) {
  const { sites, events, left_out: leftOut } = report.profile;
  if (!events.length) return nothing("The runs of this model are not recorded one by one.");
  const end = Math.max(...events.map(([, start, length]) => start + length));
  const height = 66;
  let [from, span] = [0, end];
  const group = s("g");
  const axis = s("g");
  const svg = s("svg", { class: "chart timeline", tabindex: "0", role: "group", "aria-label": "time line of a call" }, group, axis);

  function draw() {
    const width = svg.clientWidth || 1200;
    svg.setAttribute("viewBox", `0 0 ${width} ${height + 20}`);
    const x = (time) => width * (time - from) / span;
    const seen = events.filter(([, start, length]) => start + length >= from && start <= from + span && length / span > 1 / 4000);
    replaced(group, seen.map(([site, start, length]) => {
      const kind = report.kinds.get(sites[site].name) || "copy";
      const wide = width * length / span;
      return s("g", { class: `run k-${kind}`, ...pressed(() => sites[site].node ? go.node("compiled", sites[site].node) : null) },
        s("rect", { x: x(start), y: 8, width: Math.max(0.6, wide), height: height - 16, rx: Math.min(2, wide / 3) }),
        s("title", {}, `${sites[site].name}\n${seconds(length / 1e9)} from ${seconds(start / 1e9)}\n${sites[site].source}`),
        wide > 70 ? s("text", { x: x(start) + 6, y: height / 2 + 4 }, fitted(sites[site].name, wide - 10)) : null);
    }));
    replaced(axis, [0, 0.25, 0.5, 0.75, 1].map((part) => s("text", { class: "tick", x: width * part, y: height + 12, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, seconds((from + span * part) / 1e9))));
  }

  function zoom(factor, at) {
    const anchor = from + span * at;
    span = Math.max(end / 5000, Math.min(end, span * factor));
    slide(anchor - span * at);
  }

  function slide(start) {
    from = Math.max(0, Math.min(end - span, start));
    draw();
  }

  let held = null;
  svg.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(event.deltaY / 400), event.offsetX / svg.clientWidth); }, { passive: false });
  svg.addEventListener("pointerdown", (event) => { held = { x: event.clientX, from }; });
  window.addEventListener("pointermove", (event) => { if (held) slide(held.from - (event.clientX - held.x) / svg.clientWidth * span); });
  window.addEventListener("pointerup", () => { held = null; });
  svg.addEventListener("keydown", (event) => {
    const action = { ArrowLeft: () => slide(from - span / 8), ArrowRight: () => slide(from + span / 8), "+": () => zoom(0.7, 0.5), "-": () => zoom(1 / 0.7, 0.5) }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  new ResizeObserver(draw).observe(svg);
  return h("div", {}, svg, leftOut ? h("p", { class: "hint" }, `${leftOut} later runs are left out.`) : null);
}
