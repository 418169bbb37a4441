// The timeline: lanes of threads and queues, zoomed by wheel, keys and buttons, dragged, read by hovering.
"use strict";

const AXIS = 24, ROW = 17, LANE_GAP = 5, TIES_SHOWN = 400;

// The lanes with absolute times, and where they lie.
function decodeLanes(data) {
  return data.lanes
    .map((lane) => ({
      ...lane,
      isFolded: false,
      rows: lane.rows.map((row) => {
        const n = row.gap.length, begin = new Float64Array(n), end = new Float64Array(n);
        for (let i = 0, at = 0; i < n; i++) {
          begin[i] = at + row.gap[i];
          at = end[i] = begin[i] + row.ns[i];
        }
        return {begin, end, name: row.name, count: row.count, busy: row.busy};
      }),
    }))
    .filter((lane) => lane.rows.length > 0 || lane.kind !== "phases");
}

// The first interval of a row that ends after `ns`.
function firstAfter(row, ns) {
  let low = 0, high = row.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.end[middle] > ns)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// A round step of about `ns`: 1, 2 or 5 of some power of ten.
function roundStep(ns) {
  const power = 10 ** Math.floor(Math.log10(ns));
  return power * [1, 2, 5, 10].find((f) => f * power >= ns);
}

class Timeline {
  constructor(run, data) {
    this.data = data;
    this.many = run.workers.length > 1;
    this.lanes = decodeLanes(data);
    this.full = {begin: data.begin_ns, end: Math.max(data.end_ns, data.begin_ns + 1)};
    this.view = {...this.full};
    this.selected = null; // {lane, row, index}
    this.canvas = make("canvas", {
      role: "img",
      "aria-label": `timeline of ${plural(this.lanes.length, "lane")}; the line below it says what is under the pointer`
    });
    this.labels = make("div", {class: "labels"});
    this.inner = make("div", {class: "inner"}, this.labels, this.canvas);
    this.body = make("div", {class: "body", tabindex: "0", role: "group", "aria-label": "timeline"}, this.inner);
    this.readout = make("p", {class: "readout", "aria-live": "polite"});
    this.element = make("div", {class: "timeline"}, this.body, this.readout);
    this.tip = make("div", {class: "tip", hidden: ""});
    document.body.append(this.tip);
    if (sum(this.lanes.map((l) => l.rows.length)) > 40) {
      for (const lane of this.lanes)
        lane.isFolded = lane.kind === "thread" && lane.name !== "main";
    }
    this.layOut();
    this.listen();
    this.say(null);
  }

  // ---- where things are ---------------------------------------------------------------------------------------------

  rowsShown(lane) { return lane.isFolded ? Math.min(1, lane.rows.length) : lane.rows.length; }

  layOut() {
    let top = AXIS;
    const labels = [];
    for (const lane of this.lanes) {
      lane.top = top;
      lane.height = Math.max(1, this.rowsShown(lane)) * ROW + LANE_GAP;
      top += lane.height;
      const name = this.many ? `${lane.worker}: ${lane.name}` : lane.name;
      const fold = lane.rows.length < 2 ? null
                                        : make("button", {
                                            class: "fold",
                                            "aria-expanded": String(!lane.isFolded),
                                            "aria-label": `fold ${name}`,
                                            click: () => {
                                              lane.isFolded = !lane.isFolded;
                                              this.layOut();
                                              this.draw();
                                            }
                                          },
                                            lane.isFolded ? "▸" : "▾");
      const label = make("div",
        {class: `lane ${lane.kind}`, title: `${lane.kind === "queue" ? "device queue" : lane.kind} ${name}`}, fold,
        make("span", {}, name));
      label.style.top = `${lane.top}px`;
      label.style.height = `${lane.height}px`;
      labels.push(label);
    }
    this.labels.replaceChildren(...labels);
    this.height = top;
    this.inner.style.height = `${top}px`;
  }

