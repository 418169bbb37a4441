// The sections of one run, and the comparison of several: figures that are in the JSON, drawn.
"use strict";

// ---- head -----------------------------------------------------------------------------------------------------------

// What is missing in a worker's trace, in words.
function damageOf(worker) {
  const d = worker.damage;
  const counts = [
    [d.damaged_blocks, "damaged block"],
    [d.missing_blocks, "missing block"],
    [d.lost_events, "lost event"],
    [d.skipped_bytes, "byte that belongs to no block", "bytes that belong to no block"],
    [d.foreign_blocks, "block of another version or type", "blocks of another version or type"],
    [d.backward_clocks, "time its clock went back", "times its clock went back"],
    [worker.dropped_events, "event that found no room", "events that found no room"],
    [worker.unmatched_ends, "end without a begin", "ends without a begin"],
    [worker.too_deep_scopes, "scope nested too deep", "scopes nested too deep"],
    [worker.device.unknown_launches, "device interval without a launch", "device intervals without a launch"],
  ].filter(([count]) => count > 0);
  const words =
    counts.map(([count, one, many]) => (many ? `${whole(count)} ${count === 1 ? one : many}` : plural(count, one)));
  if (d.has_no_process) words.unshift("what describes the process is lost");
  if (d.is_cut) words.unshift("the trace was cut off: it is analysed up to its last event");
  return words;
}

function warnings(run) {
  const lines = run.workers.flatMap((w) => {
    const words = damageOf(w);
    return words.length > 0 ? [make("p", {class: "warning"}, `${w.trace}: ${words.join("; ")}.`)] : [];
  });
  if (run.hidden_workers > 0)
    lines.push(make("p", {class: "warning"}, `${plural(run.hidden_workers, "further worker")} not listed one by one.`));
  return lines;
}

function costText(run) {
  const total = run.total;
  if (run.is_too_dense_to_correct) {
    const {scope, script, call} = total.main_thread_recorded;
    return `Not corrected for the profiler's own cost: scopes are too dense, ${
      whole(scope + script + call)} on main threads.`;
  }
  if (run.correction === null)
    return "Not corrected for the profiler's own cost: profreport --calibrate measures it, once per machine.";
  const wall = run.correction.wall_ns;
  const cost = (ns) => percent(share(total.wall_ns - ns, total.wall_ns), 3);
  return `The profiler's own cost: ${cost(wall.value)} of the wall clock (95% interval ${cost(wall.high)} to ${
           cost(wall.low)}): ` +
    `${duration(total.wall_ns)} raw, ${duration(wall.value)} corrected. ${run.correction.not_corrected_for}`.trimEnd();
}

function configurationText(c) {
  const parts = [plural(c.devices, "device"), plural(c.workers, "worker")];
  if (c.envs > 0) parts.push(plural(c.envs, "env"));
  return parts.slice(c.devices > 0 ? 0 : 1).join(" × ");
}

function head(run) {
  const {total, configuration: c} = run;
  const phases = Object.entries(total.phase_ns).filter(([, ns]) => ns > 0);
  const longest = Math.max(0, ...run.workers.map((w) => w.wall_ns));
  const selected = run.phases.length === phases.length ? "" : ` in ${run.phases.join(", ")}`;
  return make("section", {class: "card", "aria-label": "The run"},
    make("p", {class: "faint name"}, `${run.tool || "a program"} on ${run.device || "a device that is not named"}`),
    make("dl", {class: "facts"}, fact(`wall clock${run.phases.length < 4 ? selected : ""}`, duration(longest)),
      fact("configuration", configurationText(c), "wide"), fact("threads", whole(total.threads)),
      fact("env steps per second of training", known(c.env_steps_per_s, rate)), fact("events", whole(total.events)),
      total.device.intervals > 0
        ? fact("GPU busy, of the wall clock", percent(share(total.device.busy_ns, sum(Object.values(total.phase_ns)))))
        : null),
    warnings(run), make("h3", {}, "Phases"),
    bar(phases, sum(phases.map(([, ns]) => ns)), {text: duration, label: "phases"}),
    make("p", {class: "faint"}, costText(run)));
}

