// Makes elements. Text from the data only ever becomes a text node, never HTML.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svgElement(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// Text of the user, isolated from its surroundings, because it can be written from right to left.
export function userText(text, attributes = {}) {
  return element("bdi", { dir: "auto", ...attributes }, text);
}

// A word of a column of text. A missing word looks different from the word "missing".
export function wordText(word) {
  return word === null ? element("i", { class: "missing" }, "missing") : userText(word === "" ? "(empty)" : word);
}

export function swatch(colour) {
  const box = element("span", { class: "swatch", "aria-hidden": "true" });
  box.style.background = colour;
  return box;
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

let clearing = 0;

// Says a short message that disappears again. Screen readers read it.
export function say(message) {
  const status = byId("status");
  status.textContent = message;
  status.classList.add("shown");
  clearTimeout(clearing);
  clearing = setTimeout(() => status.classList.remove("shown"), 2600);
}
