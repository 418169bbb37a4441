"""--eval --html of any trainer: the page's data against the test's figures, and the page in a browser."""

import json
import resource
import struct
import unittest

from cli_harness import SAMPLE, CudaTests
from html_harness import CHROMIUM, Dom, page_data, render

# 683 to 1,000 steps of a lander that hovers, with room to spare.
STEP_BYTES_MAX = 400


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def shapes_of(frame):
    """The numbers of a frame's shapes."""
    numbers, number = [], 0
    for difference in frame[1:]:
        number += difference
        numbers.append(number)
    return numbers


class ViewRuns:
    """Mixed into a TrainerTest with `quick(env, **changes)`: the options of a run that takes a moment."""

    def recorded(self, env, *evaluation, **changes):
        """The page of a small run, the data in it and what --json says of the same test."""
        run = self.good(*self.quick(env, **changes), "--out", self.path())["run"]
        page = self.path("page").with_suffix(".html")
        return page, *self.evaluated(run, page, *evaluation)

    def evaluated(self, run, page, *evaluation):
        result = self.good("--eval", run, "--html", page, "--bind=none", *evaluation)
        return page_data(page)["recording"], result

    def check_returns(self, recording, result):
        """The page's returns are those of --json, added up from its rewards as well."""
        test = {name: result[f"test_{name}"] for name in ["episodes", "return_mean", "return_std", "length_mean"]}
        self.assertEqual(test, recording["test"])
        self.assertEqual(result["params_hash"], recording["params_hash"])
        for episode in recording["episodes"]:
            total = 0.0
            for reward in episode["rewards"]:
                total = single(total + single(reward))
            self.assertEqual(single(episode["return"]), total)
            self.assertEqual(episode["length"], len(episode["rewards"]))
            self.assertEqual(episode["length"] + 1, len(episode["frames"]))
            self.assertEqual(episode["truncated"], episode["length"] == recording["time_limit"])
            self.assertTrue(episode["terminated"] or episode["truncated"])
        if len(recording["episodes"]) == result["test_episodes"]:
            returns = [single(e["return"]) for e in recording["episodes"]]
            self.assertEqual(result["test_return_mean"], sum(returns) / len(returns))
            self.assertEqual(result["test_length_mean"], sum(e["length"] for e in recording["episodes"]) / len(returns))


class ViewDataTests(ViewRuns):
    """What needs no browser."""

    def check_frames(self, recording):
        """Every frame is of shapes that are there, each used, whole and not far outside of the view."""
        used = set()
        for episode in recording["episodes"]:
            for frame in episode["frames"]:
                used.update(shapes_of(frame))
                self.assertIn(frame[0], range(len(recording["views"])))
        self.assertEqual(set(range(len(recording["shapes"]))), used)
        left, bottom, right, top = recording["views"][0]
        self.assertAlmostEqual(8192, max(right - left, top - bottom), delta=1)
        for kind, colour, size, *points in recording["shapes"]:
            self.assertIn(colour, range(len(recording["colours"])))
            self.assertGreaterEqual(size, 0)
            count = len(points) // 2
            self.assertTrue(len(points) % 2 == 0 and {0: count >= 2, 1: count >= 3, 2: count == 1}[kind], points)

    def test_every_simulator(self):
        for env in SAMPLE:
            with self.subTest(env=env):
                page, recording, result = self.recorded(env, "--test-episodes=3")
                self.assertEqual((env, 3), (recording["env"], len(recording["episodes"])))
                self.check_returns(recording, result)
                self.check_frames(recording)
                steps = sum(e["length"] for e in recording["episodes"])
                self.assertLess(page.stat().st_size, 40_000 + STEP_BYTES_MAX * steps)
                starts = [shapes_of(e["frames"][0]) for e in recording["episodes"]]
                self.assertEqual(3, len({tuple(s) for s in starts}))  # episodes start differently

    def test_what_a_test_may_be_of(self):
        """Randomised parameters, a memory, bfloat16, another seed, parameters and a lower time limit."""
        cases = [
            ({}, ["--randomize=half_pole_length_m=0.3:0.9"]),
            ({}, ["--seed=77", "--set=gravity_mps2=3", "--time-limit=13"]),
            ({"recurrent": 5}, []),
            ({"precision": "bf16", "hidden": "20"}, []),
            ({"hidden": "none"}, []),
        ]
        for changes, evaluation in cases:
            with self.subTest(changes=changes, evaluation=evaluation):
                _, recording, result = self.recorded("cartpole", "--test-episodes=4", *evaluation, **changes)
                self.check_returns(recording, result)
                self.check_frames(recording)
                if "--seed=77" in evaluation:
                    self.assertEqual((77, 13), (recording["seed"], recording["time_limit"]))

    def test_poles_have_their_episodes_lengths(self):
        """The pole, as drawn, is as long as the parameter says, in each episode of its own."""
        _, recording, _ = self.recorded("cartpole", "--test-episodes=4", "--randomize=half_pole_length_m=0.3:0.9")
        lengths = []
        for episode in recording["episodes"]:
            own = set()
            for frame in episode["frames"]:
                shapes = [recording["shapes"][n] for n in shapes_of(frame)]
                pole = next(s for s in shapes if recording["colours"][s[1]] == "part")
                own.add(round((pole[5] ** 2 + pole[6] ** 2) ** 0.5 * recording["unit"], 2))
            self.assertLess(max(own) - min(own), 0.011)
            lengths.append(max(own))
        self.assertTrue(all(0.59 < length < 1.81 for length in lengths), lengths)
        self.assertGreater(max(lengths) - min(lengths), 0.02)

    def test_static_shapes_are_kept_once(self):
        _, recording, _ = self.recorded("mountain_car", "--test-episodes=2", "--time-limit=50")
        ground = [s for s in recording["shapes"] if recording["colours"][s[1]] == "ground"]
        self.assertEqual(1, len(ground))

    def test_how_many(self):
        run = self.good(*self.quick("cartpole"), "--out", self.path())["run"]
        for tested, asked, found in [(9, [], 5), (2, [], 2), (9, ["--html-episodes=1"], 1), (9, ["--html-episodes=9"], 9)]:
            page = self.path("page").with_suffix(".html")
            recording, result = self.evaluated(run, page, f"--test-episodes={tested}", *asked)
            self.assertEqual(found, len(recording["episodes"]))
            self.check_returns(recording, result)

    def test_hostile_name(self):
        """A run's name is text, whatever is in it; nothing comes from elsewhere."""
        run = self.good(*self.quick("cartpole"), "--out", self.path("</script><script>throw 1</script> & \"'"))["run"]
        page = self.path("page").with_suffix(".html")
        recording, _ = self.evaluated(run, page, "--test-episodes=1")
        self.assertEqual(run, recording["run"])
        text = page.read_text(encoding="utf-8")
        self.assertNotIn("<script>throw 1", text)
        self.assertNotRegex(text, r"https?://|@import|\burl\(|innerHTML|\beval\(")
        self.assertIn("default-src 'none'", text)
        for tag, attributes, _ in Dom(text).elements:
            self.assertFalse({"src", "href"} & set(attributes), tag)


