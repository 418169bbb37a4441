// The tree of scopes: rows that unfold, with stacked bars by category or by what of the machine was at work.
"use strict";

const SIBLINGS_SHOWN = 25; // further ones on demand

// Adds to each scope: below, the scopes directly within it, those with the most time first; depth; and its time with
// all that is below: threads' and devices' by category, scopes that say what they consist of split accordingly.
function growTree(scopes) {
  const roots = [];
  for (const s of scopes) {
    s.below = [];
    s.depth = s.parent < 0 ? 0 : scopes[s.parent].depth + 1;
    (s.parent < 0 ? roots : scopes[s.parent].below).push(s);
    s.threads = byCategory(s, s.thread_ns);
    s.devices = byCategory(s, s.device_ns);
  }
  for (let i = scopes.length - 1; i >= 0; i--) {
    const s = scopes[i];
    if (s.parent >= 0) {
      addTo(scopes[s.parent].threads, s.threads);
      addTo(scopes[s.parent].devices, s.devices);
    }
  }
  const weight = (s) => sum([...s.threads.values()]) + sum([...s.devices.values()]);
  for (const s of scopes)
    s.weight = weight(s);
  for (const list of [roots, ...scopes.map((s) => s.below)])
    list.sort((a, b) => b.weight - a.weight);
  return roots.filter((s) => s.weight > 0 || s.count > 0);
}

function byCategory(scope, ns) {
  const weights = Object.entries(scope.split);
  const all = sum(weights.map(([, w]) => w));
  if (all === 0) return new Map([[scope.category, ns]]);
  return new Map(weights.map(([category, w]) => [category, (ns * w) / all]));
}

function addTo(to, from) {
  for (const [category, ns] of from)
    to.set(category, (to.get(category) ?? 0) + ns);
}

// What the bars show: [button, of one scope, its full width]
function modesOf(run) {
  const gpu = run.total.device.intervals > 0;
  const clock = (s) => [["CPU only", s.cpu_only_ns], ["CPU and GPU", s.both_ns], ["GPU only", s.gpu_only_ns]];
  const modes = [
    ["threads' time by category", (s) => [...s.threads]],
    ["own time on the clock: CPU, both, GPU", clock],
  ];
  if (gpu) modes.push(["GPU time by category", (s) => [...s.devices]]);
  return modes.map(
    ([name, parts]) => ({name, parts, of: Math.max(1, ...run.scopes.map((s) => sum(parts(s).map(([, ns]) => ns))))}));
}

function splitText(scope) {
  const all = sum(Object.values(scope.split));
  if (all === 0) return "";
  return `consists of ${Object.entries(scope.split).map(([n, w]) => `${percent(w / all)} ${n}`).join(", ")}`;
}

class ScopeTree {
  constructor(run) {
    this.run = run;
    this.gpu = run.total.device.intervals > 0;
    this.roots = growTree(run.scopes);
    this.modes = modesOf(run);
    this.mode = this.modes[0];
    this.unfolded = new Set(
      run.scopes.filter((s) => s.depth < 1 || (s.depth < 3 && s.weight > 0.02 * sum(this.roots.map((r) => r.weight)))));
    this.all = new Set(); // parents whose further children are shown
    this.body = make("tbody");
    this.draw();
  }

  draw() { this.body.replaceChildren(...this.rowsOf(null, this.roots)); }

  rowsOf(parent, list) {
    const shown = this.all.has(parent) ? list : list.slice(0, SIBLINGS_SHOWN);
    const rows = shown.flatMap((s) => [this.row(s), ...(this.unfolded.has(s) ? this.rowsOf(s, s.below) : [])]);
    if (shown.length < list.length) {
      const more = make("button", {
        click: () => {
          this.all.add(parent);
          this.draw();
        }
      },
        `${whole(list.length - shown.length)} more`);
      const cell = make("td", {class: "scope", colspan: this.gpu ? 7 : 6}, more);
      cell.style.paddingLeft = `${(parent ? parent.depth + 1 : 0) * 1.1 + 1.8}rem`;
      rows.push(make("tr", {}, cell));
    }
    return rows;
  }

