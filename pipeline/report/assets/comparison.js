// The page that compares two reports.

const CHANGES = { appeared: "appeared", went: "went", slower: "slower", faster: "faster", same: "same" };

function comparisonView(data) {
  const [first, second] = data.names;
  const [before, after] = data.sides;
  const counts = groupedBy(data.kernels, (row) => row.change);
  const facts = [["a call", "seconds", seconds], ["kernels", "kernels", String], ["places that call them", "calls", String], ["ops as imported", "ops", (value) => value ?? "–"], ["workspace", "workspace", bytes], ["prepared", "prepared", bytes], ["weights", "weights", bytes], ["machine code", "code", bytes], ["passes", "passes", seconds]];
  const options = (side) => Object.entries(side.options).map(([name, value]) => `${name}=${value}`).join(", ") || "default options";
  return [
    h("header", { class: "head" }, h("div", { class: "head-row" }, h("div", {}, h("h1", {}, `${first} → ${second}`), h("p", { class: "hint" }, `${before.title}, ${before.target} · ${after.title}, ${after.target}`)),
      h("ul", { class: "tiles" },
        before.seconds && after.seconds ? h("li", {}, h("b", { class: after.seconds > before.seconds ? "minus" : "plus" }, `${digits(before.seconds / after.seconds)}×`), h("span", {}, "as fast")) : null,
        Object.keys(CHANGES).filter((change) => counts.has(change)).map((change) => h("li", {}, h("b", {}, counts.get(change).length), h("span", {}, `kernels ${CHANGES[change]}`))))), h("p", {}, " ")),
    h("main", {}, h("div", { class: "view" },
      card("Figures", h("div", { class: "sides" }, h("span", {}), h("h3", {}, first), h("h3", {}, second), h("span", {}),
        h("span", {}, "options"), h("span", { class: "mono" }, options(before)), h("span", { class: "mono" }, options(after)), h("span", {}),
        facts.map(([name, key, format]) => [h("span", {}, name), h("b", {}, format(before[key])), h("b", {}, format(after[key])), h("span", { class: "hint" }, ratio(before[key], after[key]))]))),
      card("Kernels", h("p", { class: "hint" }, data.measured ? `Times of all places of a kernel in one call. Faster or slower is said of a single run, the same of what differs by ${percent(data.noise)} or less.` : "One of the reports has no times: kernels that appeared and went are shown."), comparedTable("kernel", data.kernels, data, true)),
      data.measured ? h("div", { class: "columns" }, card("By line of the model", comparedTable("line", data.lines, data)), card("By module", comparedTable("module", data.modules, data))) : null)),
  ];
}

function ratio(before, after) {
  return before && after && before !== after ? `${after > before ? "+" : "−"}${percent(Math.abs(after - before) / before)}` : "";
}

function comparedTable(what, rows, data, isKernels) {
  const difference = (row) => (row.seconds[1] ?? 0) - (row.seconds[0] ?? 0);
  const most = Math.max(...rows.flatMap((row) => row.seconds).filter(Boolean), 1e-12);
  const cell = (value, kind) => value === null ? "–" : bar(value / most, seconds(value), kind);
  const columns = [
    { name: what, text: true, value: (row) => row.name, cell: (row) => [row.kind ? h("i", { class: `dot-mark k-${row.kind}` }) : null, what === "line" ? short(row.name) : row.name, row.was ? h("small", {}, ` was ${row.was}`) : null] },
    { name: "change", text: true, value: (row) => Object.keys(CHANGES).indexOf(row.change), cell: (row) => h("b", { class: `change-${row.change}` }, CHANGES[row.change]) },
    ...(data.measured ? data.names.map((name, side) => ({ name, value: (row) => row.seconds[side], cell: (row) => cell(row.seconds[side], row.kind ? `k-${row.kind}` : "") })) : []),
    ...(data.measured ? [{ name: "difference", value: (row) => Math.abs(difference(row)), cell: (row) => `${difference(row) > 0 ? "+" : "−"}${seconds(Math.abs(difference(row)))}` }] : []),
    ...(isKernels ? [{ name: "places", value: (row) => row.places[1] ?? row.places[0], cell: (row) => row.places.map((places) => places ?? "–").join(" → ") }, { name: "source", text: true, value: (row) => row.source, cell: (row) => row.source ? short(row.source) : "" }] : []),
  ];
  return table(columns, rows, { by: data.measured ? 4 : 1 });
}

requestAnimationFrame(() => setTimeout(() => part("comparison").then((data) => {
  replaced(document.getElementById("page"), comparisonView(data));
  document.body.dataset.ready = "true";
}).catch(failed)));