// ---- the bound ------------------------------------------------------------------------------------------------------

function boundSection(run, meanings) {
  const names = Object.keys(run.total.bound_ns);
  const many = run.workers.length > 1;
  const means = names.map((n) => [n, run.bound_share[n].mean]);
  const slowest = run.workers.reduce((a, b) => (b.wall_ns > a.wall_ns ? b : a), run.workers[0]);
  const rows = names.map((n) => {
    const b = run.bound_share[n];
    const row = [make("span", {title: meanings.bound[n]}, key(n), n), percent(b.mean, 2)];
    if (many) row.push(`± ${percent(b.deviation, 2)}`, percent(share(slowest.bound_ns[n], slowest.wall_ns), 2));
    return [...row, duration(run.total.bound_ns[n]), make("span", {class: "faint meaning"}, meanings.bound[n])];
  });
  const columns = [
    ["class"], [many ? "mean share" : "share", true],
    ...(many ? [["deviation", true], [`slowest: rank ${slowest.rank}`, true]] : []),
    [many ? "time, all workers" : "time", true], [make("span", {class: "meaning"}, "what it says")]
  ];
  const workers = many
    ? make("details", {}, make("summary", {}, `Each of ${plural(run.workers.length, "worker")}`),
        run.workers.map((w) => barRow(`rank ${w.rank}, ${duration(w.wall_ns)}`, Object.entries(w.bound_ns), w.wall_ns,
                          {label: `bound of rank ${w.rank}`})))
    : null;
  return card("What the time is bound by",
    many ? barRow("mean of the workers", means, 1, {label: "bound"}) : bar(means, 1, {label: "bound"}),
    many ? barRow(`slowest: rank ${slowest.rank}`, Object.entries(slowest.bound_ns), slowest.wall_ns,
             {label: "bound of the slowest"})
         : null,
    workers, run.no_gpu_time_because ? make("p", {}, `No GPU time: ${run.no_gpu_time_because}.`) : gpuSplit(run),
    table("what the time is bound by", columns, rows));
}

// GPU-bound and overlapped time, by what the GPU does.
function gpuSplit(run) {
  const of = Math.max(1, run.total.bound_ns["GPU-bound"], run.total.bound_ns.overlapped);
  const row = (name, values) =>
    barRow(`${name}, by what the GPU does`, Object.entries(values), of, {text: duration, label: name});
  return [row("GPU-bound", run.total.gpu_bound_ns), row("overlapped", run.total.overlapped_ns)];
}

// ---- categories -----------------------------------------------------------------------------------------------------

function categorySection(run, meanings) {
  const t = run.total, gpu = t.device.intervals > 0;
  const names =
    Object.keys(t.category_thread_ns).filter((n) => t.category_thread_ns[n] > 0 || t.category_device_ns[n] > 0);
  const shownAs = (n) => (n === "none" ? "in no scope" : n);
  const clock = (n) => [["CPU only", t.category_cpu_only_ns[n] ?? 0], ["CPU and GPU", t.category_both_ns[n] ?? 0],
    ["GPU only", t.category_gpu_only_ns[n] ?? 0]];
  const widest = Math.max(1, ...names.map((n) => sum(clock(n).map(([, ns]) => ns))));
  const rows = names.map(
    (n) => [make("span", {title: meanings.category[n]}, key(n), shownAs(n)),
      percent(share(t.category_thread_ns[n], t.thread_ns), 2), duration(t.category_thread_ns[n]),
      ...(gpu ? [duration(t.category_device_ns[n])] : []),
      n === "none" ? "" : bar(clock(n), widest, {thin: true, text: duration, label: `${n} on the wall clock`}),
      ...clock(n).slice(0, gpu ? 3 : 1).map(([, ns]) => (n === "none" ? "" : duration(ns)))]);
  const columns = [
    ["category"], ["threads", true], ["threads' time", true], ...(gpu ? [["GPU time", true]] : []),
    ["on the wall clock"], ["CPU only", true], ...(gpu ? [["CPU and GPU", true], ["GPU only", true]] : [])
  ];
  const lost = t.lost_ns > 0 ? ` Lost: ${percent(share(t.lost_ns, t.thread_ns), 2)} of threads' time.` : "";
  return card("Categories",
    barRow("threads' time", names.map((n) => [shownAs(n), t.category_thread_ns[n]]), t.thread_ns,
      {label: "threads' time by category"}),
    gpu ? barRow("GPU time", names.map((n) => [shownAs(n), t.category_device_ns[n]]), t.device.sum_ns,
            {label: "GPU time by category"})
        : null,
    gpu ? legend(["CPU only", "CPU and GPU", "GPU only"]) : null, table("categories", columns, rows),
    make("p", {class: "faint"},
      `Outside leaf scopes: ${percent(share(t.outside_leaf_scopes_ns, t.thread_ns), 2)} of threads' time, ` +
        `${percent(share(t.outside_leaf_scopes_main_ns, t.main_ns), 2)} of the main thread's.${lost}`));
}

