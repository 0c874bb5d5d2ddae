// Code with its words in colours: MLIR and Python, by what a word looks like.

const MLIR_WORDS = /(\/\/.*$)|("(?:[^"\\]|\\.)*")|(%[\w$.#]+)|(@[\w$.]+)|(\^\w+|#\w+)|\b((?:tensor|memref|vector|affine_map|affine_set)(?=<)|[fi]\d+\b|bf16\b|index\b)|\b([a-z_]\w*\.[a-z_][\w.]*|func|return|call|module)\b|(-?\b\d[\w.+]*)/gm;
const MLIR_CLASSES = ["comment", "string", "value", "symbol", "label", "type", "op", "number"];
const PYTHON_WORDS = /(#.*$)|("""[^]*?"""|'''[^]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(@[\w.]+)|\b(def|class|return|if|elif|else|for|while|in|is|not|and|or|import|from|as|with|lambda|None|True|False|raise|try|except|finally|yield|pass|assert|self)\b|(\b\d[\w.]*)/gm;
const PYTHON_CLASSES = ["comment", "string", "symbol", "op", "number"];

function highlighted(text, words, classes) {
  const pieces = [];
  let end = 0;
  for (const found of text.matchAll(words)) {
    const kind = classes[found.slice(1).findIndex((group) => group !== undefined)];
    if (found.index > end) pieces.push(text.slice(end, found.index));
    pieces.push(h("span", { class: `c-${kind}` }, found[0]));
    end = found.index + found[0].length;
  }
  pieces.push(text.slice(end));
  return pieces;
}

const mlir = (text) => highlighted(text, MLIR_WORDS, MLIR_CLASSES);
const python = (text) => highlighted(text, PYTHON_WORDS, PYTHON_CLASSES);

function codeBlock(text, language, label) {
  return h("pre", { class: "code", tabindex: "0", "aria-label": label }, h("code", {}, language(text)));
}

/** The lines of a diff, each after its mark; `@` begins a new place. */
function diffBlock(change) {
  const rows = change.lines.map((line) => {
    const mark = line[0];
    if (mark === "@") return h("div", { class: "d-gap" }, "⋯");
    const kind = mark === "+" ? "d-added" : mark === "-" ? "d-removed" : "d-same";
    return h("div", { class: kind }, h("span", { class: "d-mark" }, mark), mlir(line.slice(1)));
  });
  const cut = change.cut ? h("div", { class: "d-gap" }, `${change.cut} more lines are not kept`) : null;
  return h("div", { class: "code diff", tabindex: "0", "aria-label": `changes of ${change.function}` }, rows, cut);
}

const STAGE_NAMES = { torch: "torch", linalg: "linalg", fused: "fused", kernels: "kernel", buffers: "buffers", loops: "loops", gpu: "gpu", llvm: "LLVM" };

/** A function, or what became of a kernel, at each stage. */
function stagesOf(name) {
  const place = h("div", { class: "ir" }, nothing("unpacking…"));
  part("texts").then((texts) => {
    const found = Object.keys(texts).map((stage) => [stage, Object.keys(texts[stage]).filter((other) => isOf(other, name)).map((other) => texts[stage][other]).join("\n\n")]);
    const own = Object.fromEntries(found.filter(([, text]) => text));
    const stages = Object.keys(own);
    if (!stages.length) { replaced(place, nothing("not recorded")); return; }
    const view = h("div");
    const tabs = stages.map((stage) => h("button", { type: "button", role: "tab", onclick: () => show(stage) }, STAGE_NAMES[stage] || stage));
    const show = (stage) => {
      tabs.forEach((tab, number) => tab.setAttribute("aria-selected", String(stages[number] === stage)));
      replaced(view, codeBlock(own[stage], mlir, `${stage} of ${name}`));
    };
    replaced(place, h("div", { class: "tabs small", role: "tablist" }, tabs), view);
    show(stages[0]);
  });
  return place;
}
