// Elements of the page. Text is only ever set as text: what a model or a file says is no markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element; attributes that begin with `on` are listeners, null and false are left out. */
function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Likewise, of SVG. */
function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function replaced(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** What acts like a button without being one: keys do what clicks do. */
function pressed(action) {
  return {
    onclick: (event) => { event.stopPropagation(); action(event); },
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      action(event);
    },
  };
}

function link(text, action, attributes) {
  return h("button", { type: "button", class: "link", ...attributes, onclick: action }, text);
}

function card(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), ...children);
}

function nothing(text) {
  return h("p", { class: "nothing" }, text);
}
