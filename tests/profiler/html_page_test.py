"""profreport --html: the data in the page, and what Chromium makes of it.

Set by ctest: PROFREPORT, MAKE_TRACE (tests/profiler/make_trace.cc). tests/html_harness.py has the rest.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cli_harness import TEMPORARY, program  # noqa: E402
from html_harness import CHROMIUM, Dom, page_data, render  # noqa: E402
from trace_reader import Trace  # noqa: E402

MAKE_TRACE = os.path.abspath(os.environ.get("MAKE_TRACE", "build/bin/tests/profiler_make_trace"))
LONG_EVENTS = 600_000
PAGE_BYTES_MAX = 8_000_000


class PageTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="shoal-page-", dir=TEMPORARY))
        # The user's own measurement of the profiler's cost must not matter.
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def trace(self, kind, *args, name=None):
        path = self.folder / f"{name or kind}.trace"
        subprocess.run([MAKE_TRACE, kind, path, *map(str, args)], check=True)
        return path

    def report(self, *args):
        done = subprocess.run([program("profreport"), *map(str, args)], capture_output=True, text=True, check=False, timeout=300,
                              env=self.environment)  # fmt: skip
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout

    def page(self, *traces):
        path = self.folder / "page.html"
        self.report(*traces, "--html", path)
        return path


def intervals(row):
    """(begin, end, name, count, busy) of a timeline's row."""
    end = 0
    for i, (gap, ns, name) in enumerate(zip(row["gap"], row["ns"], row["name"])):
        begin = end + gap
        end = begin + ns
        yield begin, end, name, row.get("count", {i: 1})[i] if "count" in row else 1, row["busy"][i] if "busy" in row else ns


def scopes_of(trace):
    """stream's name -> depth -> [(begin, end, name)] from the trace itself."""
    start, found = trace.process["start_ns"], defaultdict(lambda: defaultdict(list))
    for stream, events in trace.events.items():
        name, open_scopes = trace.streams[stream]["name"], []
        for time, kind, what in events:
            if kind in ("BEGIN", "JOIN"):
                open_scopes.append((time - start, trace.names[what["name"]]["name"]))
            elif kind == "END":
                begin, scope = open_scopes.pop()
                found[name][len(open_scopes)].append((begin, time - start, scope))
    return found


