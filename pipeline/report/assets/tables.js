// Tables that can be sorted by their columns.

/**
 * A table.
 * columns: {name, value(row), cell(row), text: whether it is text, hint}
 * chosen: is called with a row that is clicked, or entered by keys.
 */
function table(columns, rows, options = {}) {
  let by = options.by ?? null;
  let down = true;
  const body = h("tbody");
  const heads = columns.map((column, number) => h("th", { class: column.text ? "text" : "number", scope: "col" },
    h("button", { type: "button", title: column.hint || `sort by ${column.name}`, onclick: () => sort(number) }, column.name)));
  const limit = options.limit || 200;
  let shown = limit;

  function sort(number) {
    down = by === number ? !down : !columns[number].text;
    by = number;
    fill();
  }

  function fill() {
    const order = by === null ? [...rows] : [...rows].sort((a, b) => {
      const [first, second] = [columns[by].value(a), columns[by].value(b)];
      const less = typeof first === "string" ? first.localeCompare(second) : (first ?? -1) - (second ?? -1);
      return down ? -less : less;
    });
    heads.forEach((head, number) => head.setAttribute("aria-sort", number !== by ? "none" : down ? "descending" : "ascending"));
    replaced(body, order.slice(0, shown).map(line));
    if (order.length > shown) {
      body.append(h("tr", {}, h("td", { colspan: columns.length },
        link(`show all ${order.length}`, () => { shown = Infinity; fill(); }))));
    }
  }

  function line(row) {
    const attributes = options.chosen ? { tabindex: "0", class: "choice", ...pressed(() => options.chosen(row)) } : {};
    return h("tr", attributes, columns.map((column) =>
      h("td", { class: column.text ? "text" : "number" }, column.cell ? column.cell(row) : column.value(row))));
  }

  fill();
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body));
}