class ViewRefusedTests(ViewRuns):
    def test_usage(self):
        run = self.good(*self.quick("cartpole"), "--out", self.path())["run"]
        self.refused(2, ["--html", "--eval"], "cartpole", "--html=page.html")
        self.refused(2, ["--html", "--eval"], "--resume", run, "--html=page.html")
        self.refused(2, ["--html", "--dry-run"], "--eval", run, "--html=page.html", "--dry-run")
        self.refused(2, ["--html-episodes", "--html"], "--eval", run, "--html-episodes=3")
        for count in ["0", "101", "x"]:
            self.refused(2, "--html-episodes", "--eval", run, "--html=page.html", f"--html-episodes={count}")

    def test_too_long(self):
        run = self.good(*self.quick("pendulum"), "--out", self.path())["run"]
        self.refused(2, ["--time-limit", "--html-episodes", "200000"], "--eval", run, "--html=page.html", "--quiet",
                     "--device=cpu", "--time-limit=100001", "--test-episodes=2")  # fmt: skip

    def test_cannot_be_written(self):
        run = self.good(*self.quick("cartpole"), "--out", self.path())["run"]
        call = ["--eval", run, "--quiet", "--device=cpu", "--html"]
        folder = self.path("folder")
        folder.mkdir()
        for path, reason in [("/dev/full", "not a regular file"), (folder, "Is a directory"), (folder / "no" / "page", "No such")]:
            self.refused(1, [str(path), reason], *call, path)

    def test_full_disk(self):
        """A limit of the size of files stands in for a full disk: the page that was there stays."""
        run = self.good(*self.quick("cartpole"), "--out", self.path())["run"]
        page = self.path("page").with_suffix(".html")
        page.write_text("there before", encoding="utf-8")
        self.refused(1, [str(page), "File too large"], "--eval", run, "--quiet", "--device=cpu", "--html", page,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))  # fmt: skip
        self.evaluated(run, page)  # and is replaced by a whole one
        self.assertTrue(page.read_text(encoding="utf-8").startswith("<!doctype html>"))


