// Elements, figures as texts, colours, bars and tables. Whatever comes from a trace goes into the page as text only.
"use strict";

window.onerror = (message) => {
  const line = document.createElement("p");
  line.className = "error";
  line.setAttribute("role", "alert");
  line.textContent = `This page could not be drawn in full: ${message}`;
  document.getElementById("page").prepend(line);
};

// make("td", {class: "number", title: "..."}, "text", element, ...)
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function")
      element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined)
      element.append(child instanceof Node ? child : document.createTextNode(child));
  }
  return element;
}

// ---- figures --------------------------------------------------------------------------------------------------------

function duration(ns) {
  const s = Math.abs(ns) * 1e-9;
  if (s === 0) return "0";
  if (s >= 100) return `${(ns * 1e-9).toFixed(1)} s`;
  if (s >= 0.1) return `${(ns * 1e-9).toFixed(3)} s`;
  if (s >= 1e-4) return `${(ns * 1e-6).toFixed(3)} ms`;
  if (s >= 1e-6) return `${(ns * 1e-3).toFixed(2)} µs`;
  return `${Math.round(ns)} ns`;
}

const share = (part, of) => (of > 0 ? part / of : 0);
const percent = (value, digits = 1) => `${(100 * value).toFixed(digits)}%`;
const whole = (value) => Math.round(value).toLocaleString("en-US");
const known = (value, text) => (value === null || value === undefined || value === 0 ? "–" : text(value));

function rate(value) {
  for (const [unit, size] of [["billion", 1e9], ["million", 1e6], ["thousand", 1e3]]) {
    if (value >= size) return `${(value / size).toPrecision(3)} ${unit}`;
  }
  return value.toPrecision(3);
}

const plural = (count, word) => `${whole(count)} ${word}${count === 1 ? "" : "s"}`;
const sum = (values) => values.reduce((a, b) => a + b, 0);
const last = (path) => path.replace(/\/+$/, "").split("/").pop() || path;

// ---- colours --------------------------------------------------------------------------------------------------------

// Of classes, categories, causes of gaps and parts of the clock: CSS variables, which differ in dark and light.
const COLOURS = {
  "GPU-bound": "--gpu",
  overlapped: "--overlapped",
  "communication-bound": "--communication",
  "simulation-bound": "--simulation",
  "host-bound": "--host",
  simulation: "--simulation",
  policy: "--policy",
  learning: "--learning",
  communication: "--communication",
  host: "--host",
  io: "--io",
  idle: "--idle",
  none: "--none",
  "in no scope": "--none",
  "launch latency": "--learning",
  synchronisation: "--policy",
  "none ready": "--idle",
  "CPU only": "--cpu",
  "CPU and GPU": "--overlapped",
  "GPU only": "--gpu",
  kernels: "--gpu",
  copies: "--policy",
  fills: "--io",
  others: "--idle",
  setup: "--io",
  "warm-up": "--host",
  train: "--learning",
  evaluate: "--policy",
};
const PALE = new Set(["idle", "none", "in no scope", "none ready", "others"]);

const colour = (name) => `var(${COLOURS[name] ?? "--none"})`;

function key(name) {
  const box = make("span", {class: "key", "aria-hidden": "true"});
  box.style.background = colour(name);
  return box;
}

// names; meanings: {name: text}, shown on hover
function legend(names, meanings = {}) {
  return make("ul", {class: "legend"}, names.map((n) => make("li", {title: meanings[n]}, key(n), n)));
}

// ---- bars -----------------------------------------------------------------------------------------------------------

// parts: [[name, value]]; of: the value of a full bar. Texts in the parts unless `thin`.
function bar(parts, of, {thin = false, text = (v) => percent(share(v, of)), label = ""} = {}) {
  const shown = parts.filter(([, value]) => value > 0);
  const words = shown.map(([name, value]) => `${name} ${text(value)}`);
  const box = make("div", {
    class: thin ? "bar thin" : "bar",
    role: "img",
    "aria-label": `${label}${label ? ": " : ""}${words.join(", ") || "nothing"}`
  });
  shown.forEach(([name, value], i) => {
    const width = 100 * share(value, of);
    const bare = thin || width < 6;
    const part = make("span", {
      title: words[i],
      class: (bare ? "bare" : "") + (PALE.has(name) || name === "overlapped" || name === "CPU and GPU" ? " pale" : "")
    },
      bare           ? ""
        : width > 15 ? words[i]
                     : text(value));
    part.style.width = `${width}%`;
    part.style.background = colour(name);
    box.append(part);
  });
  return box;
}

const barRow = (label, ...rest) => make("div", {class: "bar-row"}, make("div", {class: "label"}, label), bar(...rest));

// ---- tables ---------------------------------------------------------------------------------------------------------

// columns: [[heading, isNumber]]; rows: arrays of texts or elements, the first one heads its row.
function table(caption, columns, rows, className = "") {
  const cell = (tag, content, isNumber, scope) => make(tag, {class: isNumber ? "number" : null, scope}, content);
  return make("div", {class: "scroll"},
    make("table", {class: className, "aria-label": caption},
      make("thead", {}, make("tr", {}, columns.map(([text, isNumber]) => cell("th", text, isNumber, "col")))),
      make("tbody", {},
        rows.map((row) => make("tr", {},
                   row.map((content, i) =>
                             (i === 0 ? cell("th", content, false, "row") : cell("td", content, columns[i][1]))))))));
}

const card = (title, ...children) =>
  make("section", {class: "card", "aria-label": title}, make("h2", {}, title), children);

function fact(term, value, className = null) {
  return value === null ? null : make("div", {class: className}, make("dt", {}, term), make("dd", {}, value));
}
