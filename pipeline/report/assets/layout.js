// Where the nodes of a graph lie. Each open box is laid out by itself (dagre), so that opening one moves its
// surroundings apart and nothing else; edges that cross the border of a box meet in one place there.

const NODE = { height: 44, padding: 26, least: 96, most: 250 };
const BOX = { title: 28, padding: 14 };

/** The tree of a graph: `{children, parent, node, box, edges}` by id; the root is `""`. */
function treeOf(graph) {
  const tree = { children: new Map([["", []]]), parent: new Map(), nodes: new Map(), boxes: new Map(), edges: [] };
  for (const box of graph.boxes) tree.boxes.set(box.id, box);
  for (const node of graph.nodes) tree.nodes.set(node.id, node);
  const add = (id, parent) => {
    tree.parent.set(id, parent);
    if (!tree.children.has(parent)) tree.children.set(parent, []);
    tree.children.get(parent).push(id);
  };
  for (const box of graph.boxes) {
    add(box.id, box.parent ?? "");
    for (const input of box.inputs) tree.edges.push([input, box.id]);
  }
  for (const node of graph.nodes) {
    add(node.id, node.box);
    for (const input of node.inputs) tree.edges.push([input, node.id]);
  }
  return tree;
}

function isContainer(tree, id) {
  return (tree.children.get(id) || []).length > 0;
}

/** The boxes around an id, outermost first, and the id itself. */
function chainOf(tree, id) {
  const chain = [];
  for (let at = id; at; at = tree.parent.get(at)) chain.unshift(at);
  return chain;
}

/** As much of the chain as is seen: to the first box that is closed. */
function seenChain(tree, open, id) {
  const chain = chainOf(tree, id);
  const closed = chain.findIndex((part) => !open.has(part));
  return closed < 0 ? chain : chain.slice(0, closed + 1);
}

/** The edges to draw in each open box, between what is seen of it; `in` and `out` are the places on its border. */
function edgesByBox(tree, open) {
  const edges = new Map();
  const add = (box, from, to) => {
    if (!edges.has(box)) edges.set(box, new Map());
    const key = `${from}→${to}`;
    if (!edges.get(box).has(key)) edges.get(box).set(key, { from, to, width: 0 });
    edges.get(box).get(key).width += 1;
  };
  for (const [from, to] of tree.edges) {
    if (!tree.parent.has(from)) continue;
    const [up, down] = [seenChain(tree, open, from), seenChain(tree, open, to)];
    let shared = 0;
    while (shared < up.length && up[shared] === down[shared]) shared += 1;
    if (shared >= up.length || shared >= down.length) continue;
    add(up[shared - 1] ?? "", up[shared], down[shared]);
    for (let level = shared; level < up.length - 1; level += 1) add(up[level], up[level + 1], "out");
    for (let level = shared; level < down.length - 1; level += 1) add(down[level], "in", down[level + 1]);
  }
  return edges;
}

/**
 * Lays out what is seen of a graph.
 * labels: gives the two lines of text of what is not open.
 * Returns {width, height, boxes, nodes, edges}, outer boxes before inner ones.
 */
function laidOut(tree, open, labels) {
  const edges = edgesByBox(tree, open);
  const sizes = new Map();
  measure("", tree, open, labels, edges, sizes);
  const drawn = { boxes: [], nodes: [], edges: [], width: sizes.get("").width, height: sizes.get("").height };
  place("", 0, 0, sizes, drawn);
  return drawn;
}