  x(ns) { return ((ns - this.view.begin) / (this.view.end - this.view.begin)) * this.width; }
  time(x) { return this.view.begin + (x / this.width) * (this.view.end - this.view.begin); }

  // What is at a place of the canvas: {lane, row, index}; null: nothing.
  at(x, y) {
    const inner = y + this.body.scrollTop;
    if (y < AXIS) return null;
    const lane = this.lanes.find((l) => inner >= l.top && inner < l.top + l.height);
    if (!lane) return null;
    const row = Math.floor((inner - lane.top - LANE_GAP / 2) / ROW);
    if (row < 0 || row >= this.rowsShown(lane)) return null;
    const r = lane.rows[row], ns = this.time(x), slack = (this.view.end - this.view.begin) / this.width;
    const index = firstAfter(r, ns - slack);
    return index < r.end.length && r.begin[index] <= ns + slack ? {lane, row, index} : null;
  }

  describe({lane, row, index}) {
    const r = lane.rows[row], [name, category] = this.data.names[r.name[index]];
    const ns = r.end[index] - r.begin[index], count = r.count ? r.count[index] : 1;
    const what = count > 1
      ? `${whole(count)} intervals merged, busy ${duration(r.busy[index])} of ${duration(ns)}; the longest: ${name}`
      : `${name}: ${duration(ns)}`;
    const kind = category === "none" ? "" : `, ${category}`;
    return `${what}${kind}\n${this.many ? `worker ${lane.worker}, ` : ""}${
      lane.kind === "queue" ? "device queue " : ""}${lane.name}, at ${duration(r.begin[index])}`;
  }

