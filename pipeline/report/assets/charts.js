// Pictures of numbers.

/** A bar of a part of a whole, with the text over it. */
function bar(part, text, kind) {
  const width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  return h("span", { class: `bar ${kind || ""}` }, h("i", { style: `width:${width}` }), h("b", {}, text));
}

/** One bar of several parts. */
function stackedBar(pieces) {
  const whole = sum(pieces.map((piece) => piece.value)) || 1;
  const bars = pieces.filter((piece) => piece.value > 0).map((piece) =>
    h("span", { class: `k-${piece.kind}`, style: `flex:${piece.value / whole}`, title: `${piece.label}: ${piece.text}` },
      piece.value / whole > 0.09 ? piece.label : ""));
  const legend = pieces.map((piece) =>
    h("li", {}, h("i", { class: `k-${piece.kind}` }), piece.label, " ", h("b", {}, piece.text)));
  return h("div", {}, h("div", { class: "stacked" }, bars), h("ul", { class: "legend" }, legend));
}

/** Marks on an axis whose numbers are powers of ten. */
function powers(least, most) {
  const marks = [];
  for (let power = Math.ceil(Math.log10(least)); 10 ** power <= most * 1.0001; power += 1) marks.push(10 ** power);
  return marks;
}

function axisLabel(value) {
  return value >= 1 ? count(value) : String(Number(value.toPrecision(1)));
}

/** Work per second over work per byte, under the roofs of the machine. */
function roofline(points, peak, chosen) {
  const [width, height, left, bottom, top, right] = [720, 380, 56, 44, 16, 16];
  const ridge = peak.operations / peak.bytes;
  const xs = points.map((point) => point.intensity).concat(ridge / 8, ridge * 8);
  const ys = points.map((point) => point.rate).concat(peak.operations * 1.6, peak.operations / 50);
  const [x0, x1] = [10 ** Math.floor(Math.log10(Math.min(...xs))), 10 ** Math.ceil(Math.log10(Math.max(...xs)))];
  const [y0, y1] = [10 ** Math.floor(Math.log10(Math.min(...ys))), Math.max(...ys) * 1.4];
  const x = (value) => left + (width - left - right) * Math.log(value / x0) / Math.log(x1 / x0);
  const y = (value) => height - bottom - (height - bottom - top) * Math.log(value / y0) / Math.log(y1 / y0);
  const roof = (value) => Math.min(peak.operations, value * peak.bytes);
  const grid = [
    powers(x0, x1).map((mark) => [
      s("line", { class: "grid", x1: x(mark), x2: x(mark), y1: top, y2: height - bottom }),
      s("text", { class: "tick", x: x(mark), y: height - bottom + 16, "text-anchor": "middle" }, axisLabel(mark))]),
    powers(y0, y1).map((mark) => [
      s("line", { class: "grid", x1: left, x2: width - right, y1: y(mark), y2: y(mark) }),
      s("text", { class: "tick", x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, axisLabel(mark / 1e9))]),
  ];
  const roofs = s("path", { class: "roof", d: `M${x(x0)} ${Math.min(y(roof(x0)), height - bottom)}L${x(ridge)} ${y(peak.operations)}L${x(x1)} ${y(peak.operations)}` });
  const most = Math.max(...points.map((point) => point.seconds), 1e-12);
  const dots = points.map((point) => s("circle", {
    class: `dot k-${point.kind}`, cx: x(point.intensity), cy: y(point.rate), tabindex: "0", role: "button",
    r: 4 + 12 * Math.sqrt(point.seconds / most),
    "aria-label": `${point.name}: ${digits(point.rate / 1e9)} GFLOP/s`, ...pressed(() => chosen(point)),
  }, s("title", {}, `${point.name}\n${digits(point.rate / 1e9)} GFLOP/s, ${digits(point.intensity)} FLOP per byte\n${seconds(point.seconds)}, ${percent(point.rate / roof(point.intensity))} of the roof`)));
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "roofline plot" },
    grid, roofs,
    s("text", { class: "tick strong", x: width - right - 4, y: y(peak.operations) - 8, "text-anchor": "end" }, `${digits(peak.operations / 1e9)} GFLOP/s`),
    s("text", { class: "tick strong", x: x(ridge) - 8, y: y(peak.operations) + 4, "text-anchor": "end" }, `${digits(peak.bytes / 1e9)} GB/s`),
    s("text", { class: "tick", x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, "FLOP per byte"),
    s("text", { class: "tick", x: 14, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${height / 2})` }, "GFLOP/s"),
    dots);
}