// What calls allocated meanwhile; null where they did not.
function memoryText(run) {
  const used = Object.entries(run.total.device.memory).filter(([, m]) => m.allocations > 0);
  if (used.length === 0) return null;
  const mebibytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const words = used.map(([kind, m]) => `${kind}, ${plural(m.allocations, "time")}, ${
                           mebibytes(m.allocated_bytes)}, at most ${mebibytes(m.peak_bytes)} held`);
  const several = run.workers.length + run.hidden_workers > 1 ? " (each worker at most, added up)" : "";
  return make("p", {}, `Memory that was allocated: ${words.join("; ")}${several}.`);
}

// ---- the GPU --------------------------------------------------------------------------------------------------------

function gpuSection(run, meanings) {
  const d = run.total.device;
  if (d.intervals === 0) return null;
  const wall = sum(Object.values(run.total.phase_ns));
  const works = ["kernels", "copies", "fills", "others"].map((n) => [n, d[`${n}_ns`]]);
  const gaps = Object.entries(d.gaps_ns);
  const gapSum = sum(gaps.map(([, ns]) => ns));
  return card("The GPU",
    make("dl", {class: "facts"}, fact("busy, of the wall clock", percent(share(d.busy_ns, wall), 2)),
      fact("busy, as a union", duration(d.busy_ns)), fact("added up", duration(d.sum_ns)),
      fact("device fill while kernels run", d.fill_of_ns > 0 ? percent(share(d.fill_ns, d.fill_of_ns)) : null),
      fact("intervals", whole(d.intervals)), fact("gaps", whole(d.gaps)),
      fact("waits of threads for it", d.waits > 0 ? `${whole(d.waits)}, ${duration(d.wait_ns)}` : null)),
    memoryText(run), make("h3", {}, "What it does"),
    bar(works, sum(works.map(([, ns]) => ns)), {text: duration, label: "what the GPU does"}),
    legend(works.filter(([, ns]) => ns > 0).map(([n]) => n)), make("h3", {}, "Why it waits"),
    gapSum > 0 ? bar(gaps, gapSum, {label: "gaps by cause"}) : null,
    table("gaps by cause",
      [["cause"], ["share", true], ["time", true], [make("span", {class: "meaning"}, "what it says")]],
      gaps.map(([n, ns]) => [make("span", {}, key(n), n), percent(share(ns, gapSum), 2), duration(ns),
                 make("span", {class: "faint meaning"}, meanings.gap[n])])));
}

// ---- transitions ----------------------------------------------------------------------------------------------------