  // ---- drawing ------------------------------------------------------------------------------------------------------

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.palette = new Map();
    for (const name of new Set([...this.data.names.map(([n, c]) => (c === "none" ? n : c)), "none"]))
      this.palette.set(name, style.getPropertyValue(COLOURS[name] ?? "--none"));
    for (const name of ["--ink", "--faint", "--line", "--card", "--on-colour", "--on-pale", "--accent", "--soft"])
      this.palette.set(name, style.getPropertyValue(name));
  }

  drawSoon() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  draw() {
    this.width = this.inner.clientWidth - this.labels.offsetWidth;
    if (this.width <= 0) return; // within a fold
    this.shown = Math.min(this.height, this.body.clientHeight);
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.shown * scale);
    this.canvas.style.height = `${this.shown}px`;
    this.readColours();
    const g = (this.g = this.canvas.getContext("2d"));
    g.scale(scale, scale);
    g.font = "11.5px system-ui, sans-serif";
    g.textBaseline = "middle";
    g.fillStyle = this.palette.get("--card");
    g.fillRect(0, 0, this.width, this.shown);
    const scroll = this.body.scrollTop;
    for (const lane of this.lanes) {
      if (lane.top + lane.height < scroll || lane.top > scroll + this.shown) continue;
      g.fillStyle = this.palette.get("--line");
      g.fillRect(0, lane.top - scroll, this.width, 1);
      for (let r = 0; r < this.rowsShown(lane); r++)
        this.drawRow(lane.rows[r], lane.top - scroll + LANE_GAP / 2 + r * ROW);
    }
    this.drawTies(scroll);
    this.drawSelected(scroll);
    this.drawAxis();
  }

  // In whole pixels; intervals that begin within the same one are drawn as one, like merged ones.
  drawRow(row, y) {
    const {view, data} = this, pixel = (view.end - view.begin) / this.width;
    for (let i = firstAfter(row, view.begin); i < row.begin.length && row.begin[i] < view.end;) {
      const begin = row.begin[i], left = Math.max(0, Math.round(this.x(begin))), until = this.time(left + 0.5);
      let end = begin, busy = 0, longest = i;
      do {
        end = row.end[i];
        busy += row.busy ? row.busy[i] : end - row.begin[i];
        if (end - row.begin[i] > row.end[longest] - row.begin[longest]) longest = i;
        i++;
      } while (i < row.begin.length && row.begin[i] < until);
      const right = Math.max(left + 1, Math.min(this.width, Math.round(this.x(end))));
      const fill = Math.min(1, busy / Math.max(pixel, end - begin));
      this.drawInterval(data.names[row.name[longest]], left, right - left, y, fill);
    }
  }

  drawInterval([name, category], left, width, y, fill) {
    const {g, palette} = this, of = category === "none" ? name : category;
    g.globalAlpha = 0.3 + 0.7 * fill;
    g.fillStyle = palette.get(of) ?? palette.get("none");
    g.fillRect(left, y, width > 4 ? width - 1 : width, ROW - 1);
    g.globalAlpha = 1;
    if (width < 34) return;
    g.fillStyle = palette.get(PALE.has(of) ? "--on-pale" : "--on-colour");
    const letters = Math.floor((width - 8) / 6);
    g.fillText(name.length > letters ? `${name.slice(0, letters - 1)}…` : name, left + 4, y + ROW / 2, width - 6);
  }

  // Launches and the first interval that each made; all where there are few, else the selected interval's.
  drawTies(scroll) {
    const {g, view, data} = this;
    const chosen = this.hovered ?? this.selected;
    const isOf = (t) => chosen && data.lanes[t[1]] && this.laneOf(t[1]) === chosen.lane &&
      t[3] === chosen.lane.rows[chosen.row].begin[chosen.index];
    const ties = data.launches.filter((t) => t[3] >= view.begin && t[2] <= view.end);
    for (const t of ties.length <= TIES_SHOWN ? ties : ties.filter(isOf)) {
      const from = this.laneOf(t[0]), to = this.laneOf(t[1]);
      const y0 = from.top + from.height - LANE_GAP - scroll, y1 = to.top + LANE_GAP / 2 - scroll, x0 = this.x(t[2]),
            x1 = this.x(t[3]);
      g.strokeStyle = this.palette.get(isOf(t) ? "--accent" : "--faint");
      g.lineWidth = isOf(t) ? 2 : 0.7;
      g.globalAlpha = isOf(t) ? 1 : 0.6;
      g.beginPath();
      g.moveTo(x0, y0);
      g.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
      g.stroke();
      g.globalAlpha = 1;
    }
  }

  laneOf(number) { return (this.byNumber ??= this.numberLanes())[number]; }

  // The numbers count lanes that are empty, too.
  numberLanes() {
    const left = [...this.lanes];
    return this.data.lanes.map(
      (lane) => (left[0] && left[0].name === lane.name && left[0].worker === lane.worker && left[0].kind === lane.kind
          ? left.shift()
          : null));
  }

  drawSelected(scroll) {
    if (!this.selected) return;
    const {lane, row, index} = this.selected, r = lane.rows[row], {g} = this;
    g.strokeStyle = this.palette.get("--ink");
    g.lineWidth = 2;
    g.strokeRect(this.x(r.begin[index]) - 1, lane.top - scroll + LANE_GAP / 2 + row * ROW - 1,
      Math.max(3, this.x(r.end[index]) - this.x(r.begin[index]) + 1), ROW + 1);
  }

  drawAxis() {
    const {g, view, palette} = this;
    g.fillStyle = palette.get("--soft");
    g.fillRect(0, 0, this.width, AXIS);
    g.fillStyle = palette.get("--faint");
    const step = roundStep((view.end - view.begin) / Math.max(2, this.width / 130));
    for (let ns = Math.ceil(view.begin / step) * step; ns < view.end; ns += step) {
      const x = this.x(ns);
      g.fillRect(x, AXIS - 6, 1, 6);
      g.fillText(ns === 0 ? "0" : this.axisText(ns, step), x + 4, AXIS / 2 - 1);
    }
  }

  // With as many digits as the step needs.
  axisText(ns, step) {
    const [size, unit] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : step >= 100 ? [1e3, "µs"] : [1, "ns"];
    return `${(ns / size).toLocaleString("en-US", {
      maximumFractionDigits: Math.max(0, Math.ceil(-Math.log10(step / size)))
    })} ${unit}`;
  }

  // ---- moving -------------------------------------------------------------------------------------------------------

  show(begin, end) {
    const full = this.full.end - this.full.begin, length = Math.min(full, Math.max(end - begin, Math.min(full, 100)));
    const from = Math.min(Math.max(begin, this.full.begin), this.full.end - length);
    this.view = {begin: from, end: from + length};
    this.say(this.selected);
    this.drawSoon();
  }

  zoom(factor, at = (this.view.begin + this.view.end) / 2) {
    this.show(at - (at - this.view.begin) * factor, at + (this.view.end - at) * factor);
  }

  pan(part) {
    const by = part * (this.view.end - this.view.begin);
    this.show(this.view.begin + by, this.view.end + by);
  }

  fit() { this.show(this.full.begin, this.full.end); }

  select(place) {
    this.selected = place;
    this.say(place);
    this.drawSoon();
  }

  say(place) {
    const range = `Shown: ${duration(this.view.begin)} to ${duration(this.view.end)} (${
      duration(this.view.end - this.view.begin)}).`;
    this.readout.replaceChildren(place ? this.describe(place).replace("\n", "; ") : "Nothing is selected.", make("br"),
      make("span", {class: "faint"}, range));
  }

  // Down and up through all rows, and along one.
  step(rows, intervals) {
    const places =
      this.lanes.flatMap((lane) => lane.rows.slice(0, this.rowsShown(lane)).map((r, row) => ({lane, row})));
    if (places.length === 0) return;
    const s = this.selected;
    const from = s ? places.findIndex((p) => p.lane === s.lane && p.row === s.row) : -rows;
    const to = places[Math.min(places.length - 1, Math.max(0, from + rows))], r = to.lane.rows[to.row];
    const middle = s ? (s.lane.rows[s.row].begin[s.index] + s.lane.rows[s.row].end[s.index]) / 2
                     : (this.view.begin + this.view.end) / 2;
    const index = s && rows === 0 ? s.index + intervals : firstAfter(r, middle);
    const place = {...to, index: Math.min(r.end.length - 1, Math.max(0, index))};
    if (r.begin[place.index] > this.view.end || r.end[place.index] < this.view.begin) {
      const half = (this.view.end - this.view.begin) / 2;
      this.show(r.begin[place.index] - half, r.begin[place.index] + half);
    }
    this.select(place);
  }

  zoomTo(place) {
    const r = place.lane.rows[place.row], length = r.end[place.index] - r.begin[place.index];
    this.show(r.begin[place.index] - 0.1 * length, r.end[place.index] + 0.1 * length);
  }

  // ---- events -------------------------------------------------------------------------------------------------------

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  listen() {
    new ResizeObserver(() => this.drawSoon()).observe(this.body);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawSoon());
    this.body.addEventListener("scroll", () => this.drawSoon());
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
    this.canvas.addEventListener("dblclick", (event) => {
      const place = this.at(...this.place(event));
      if (place) this.zoomTo(place);
    });
  }

  // Without the focus or a modifier the page scrolls, as everywhere.
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey && document.activeElement !== this.body) return;
    event.preventDefault();
    const along = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (Math.abs(along) > Math.abs(event.shiftKey ? 0 : event.deltaY))
      this.pan(along / 800);
    else
      this.zoom(Math.exp(Math.max(-80, Math.min(80, event.deltaY)) / 250), this.time(this.place(event)[0]));
  }

  press(event) {
    if (event.button !== 0) return;
    this.body.focus({preventScroll: true});
    const [x, y] = this.place(event);
    this.drag = {x, y, view: {...this.view}, moved: false};
    if (event.isTrusted) this.canvas.setPointerCapture(event.pointerId);
    this.hover(null);
  }

  move(event) {
    const [x, y] = this.place(event);
    if (!this.drag) return this.hover(event);
    if (Math.abs(x - this.drag.x) > 3) this.drag.moved = true;
    if (!this.drag.moved) return undefined;
    const by = ((this.drag.x - x) / this.width) * (this.drag.view.end - this.drag.view.begin);
    this.show(this.drag.view.begin + by, this.drag.view.end + by);
    if (event.pointerType === "mouse") this.body.scrollTop += this.drag.y - y;
    this.drag.y = y;
    return undefined;
  }

  release(event) {
    if (this.drag && !this.drag.moved) this.select(this.at(...this.place(event)));
    this.drag = null;
  }

  hover(event) {
    const place = event ? this.at(...this.place(event)) : null;
    if (place?.index !== this.hovered?.index || place?.lane !== this.hovered?.lane || place?.row !== this.hovered?.row)
      this.drawSoon();
    this.hovered = place;
    this.tip.hidden = !place;
    if (!place) return;
    this.tip.textContent = this.describe(place);
    const box = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - box.width - 8))}px`;
    this.tip.style.top = `${
      event.clientY + 18 + box.height > window.innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
  }

  key(event) {
    if (event.target !== this.body || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
      a: () => this.pan(-0.2),
      d: () => this.pan(0.2),
      "+": () => this.zoom(0.6),
      "=": () => this.zoom(0.6),
      w: () => this.zoom(0.6),
      "-": () => this.zoom(1 / 0.6),
      s: () => this.zoom(1 / 0.6),
      Home: () => this.fit(),
      0: () => this.fit(),
      ArrowUp: () => this.step(-1, 0),
      ArrowDown: () => this.step(1, 0),
      n: () => this.step(0, 1),
      p: () => this.step(0, -1),
      Enter: () => this.selected && this.zoomTo(this.selected),
      Escape: () => this.select(null),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }
}