  row(s) {
    const isOpen = this.unfolded.has(s);
    const fold = s.below.length === 0 ? make("span", {class: "fold"})
                                      : make("button", {
                                          class: "fold",
                                          "aria-expanded": String(isOpen),
                                          "aria-label": `${isOpen ? "fold" : "unfold"} ${s.name}`,
                                          click: () => this.toggle(s)
                                        },
                                          isOpen ? "▾" : "▸");
    const scope = make("td",
      {class: "scope", title: [s.name, s.category, splitText(s)].filter((t) => t && t !== "none").join("\n")}, fold,
      " ", key(s.category), s.name, Object.keys(s.split).length > 0 ? make("span", {class: "faint"}, "  split") : null);
    scope.style.paddingLeft = `${s.depth * 1.1 + 0.5}rem`;
    const number = (text, title) => make("td", {class: "number", title}, text);
    const corrected =
      s.corrected_thread_ns ? `${duration(s.corrected_thread_ns.value)} without the profiler's own cost` : null;
    return make("tr", {}, scope,
      make("td", {}, bar(this.mode.parts(s), this.mode.of, {thin: true, text: duration, label: s.name})),
      number(percent(share(s.within_ns, this.run.total.thread_ns), 2)), number(duration(s.within_ns)),
      number(duration(s.thread_ns), corrected), number(whole(s.count)),
      this.gpu ? number(duration(s.device_ns)) : null);
  }

  toggle(s) {
    if (!this.unfolded.delete(s)) this.unfolded.add(s);
    this.draw();
    const name = `${this.unfolded.has(s) ? "fold" : "unfold"} ${s.name}`;
    [...this.body.querySelectorAll("button.fold")].find((b) => b.getAttribute("aria-label") === name)?.focus();
  }

  foldAll(isOpen) {
    this.unfolded = new Set(isOpen ? this.run.scopes : []);
    if (isOpen) this.all = new Set([null, ...this.run.scopes]);
    this.draw();
  }
}

function scopeSection(run) {
  const tree = new ScopeTree(run);
  const caption = make("div");
  const buttons = tree.modes.map(
    (mode) => make("button", {"aria-pressed": String(mode === tree.mode), click: () => choose(mode)}, mode.name));
  const showLegend = () => {
    const names = new Set(run.scopes.flatMap((s) => tree.mode.parts(s).filter(([, ns]) => ns > 0).map(([n]) => n)));
    caption.replaceChildren(legend(Object.keys(COLOURS).filter((n) => names.has(n))));
  };
  const choose = (mode) => {
    tree.mode = mode;
    buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(tree.modes[i] === mode)));
    tree.draw();
    showLegend();
  };
  showLegend();
  const headings = [
    ["scope"], [""], ["threads", true], ["with all in it", true], ["own time", true], ["count", true],
    ...(tree.gpu ? [["GPU time", true]] : [])
  ];
  const columns = make("colgroup", {}, make("col", {class: "scope"}), make("col", {class: "chart"}),
    headings.slice(2).map(() => make("col")));
  return card("Scopes",
    make("div", {class: "tools", role: "group", "aria-label": "scopes"}, buttons, make("span", {class: "space"}),
      make("button", {click: () => tree.foldAll(true)}, "unfold all"),
      make("button", {click: () => tree.foldAll(false)}, "fold all")),
    caption,
    make("div", {class: "scroll"},
      make("table", {class: "tree", "aria-label": "scopes"}, columns,
        make("thead", {}, make("tr", {}, headings.map(([text,
          isNumber]) => make("th", {scope: "col", class: isNumber ? "number" : null}, text)))),
        tree.body)),
    run.hidden_scopes > 0
      ? make("p", {class: "faint"},
          `${plural(run.hidden_scopes, "scope")} with the least time are not on this page; --json and --csv have them.`)
      : null);
}
