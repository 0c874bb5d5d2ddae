// The parts of the report: deflated JSON in the page, unpacked when they are looked at, once.

const parts = new Map();

function part(name) {
  if (!parts.has(name)) parts.set(name, unpacked(name));
  return parts.get(name);
}

async function unpacked(name) {
  if (!("DecompressionStream" in window)) throw new Error("this browser cannot unpack it; any of 2023 or later can");
  const text = document.querySelector(`script[data-part="${name}"]`).textContent;
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function failed(error) {
  replaced(document.getElementById("page"), h("p", { class: "loading" }, `The report cannot be shown: ${error.message}`));
  throw error;
}

/** Whether a function is a kernel, or a piece of one: what a thread runs of it, a launch. */
function isOf(name, kernel) {
  return name === kernel || name.startsWith(`${kernel}_chunk`) || name.startsWith(`${kernel}_dispatch`);
}

/** Groups by what `key` gives, in the order of first use. */
function groupedBy(items, key) {
  const groups = new Map();
  for (const item of items) {
    const name = key(item);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return groups;
}
