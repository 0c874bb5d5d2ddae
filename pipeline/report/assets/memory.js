// What takes memory: parts, the plan of the workspace over the steps of a call, who holds the peak, weights.

function memoryView(report, go) {
  const memory = report.memory;
  const view = h("div", { class: "view" });
  const footprint = memory.footprint;
  if (footprint) {
    const pieces = [["weights", footprint.weights - footprint.unread, "matmul"], ["prepared", footprint.prepared, "conv"], ["workspace", footprint.workspace, "reduction"], ["results", footprint.results, "elementwise"], ["code", footprint.code, "copy"]];
    const total = sum(pieces.map(([, value]) => value));
    view.append(card(`${bytes(total)}${footprint.complete ? "" : " and more, which a call allocates"}`,
      footprint.unread ? h("p", { class: "hint" }, `${bytes(footprint.unread)} of weights are read by @prepare alone; they belong to the model.`) : null,
      stackedBar(pieces.map(([label, value, kind]) => ({ label, value, kind, text: bytes(value) })))));
  } else {
    view.append(card("Memory", nothing(report.missing("memory") || "Nothing is known.")));
  }
  for (const plan of memory.plans) view.append(planCard(plan, report, go));
  if (!memory.plans.length) view.append(card("Workspace", nothing(report.passes.length ? "There are no temporaries between kernels." : report.missing("passes") || "The plan was not recorded.")));
  view.append(h("div", { class: "columns" },
    card(`Weights, ${bytes(sum(memory.weights.map((weight) => weight.bytes || 0)))}`, tensorTable(memory.weights)),
    card(`Prepared from weights, ${bytes(sum(memory.prepared.map((kind) => kind.bytes || 0)))}`, memory.prepared.length ? tensorTable(memory.prepared) : nothing("Nothing is prepared."))));
  return view;
}

function tensorTable(tensors) {
  const most = Math.max(...tensors.map((tensor) => tensor.bytes || 0), 1);
  return tensors.length ? table([
    { name: "name", text: true, value: (tensor) => tensor.name, cell: (tensor) => h("span", { class: "mono" }, tensor.name) },
    { name: "type", text: true, value: (tensor) => tensor.type, cell: (tensor) => h("span", { class: "mono" }, tensor.type) },
    { name: "bytes", value: (tensor) => tensor.bytes, cell: (tensor) => bar((tensor.bytes || 0) / most, bytes(tensor.bytes)) },
  ], tensors, { limit: 25 }) : nothing("There are none.");
}

/** The step at which most bytes are needed, and how many. */
function peakOf(plan) {
  let peak = { step: 0, bytes: -1 };
  for (const { first: step } of plan.buffers) {
    const needed = sum(plan.buffers.filter((buffer) => buffer.first <= step && step <= buffer.last).map((buffer) => buffer.size));
    if (needed > peak.bytes) peak = { step, bytes: needed };
  }
  return peak;
}

function planCard(plan, report, go) {
  const peak = peakOf(plan);
  const holders = plan.buffers.filter((buffer) => buffer.first <= peak.step && peak.step <= buffer.last).sort((a, b) => b.size - a.size);
  const separate = sum(plan.buffers.map((buffer) => buffer.size));
  return card(`Workspace of @${plan.function}: ${bytes(plan.total)}`,
    h("p", { class: "hint" }, `${plural(plan.buffers.length, "temporary", "temporaries")} of ${bytes(separate)} share it. At the peak, step ${peak.step}, ${bytes(peak.bytes)} are needed at once.`),
    planChart(plan, peak, report, go),
    h("h3", {}, "Who holds the peak"),
    table([
      { name: "bytes", value: (buffer) => buffer.size, cell: (buffer) => bar(buffer.size / plan.total, bytes(buffer.size)) },
      { name: "of", text: true, value: (buffer) => buffer.label, cell: (buffer) => h("span", { class: "mono" }, `${buffer.label || "?"}: ${buffer.type}`) },
      { name: "steps", value: (buffer) => buffer.first, cell: (buffer) => `${buffer.first}–${buffer.last}` },
      { name: "kernels", text: true, value: (buffer) => buffer.users.join(), cell: (buffer) => buffer.users.map((name) => [link(name, () => go.kernel(name)), " "]) },
      { name: "source", text: true, value: (buffer) => buffer.source || "", cell: (buffer) => buffer.source ? link(short(buffer.source), () => go.line(buffer.source)) : "" },
    ], holders, { limit: 30 }));
}

function planChart(plan, peak, report, go) {
  const [width, height, left, bottom] = [1360, 280, 64, 26];
  const x = (step) => left + (width - left - 8) * step / Math.max(1, plan.steps);
  const y = (offset) => 8 + (height - bottom - 8) * (1 - offset / plan.total);
  const kindOf = (buffer) => report.kinds.get(buffer.users[0]) || "copy";
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => [
    s("line", { class: "grid", x1: left, x2: width - 8, y1: y(plan.total * part), y2: y(plan.total * part) }),
    s("text", { class: "tick", x: left - 6, y: y(plan.total * part) + 4, "text-anchor": "end" }, bytes(Math.round(plan.total * part)))]);
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `workspace of ${plan.function} over its steps` },
    ticks,
    plan.buffers.map((buffer) => s("rect", {
      class: `buffer k-${kindOf(buffer)}`, x: x(buffer.first), y: y(buffer.offset + buffer.size), width: Math.max(1.5, x(buffer.last) - x(buffer.first)), height: Math.max(1, y(buffer.offset) - y(buffer.offset + buffer.size)),
      ...pressed(() => buffer.users.length ? go.kernel(buffer.users[0]) : null),
    }, s("title", {}, `${buffer.label}: ${buffer.type}\n${bytes(buffer.size)} at ${bytes(buffer.offset)}, steps ${buffer.first}–${buffer.last}\n${buffer.users.join(", ")}\n${buffer.source || ""}`))),
    plan.calls.map(([step]) => s("line", { class: "call", x1: x(step), x2: x(step), y1: height - bottom, y2: height - bottom + 5 })),
    s("line", { class: "peak", x1: x(peak.step), x2: x(peak.step), y1: 8, y2: height - bottom }),
    s("text", { class: "tick", x: left, y: height - 6 }, "steps of the call; marks are calls of kernels"),
    s("text", { class: "tick strong", x: Math.min(x(peak.step) + 5, width - 60), y: 20 }, "peak"));
}