class Data(PageTest):
    """What needs no browser."""

    def check_page(self, path, runs):
        text = path.read_text(encoding="utf-8")
        dom = Dom(text)
        data = page_data(path)
        self.assertEqual(["profile"] + [f"timeline-{i}" for i in range(runs)], list(data))
        self.assertEqual(5, len(dom.find("script")) - len(data))
        self.assertEqual(runs, len(data["profile"]["runs"]))
        for tag, attributes, _ in dom.elements:  # nothing from elsewhere
            self.assertFalse({"src", "href"} & set(attributes), tag)
        self.assertNotRegex(text, r"https?://|@import|\burl\(|innerHTML|\beval\(")
        self.assertIn("default-src 'none'", text)
        return data

    def test_figures_are_those_of_json(self):
        traces = [self.trace("gpu", 2000), self.trace("gpu", 4000, name="other")]
        data = self.check_page(self.page(*traces), 2)["profile"]
        whole = json.loads(self.report(*traces, "--json"))
        for run in whole["runs"]:
            for scope in run["scopes"]:
                del scope["path"]
            for worker in run["workers"]:
                del worker["external_ids"], worker["launches_beyond_ids"]
        self.assertEqual(whole, data)

    def test_configuration_and_speed_up(self):
        """100 and 200 rounds of 4,096 env steps each, one in 20 us."""
        traces = [self.trace("gpu", 2000), self.trace("gpu", 4000, name="other")]
        data = json.loads(self.report(*traces, "--json"))
        first, second = (run["configuration"] for run in data["runs"])
        self.assertEqual((1, 1, 2, 4096, 409600), tuple(first[k] for k in ["devices", "workers", "threads", "envs", "env_steps"]))
        for c, run in [(first, data["runs"][0]), (second, data["runs"][1])]:
            phases = run["total"]["phase_ns"]
            self.assertAlmostEqual(c["env_steps"] / (phases["warm-up"] + phases["train"]) * 1e9, c["env_steps_per_s"], places=3)
        compared = data["comparison"]
        self.assertEqual(("env steps per second", "device"), (compared["speed_up_of"], compared["efficiency_per"]))
        self.assertEqual(1, compared["runs"][0]["speed_up"])
        self.assertAlmostEqual(second["env_steps_per_s"] / first["env_steps_per_s"], compared["runs"][1]["speed_up"], places=12)
        text = self.report(*traces)
        tail = text[text.index("comparison") :]
        self.assertRegex(tail, r"(?m)^devices +1 +1$")
        self.assertRegex(tail, r"(?m)^envs +4096 +4096$")
        self.assertRegex(tail, r"(?m)^speed-up, env steps per second +1\.00x +\d\.\d\dx$")
        self.assertRegex(tail, r"(?m)^efficiency, per device +100\.0% +\d+\.\d%$")
        # Where one of them does not say what it did, the wall clock counts, per worker.
        data = json.loads(self.report(traces[0], self.trace("cut"), "--json"))
        self.assertEqual("wall clock", data["comparison"]["speed_up_of"])
        self.assertIsNone(data["runs"][1]["configuration"]["env_steps_per_s"])

    def test_timeline_has_what_the_trace_has(self):
        path = self.trace("gpu", 2000)
        timeline = self.check_page(self.page(path), 1)["timeline-0"]
        trace = Trace(path.read_bytes())
        self.assertEqual(0, timeline["merged_below_ns"])
        names = timeline["names"]
        lanes = {lane["name"]: lane for lane in timeline["lanes"]}
        for stream, rows in scopes_of(trace).items():
            for depth, expected in rows.items():
                found = [(b, e, names[n][0]) for b, e, n, _, _ in intervals(lanes[stream]["rows"][depth])]
                self.assertEqual(expected, found, (stream, depth))
        start = trace.process["start_ns"]
        for stream in (2, 3):
            expected = sorted((t - start, t - start + w["duration"], trace.names[w["name"]]["name"])
                              for t, kind, w in trace.events[stream] if kind == "INTERVAL")  # fmt: skip
            rows = lanes[trace.streams[stream]["name"]]["rows"]
            self.assertEqual(expected, sorted((b, e, names[n][0]) for row in rows for b, e, n, _, _ in intervals(row)))
            for row in rows:  # no two at a time in one row
                spans = list(intervals(row))
                self.assertTrue(all(a[1] <= b[0] for a, b in zip(spans, spans[1:])))
        launched = {w["correlation"]: t - start for t, kind, w in trace.events[0] if kind == "LAUNCH"}
        self.assertEqual(sorted(launched.values()), sorted(t[2] for t in timeline["launches"]))
        self.assertEqual({"main"}, {timeline["lanes"][t[0]]["name"] for t in timeline["launches"]})
        phases = [(names[n][0]) for _, _, n, _, _ in intervals(lanes["phases"]["rows"][0])]
        self.assertEqual(["warm-up", "train"], phases)
        self.assertIn(["cudaLaunchKernel", "simulation"], names)  # of the scope around it

    def test_long_trace_is_merged_and_nothing_gets_lost(self):
        path = self.trace("gpu", LONG_EVENTS)
        page = self.page(path)
        self.assertLess(page.stat().st_size, PAGE_BYTES_MAX)
        timeline = self.check_page(page, 1)["timeline-0"]
        pixel = timeline["merged_below_ns"]
        self.assertGreater(pixel, 0)
        self.assertLess(pixel, (timeline["end_ns"] - timeline["begin_ns"]) / 1000)
        self.assertLessEqual(timeline["drawn"], 2**17)
        self.assertGreater(timeline["drawn"], 2**14)
        seen = drawn = 0
        rounds = LONG_EVENTS // 20
        expected = {"generation": (rounds, 19500 * rounds), "update": (rounds, sum(5000 + 29 * (i % 40) for i in range(rounds)))}
        for lane in timeline["lanes"]:
            for depth, row in enumerate(lane["rows"]):
                spans = list(intervals(row))
                drawn += len(spans)
                seen += sum(s[3] for s in spans)
                for begin, end, _, count, busy in spans:
                    self.assertLessEqual(busy, end - begin)
                    self.assertTrue(count == 1 or end - begin <= pixel)
                if lane["name"] == "main" and depth == 0:
                    self.assertEqual(expected["generation"], (sum(s[3] for s in spans), sum(s[4] for s in spans)))
                if lane["name"] == "main" and depth == 1:
                    self.assertEqual(expected["update"][1] + 11900 * rounds, sum(s[4] for s in spans))
        self.assertEqual((timeline["intervals"], timeline["drawn"]), (seen, drawn))
        self.assertGreater(timeline["launches_one_of"], 1)
        self.assertTrue(0 < len(timeline["launches"]) <= 8192)

    def test_hostile_names(self):
        path = self.trace("hostile")
        page = self.page(path)
        data = self.check_page(page, 1)
        names = {s["name"] for s in data["profile"]["runs"][0]["scopes"]}
        self.assertLessEqual({"</script><script>throw 3</script>", "<!--<script>", '"quoted" and \\ and /slash/', "\u2028\u2029", "__proto__"}, names)
        self.assertEqual("</script><script>throw 1</script>", data["profile"]["runs"][0]["tool"])
        text = page.read_text(encoding="utf-8")
        for part in ["throw 1</script", "\u2028", "<img"]:
            self.assertNotIn(part, text)

    def test_nothing_to_show(self):
        data = self.check_page(self.page(self.trace("empty")), 1)
        self.assertEqual((0, 0), (data["profile"]["runs"][0]["total"]["wall_ns"], data["timeline-0"]["intervals"]))
        data = self.check_page(self.page(self.trace("cut")), 1)
        self.assertTrue(data["profile"]["runs"][0]["workers"][0]["damage"]["is_cut"])
        self.assertEqual([(10, 90)], [i[:2] for i in intervals(data["timeline-0"]["lanes"][1]["rows"][0])])

    def test_damage_anywhere(self):
        """A trace with a hole: the page has what is left, and where something is lost between two blocks of a thread."""
        whole = self.trace("gpu", 100000).read_bytes()
        losses = 0
        for cut in range(1, 10):
            at = cut * len(whole) // 10
            path = self.folder / "hole.trace"
            path.write_bytes(whole[:at] + bytes(300) + whole[at + 300 :])
            data = self.check_page(self.page(path), 1)
            damage = data["profile"]["runs"][0]["workers"][0]["damage"]
            self.assertGreater(damage["lost_events"] + damage["skipped_bytes"], 0)
            losses += ["(lost)", "none"] in data["timeline-0"]["names"]
        self.assertGreater(losses, 2)

    def test_refused(self):
        path = self.trace("empty")
        for out in ["/dev/full", self.folder / "no" / "page.html"]:
            done = subprocess.run([program("profreport"), path, "--html", out], capture_output=True, text=True, check=False,
                                  env=self.environment)  # fmt: skip
            self.assertEqual((1, True), (done.returncode, done.stderr.startswith(f"profreport: cannot write {out}")), done.stderr)