// What was left out or merged, in words.
function timelineNotes(data) {
  const least = duration(data.merged_below_ns);
  const merged = `${whole(data.intervals)} intervals in ${whole(data.drawn)}: those shorter than ${least} are merged ` +
    "with their neighbours where together they are no longer than that. A merged one has the colour of its longest part, " +
    "and is paler the less of it is busy.";
  const notes = [data.merged_below_ns > 0 ? merged : `All ${plural(data.intervals, "interval")}, as they were.`];
  if (data.hidden_lanes > 0) notes.push(`${whole(data.hidden_lanes)} further threads or queues found no room.`);
  const part = data.launches_one_of > 1 ? `One launch of ${whole(data.launches_one_of)} is` : "Launches are";
  if (data.launches.length > 0) notes.push(`${part} tied to what was started.`);
  return notes.join(" ");
}

function timelineSection(run, data) {
  if (!data) return null;
  if (data.intervals === 0)
    return card("Timeline", make("p", {}, "There is nothing to draw: no scope and no interval."));
  const timeline = new Timeline(run, data);
  const button = (text, label, click) => make("button", {"aria-label": label, title: label, click}, text);
  const categories = new Set(data.names.map(([, c]) => c));
  return card("Timeline",
    make("div", {class: "tools", role: "group", "aria-label": "timeline"},
      button("+", "zoom in", () => timeline.zoom(0.5)), button("−", "zoom out", () => timeline.zoom(2)),
      button("←", "earlier", () => timeline.pan(-0.4)), button("→", "later", () => timeline.pan(0.4)),
      button("whole run", "show the whole run", () => timeline.fit()),
      make("span", {class: "faint"},
        "Drag to move. Wheel to zoom, after a click or with Ctrl; Shift + wheel moves. Keys: + − ← → 0; ↑ ↓ n p select, Enter zooms to it.")),
    legend(Object.keys(COLOURS).filter((n) => categories.has(n) && n !== "none")), timeline.element,
    make("p", {class: "faint notes"}, timelineNotes(data)));
}
