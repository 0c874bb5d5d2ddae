// The parts of the report: deflated JSON in the page, unpacked when they are looked at, once.

const parts = new Map();

function part(name) {
  if (!parts.has(name)) parts.set(name, unpacked(name));
  return parts.get(name);
}

async function unpacked(name) {
  const text = document.querySelector(`script[data-part="${name}"]`).textContent;
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
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