# What a user does, and what became of it: into the page, as JSON.
PROBE = """
const press = (key) => document.querySelector(".timeline .body").dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
const readout = () => document.querySelector(".timeline .readout").textContent;
function colours() {
  const canvas = document.querySelector(".timeline canvas");
  const pixels = canvas.getContext("2d").getImageData(0, 30, canvas.width, canvas.height - 30).data;
  const found = new Set();
  for (let i = 0; i < pixels.length; i += 4) found.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
  return found.size;
}
function hover(at) { // on the main thread's row of that depth, in the middle
  const canvas = document.querySelector(".timeline canvas"), box = canvas.getBoundingClientRect();
  const place = {clientX: box.left + box.width / 2, clientY: box.top + 24 + 22 + 10 + 17 * at};
  canvas.dispatchEvent(new PointerEvent("pointermove", place));
  return [canvas, place, document.querySelector(".tip").hidden ? null : document.querySelector(".tip").textContent];
}
setTimeout(() => {
  if (!document.querySelector(".timeline")) return;
  const found = {colours: colours(), whole: readout(), deep: hover(2)[2]};
  const [canvas, at, tip] = hover(0);
  found.tip = tip;
  canvas.dispatchEvent(new WheelEvent("wheel", {...at, deltaY: -80, ctrlKey: true, cancelable: true}));
  found.wheel = readout();
  press("0"); press("+"); found.zoomed = readout();
  press("ArrowRight"); found.panned = readout();
  press("0"); found.fitted = readout();
  press("ArrowDown"); press("ArrowDown"); found.selected = readout();
  press("n"); found.next = readout();
  document.querySelectorAll(".tools button").forEach((b) => { if (b.textContent === "unfold all") b.click(); });
  tell(found);
}, 500);
"""