# What a user does, and what the page says then.
PROBE = """
const player = document.getElementById("player"), stage = document.getElementById("stage");
const text = (id) => document.getElementById(id).textContent;
const copy = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
function pixels() {
  copy.canvas.width = stage.width;
  copy.canvas.height = stage.height;
  copy.drawImage(stage, 0, 0);
  const {data} = copy.getImageData(0, 0, stage.width, stage.height);
  let hash = 0;
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) {
    const colour = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
    hash = (Math.imul(hash, 31) + colour) | 0;
    colours.add(colour);
  }
  return {hash, colours: colours.size};
}
const look = () => ({...player.dataset, ...pixels(), texts: ["step", "time", "reward", "return", "outcome", "play"].map(text)});
const press = (key, options) => document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true, ...options}));
function scrub(step) {
  const slider = document.getElementById("scrub");
  slider.value = String(step);
  slider.dispatchEvent(new Event("input"));
  return look();
}
setTimeout(() => {
  const found = {start: look(), ratio: devicePixelRatio, size: [stage.width, stage.height, stage.clientWidth, stage.clientHeight]};
  found.middle = scrub(7);
  press("ArrowRight"); found.right = look();
  press("ArrowLeft", {shiftKey: true}); found.left = look();
  press("End"); found.end = look();
  press("Home"); found.home = look();
  press("n"); found.other = look();
  press("p"); found.back = look();
  press("ArrowUp"); press("ArrowUp"); press("ArrowUp"); press("ArrowUp");
  found.speed = document.getElementById("speed").selectedOptions[0].textContent;
  press(" "); found.playing = look();
  const wait = setInterval(() => {
    found.on_the_way ??= Number(player.dataset.step) > 0 ? look() : undefined;
    if (player.dataset.playing === "true") return;
    clearInterval(wait);
    found.played = look();
    tell(found);
  }, 20);
}, 200);
"""


@unittest.skipUnless(CHROMIUM, "there is no chromium")
class ViewBrowserTests(ViewRuns):
    SHOWN = []  # simulators

    def check_look(self, recording, seen, episode, step):
        """What is shown is that step of that episode."""
        e = recording["episodes"][episode]
        self.assertEqual((str(episode), str(step)), (seen["episode"], seen["step"]))
        self.assertEqual(" ".join(map(str, shapes_of(e["frames"][step]))), seen["shapes"])
        total = 0.0
        for reward in e["rewards"][:step]:
            total = single(total + single(reward))
        self.assertEqual(total, float(seen["return"]))
        self.assertEqual(f"{step} of {e['length']}", seen["texts"][0])
        self.assertEqual(f"{step * e['step_s']:.2f} s" if e["step_s"] else "no unit", seen["texts"][1])
        if step > 0:
            self.assertEqual(e["rewards"][step - 1], float(seen["reward"]))
        ended = "terminated" if e["terminated"] else "truncated by the time limit"
        self.assertTrue(seen["texts"][4].startswith(ended) if step == e["length"] else seen["texts"][4] == "", seen)
        self.assertGreater(seen["colours"], 3)

    def check_page(self, env, *flags):
        # A random policy ends no episode within ten steps, and 40 steps of any simulator are over within 8 s.
        page, recording, _ = self.recorded(env, "--test-episodes=3", "--time-limit=40")
        _, found = render(self, page, PROBE, self.folder, *flags, budget_ms=12000)
        self.assertIsNotNone(found, "the page did not play to the end")
        last, other = (recording["episodes"][i]["length"] for i in (0, 1))
        self.assertGreater(min(last, other), 8)
        for name, episode, step in [("start", 0, 0), ("middle", 0, 7), ("right", 0, 8), ("left", 0, 0), ("end", 0, last),
                                    ("home", 0, 0), ("other", 1, 0), ("back", 0, 0), ("playing", 0, 0), ("played", 0, last)]:  # fmt: skip
            with self.subTest(env=env, look=name):
                self.check_look(recording, found[name], episode, step)
        self.check_look(recording, found["on_the_way"], 0, int(found["on_the_way"]["step"]))
        self.assertEqual(("8x", "true", "Pause", "Play"), (found["speed"], found["playing"]["playing"], found["playing"]["texts"][5],
                                                           found["played"]["texts"][5]))  # fmt: skip
        self.assertEqual(found["start"]["hash"], found["home"]["hash"])
        self.assertEqual(found["end"]["hash"], found["played"]["hash"])
        self.assertEqual(4, len({found[name]["hash"] for name in ["start", "middle", "end", "other"]}))
        return found

    def test_pages(self):
        for env in self.SHOWN:
            with self.subTest(env=env):
                found = self.check_page(env)
                self.assertEqual(1, found["ratio"])

    def test_fine_screen(self):
        found = self.check_page(self.SHOWN[0], "--force-device-scale-factor=2")
        width, height, shown_width, shown_height = found["size"]
        self.assertEqual(2, found["ratio"])
        self.assertTrue(abs(width - 2 * shown_width) <= 2 and abs(height - 2 * shown_height) <= 2, found["size"])


class ViewCudaTests(CudaTests, ViewRuns):
    """A run that was trained and tested on a GPU has the page that it has on a CPU."""

    def test_same_page(self):
        run = self.good(*self.quick("cartpole", device="cuda"), "--out", self.path())["run"]
        pages = [self.path("page").with_suffix(".html"), self.path("page").with_suffix(".html")]
        recordings = [self.evaluated(run, page, "--test-episodes=2", "--time-limit=30", f"--device={device}")
                      for page, device in zip(pages, ["cuda", "cpu"])]  # fmt: skip
        for recording, result in recordings:
            self.check_returns(recording, result)
            self.assertEqual(result["device"], recording.pop("device"))
        self.assertEqual(json.dumps(recordings[0][0]), json.dumps(recordings[1][0]))