function transitionSection(run) {
  const list = run.total.transitions;
  const order = Object.keys(run.total.category_thread_ns).filter((n) => list.some((t) => t.from === n || t.to === n));
  const most = Math.max(1, ...list.map((t) => t.count));
  const count = (from, to) => list.find((t) => t.from === from && t.to === to)?.count ?? 0;
  const cell = (from, to) => {
    const n = count(from, to);
    const heat = n > 0 ? 0.12 + 0.88 * (Math.log1p(n) / Math.log1p(most)) : 0;
    const td = make(
      "td", {class: heat > 0.6 ? "hot" : null, title: `${from} to ${to}: ${plural(n, "time")}`}, n > 0 ? whole(n) : "");
    td.style.background = n > 0 ? `rgba(var(--heat), ${heat.toFixed(3)})` : "";
    return td;
  };
  const named = (n) => (n === "none" ? "no scope" : n);
  return card("Transitions between categories",
    make("p", {class: "faint"}, "How often a thread went from a category (rows) to another (columns)."),
    order.length === 0 ? make("p", {}, "There are none.")
                       : make("div", {class: "scroll"},
                           make("table", {class: "heat", "aria-label": "transitions"},
                             make("thead", {},
                               make("tr", {}, make("th", {}, "from \\ to"),
                                 order.map((n) => make("th", {scope: "col", class: "number"}, named(n))))),
                             make("tbody", {},
                               order.map((from) => make("tr", {}, make("th", {scope: "row"}, key(from), named(from)),
                                           order.map((to) => cell(from, to))))))));
}

// ---- comparison -----------------------------------------------------------------------------------------------------

function comparison(data) {
  const {runs, comparison: compared, meanings} = data;
  const names = Object.keys(runs[0].total.bound_ns);
  const ideal = (r) => (r.efficiency > 0 ? r.speed_up / r.efficiency : 0);
  const most = Math.max(1, ...compared.runs.map((r) => Math.max(r.speed_up ?? 0, ideal(r))));
  const gain = (r) => {
    const bars = make("div", {class: "gain", title: `a perfect share of what there is: ${ideal(r).toFixed(2)} x`},
      make("i"), make("b"));
    bars.firstChild.style.width = `${(100 * (r.speed_up ?? 0)) / most}%`;
    bars.lastChild.style.left = `calc(${(100 * ideal(r)) / most}% - 1px)`;
    return make("div", {}, known(r.speed_up, (v) => `${v.toFixed(2)} x`), bars);
  };
  const shares = (run) => names.map((n) => [n, run.bound_share[n].mean]);
  const rows = runs.map((run, i) => {
    const c = run.configuration, r = compared.runs[i];
    return [
      make("span", {class: "name", title: run.run}, last(run.run)), known(c.devices, whole), whole(c.workers),
      known(c.threads, whole), known(c.envs, whole), `${c.wall_s.toPrecision(4)} s`, known(c.env_steps_per_s, rate),
      gain(r), known(r.efficiency, percent)
    ];
  });
  const columns = [
    ["run"], ["devices", true], ["workers", true], ["threads", true], ["envs", true], ["wall clock", true],
    ["env steps / s", true], ["speed-up", true], [`efficiency, per ${compared.efficiency_per}`, true]
  ];
  const change = (value, first, i) => {
    const points = 100 * (value - first);
    return make("span", {}, percent(value, 2),
      i > 0 ? make("span", {class: "faint"}, ` (${points >= 0 ? "+" : "−"}${Math.abs(points).toFixed(1)})`) : null);
  };
  const moved = names.map((n) => [make("span", {title: meanings.bound[n]}, key(n), n),
                            ...runs.map((run, i) => change(run.bound_share[n].mean, runs[0].bound_share[n].mean, i))]);
  const basis = compared.speed_up_of === "wall clock"
    ? "of the wall clock, which means something where the work is the same"
    : `of ${compared.speed_up_of} of training`;
  return card("Comparison",
    make("p", {class: "faint"},
      `Speed-up over the first run, ${basis}; the mark is what the growth in ${
        compared.efficiency_per}s alone would give.`),
    table("runs side by side", columns, rows), make("h3", {}, "How the bound moved"),
    runs.map((run) => barRow(last(run.run), shares(run), 1, {label: `bound of ${last(run.run)}`})),
    table("the bound of each run", [["class"], ...runs.map((run) => [last(run.run), true])], moved));
}