def duration(ns):
    s = abs(ns) * 1e-9
    for least, scale, unit, digits in [(100, 1e-9, "s", 1), (0.1, 1e-9, "s", 3), (1e-4, 1e-6, "ms", 3), (1e-6, 1e-3, "µs", 2)]:
        if s >= least:
            return f"{ns * scale:.{digits}f} {unit}"
    return f"{ns} ns" if ns else "0"


@unittest.skipUnless(CHROMIUM, "there is no chromium")
class Browser(PageTest):
    def render(self, page):
        return render(self, page, PROBE, self.folder)

    def check_scopes(self, dom, run):
        rows = dom.rows("scopes")[1:]
        shown = sorted((s["name"], f"{s['count']:,}", duration(s["thread_ns"]), duration(s["within_ns"])) for s in run["scopes"]
                       if s["within_ns"] + s["device_ns"] + s["count"] > 0)  # fmt: skip
        found = sorted((re.sub(r"^[▾▸]? ", "", r[0]).removesuffix("  split"), r[5], r[4], r[3]) for r in rows)
        self.assertEqual(shown, found)

    def test_one_run(self):
        page = self.page(self.trace("gpu", 3000))
        data = page_data(page)
        run = data["profile"]["runs"][0]
        dom, probe = self.render(page)
        rows = {r[0]: r for r in dom.rows("what the time is bound by")[1:]}
        self.assertEqual(list(run["total"]["bound_ns"]), list(rows))
        for name, ns in run["total"]["bound_ns"].items():
            self.assertEqual([f"{100 * run['bound_share'][name]['mean']:.2f}%", duration(ns)], rows[name][1:3])
        self.check_scopes(dom, run)
        rows = {r[0]: r for r in dom.rows("categories")[1:]}
        for name, ns in run["total"]["category_thread_ns"].items():
            if ns > 0:
                self.assertEqual(duration(ns), rows["in no scope" if name == "none" else name][2])
        rows = {r[0]: r for r in dom.rows("gaps by cause")[1:]}
        self.assertEqual({n: duration(ns) for n, ns in run["total"]["device"]["gaps_ns"].items()}, {n: r[2] for n, r in rows.items()})
        heat = dom.rows("transitions")
        for t in run["total"]["transitions"]:
            names = ["no scope" if n == "none" else n for n in (t["from"], t["to"])]
            cells = next(r for r in heat if r[0] == names[0])
            self.assertEqual(f"{t['count']:,}", cells[heat[0].index(names[1])])
        lanes = [e[1]["title"] for e in dom.elements if "lane" in e[1].get("class", "").split()]
        self.assertEqual(["phases phases", "thread main", "thread worker 1", "device queue GPU 0, stream 7", "device queue GPU 0, stream 13"], lanes)
        self.check_probe(probe, data["timeline-0"])

    def check_probe(self, probe, timeline):
        end = timeline["end_ns"]
        self.assertGreater(probe["colours"], 5)
        self.assertIn(f"Shown: 0 to {duration(end)} ({duration(end)}).", probe["whole"])
        self.assertEqual(probe["whole"], probe["fitted"])
        self.assertEqual(4, len({probe[k] for k in ["whole", "wheel", "zoomed", "panned"]}))
        self.assertIn(f"({duration(0.6 * end)})", probe["zoomed"])
        self.assertIn(f"({duration(0.6 * end)})", probe["panned"])
        self.assertRegex(probe["tip"], r"^generation: 19\.50 µs, host\nmain, at ")
        self.assertRegex(probe["selected"], "^generation: 19.50 µs, host; main, at ")
        self.assertNotEqual(probe["selected"], probe["next"])
        self.assertRegex(probe["next"], "^generation: 19.50 µs, host; main, at ")

    def test_several_runs(self):
        traces = [self.trace("gpu", 2000), self.trace("gpu", 4000, name="other"), self.trace("cut")]
        page = self.page(*traces)
        data = page_data(page)["profile"]
        dom, _ = self.render(page)
        rows = dom.rows("runs side by side")[1:]
        self.assertEqual([t.name for t in traces], [r[0] for r in rows])
        self.assertEqual(["1", "1", "2", "4,096"], rows[0][1:5])
        for row, c in zip(rows, data["comparison"]["runs"]):
            self.assertTrue(row[7].startswith(f"{c['speed_up']:.2f} x"), row)
            self.assertEqual(f"{100 * c['efficiency']:.1f}%", row[8])
        rows = {r[0]: r for r in dom.rows("the bound of each run")[1:]}
        for name in data["runs"][0]["bound_share"]:
            shares = [f"{100 * r['bound_share'][name]['mean']:.2f}%" for r in data["runs"]]
            self.assertEqual(shares, [cell.split(" ")[0] for cell in rows[name][1:]])
        warnings = [e[2] for e in dom.elements if e[1].get("class") == "warning" and "JavaScript" not in e[2]]
        self.assertEqual([f"{traces[2]}: the trace was cut off: it is analysed up to its last event."], warnings)

    def test_workers_of_one_run(self):
        folder = self.folder / "run" / "profile"
        folder.mkdir(parents=True)
        for rank, events in enumerate([2000, 4000]):
            shutil.move(self.trace("gpu", events), folder / f"rank-{rank}.trace")
        page = self.page(folder.parent)
        dom, _ = self.render(page)
        rows = {r[0]: r for r in dom.rows("what the time is bound by")[1:]}
        run = page_data(page)["profile"]["runs"][0]
        for name, b in run["bound_share"].items():
            self.assertEqual([f"{100 * b['mean']:.2f}%", f"± {100 * b['deviation']:.2f}%"], rows[name][1:3])

    def test_hostile_names(self):
        page = self.page(self.trace("hostile"))
        run = page_data(page)["profile"]["runs"][0]
        dom, _ = self.render(page)
        names = {re.sub(r"^[▾▸]? ", "", r[0]) for r in dom.rows("scopes")[1:]}
        self.assertLessEqual({"</script><script>throw 3</script>", "<!--<script>", "__proto__", "constructor"}, names)
        self.assertIn(run["tool"], "".join(e[2] for e in dom.find("p")))
        self.assertEqual([], dom.find("img"))

    def test_nothing_to_show(self):
        dom, _ = self.render(self.page(self.trace("empty")))
        self.assertIn("There is nothing to draw", dom.find("main")[0][2])

    def test_long_trace(self):
        page = self.page(self.trace("gpu", LONG_EVENTS))
        timeline = page_data(page)["timeline-0"]
        dom, probe = self.render(page)
        self.assertGreater(probe["colours"], 5)
        self.assertRegex(probe["deep"], r"^\d+ intervals merged, busy .*; the longest: (wait for the device|cudaLaunchKernel), ")
        self.assertIn(f"{timeline['intervals']:,} intervals in {timeline['drawn']:,}", dom.find("main")[0][2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