function measure(id, tree, open, labels, edges, sizes) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: id === "" ? 40 : 26, marginx: 0, marginy: 0 });
  graph.setDefaultEdgeLabel(() => ({}));
  const inner = edges.get(id) || new Map();
  for (const child of tree.children.get(id) || []) {
    if (open.has(child) && isContainer(tree, child)) measure(child, tree, open, labels, edges, sizes);
    else sizes.set(child, closedSize(labels(child)));
    const size = sizes.get(child);
    graph.setNode(child, { width: size.width, height: size.height });
  }
  for (const { from, to, width } of inner.values()) {
    for (const port of [from, to]) if (port === "in" || port === "out") graph.setNode(port, { width: 8, height: 1 });
    graph.setEdge(from, to, { weight: Math.min(width, 4) });
  }
  dagre.layout(graph);
  const around = id === "" ? { title: 0, padding: 20 } : BOX;
  const { width, height } = graph.graph();
  const title = id === "" ? 0 : textWidth(labels(id).title) + 72;
  sizes.set(id, {
    graph, open: true, around,
    width: Math.max(isFinite(width) ? width : 0, title) + 2 * around.padding,
    height: (isFinite(height) ? height : 0) + 2 * around.padding + around.title,
    shift: Math.max(0, (title - width) / 2),
  });
}

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

/** How wide a text is as the name of a node. */
function textWidth(text) {
  if (!widths.has(text)) {
    pen.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
    widths.set(text, pen.measureText(text).width);
  }
  return widths.get(text);
}

function closedSize(label) {
  const wanted = Math.max(textWidth(label.title), textWidth(label.detail || "") * 0.85) + NODE.padding;
  return { width: Math.max(NODE.least, Math.min(NODE.most, wanted)), height: NODE.height };
}

function place(id, left, top, sizes, drawn) {
  const { graph, around, shift } = sizes.get(id);
  const [x0, y0] = [left + around.padding + shift, top + around.padding + around.title];
  for (const child of graph.nodes()) {
    if (child === "in" || child === "out") continue;
    const at = graph.node(child);
    const size = sizes.get(child);
    const spot = { id: child, x: x0 + at.x - size.width / 2, y: y0 + at.y - size.height / 2, width: size.width, height: size.height };
    drawn[size.open ? "boxes" : "nodes"].push(spot);
    if (size.open) place(child, spot.x, spot.y, sizes, drawn);
  }
  for (const edge of graph.edges()) {
    const points = graph.edge(edge).points.map((point) => ({ x: x0 + point.x, y: y0 + point.y }));
    meet(points, 0, edge.v, "out", sizes, x0, y0, graph, top);
    meet(points, points.length - 1, edge.w, "in", sizes, x0, y0, graph, top);
    if (edge.w === "out") points.push({ x: points[points.length - 1].x, y: top + sizes.get(id).height });
    if (edge.v === "in") points.unshift({ x: points[0].x, y: top });
    drawn.edges.push({ from: edge.v, to: edge.w, box: id, points });
  }
}

/** Has an edge end where the edges inside of an open box go on; else in the middle of a node's side. */
function meet(points, end, id, port, sizes, x0, y0, graph) {
  if (id === "in" || id === "out") return;
  const at = graph.node(id);
  const size = sizes.get(id);
  const left = x0 + at.x - size.width / 2;
  const y = y0 + at.y + (port === "out" ? size.height / 2 : -size.height / 2);
  if (!size.open) {
    points[end] = { x: x0 + at.x + (points[end].x - x0 - at.x) / 2, y: Math.abs(points[end].y - y) < size.height ? y : points[end].y };
    return;
  }
  const inner = size.graph.hasNode(port) ? size.graph.node(port).x + size.around.padding + size.shift : size.width / 2;
  points[end] = { x: left + inner, y };
}

/** A smooth line through points. */
function curve(points) {
  if (points.length < 3) return `M${points.map((point) => `${point.x} ${point.y}`).join("L")}`;
  let path = `M${points[0].x} ${points[0].y}`;
  for (let number = 1; number < points.length - 1; number += 1) {
    const [here, next] = [points[number], points[number + 1]];
    const last = number === points.length - 2;
    const end = last ? next : { x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 };
    path += `Q${here.x} ${here.y} ${end.x} ${end.y}`;
  }
  return path;
}
