// Plays the recording. The elements' data attributes say what is shown, in full precision.
"use strict";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const STEPS_PER_S = 30; // where a step has no length in seconds

const part = (id) => document.getElementById(id);

function number(x) {
  const size = Math.abs(x);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? x.toExponential(3) : x.toFixed(size < 1 ? 3 : 2);
}

function outcome(episode) {
  if (episode.terminated && episode.truncated) return "terminated, at the time limit";
  return episode.terminated ? "terminated" : "truncated by the time limit";
}

class Player {
  constructor(recording) {
    this.recording = recording;
    this.isPlaying = false;
    this.speed = SPEEDS.indexOf(1);
    this.readColours();
    this.choose(0);
  }

  readColours() { this.colours = palette([...this.recording.colours, "sky", "edge", "line", "accent"]); }

  get last() { return this.episode.length; }

  choose(index) {
    const count = this.recording.episodes.length;
    this.index = Math.min(Math.max(index, 0), count - 1);
    this.episode = this.recording.episodes[this.index];
    const [left, bottom, right, top] = decodeFrame(this.recording, this.episode.frames[0]).view;
    const aspect = Math.min(Math.max((right - left) / (top - bottom), 0.5), 4);
    part("stage").style.aspectRatio = String(aspect);
    part("stage").style.width = `min(100%, ${52 * aspect}vh)`;
    part("scrub").max = String(this.last);
    part("episode").value = String(this.index);
    this.go(0);
  }

  // To a step, which may lie between two: the earlier one is shown.
  go(at) {
    this.at = Math.min(Math.max(at, 0), this.last);
    this.show();
  }

  play(isPlaying) {
    if (isPlaying && this.at >= this.last) this.go(0);
    this.isPlaying = isPlaying;
    this.before = null;
    part("play").textContent = isPlaying ? "Pause" : "Play";
    part("player").dataset.playing = String(isPlaying);
    if (isPlaying) requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    if (!this.isPlaying) return;
    const passed_s = this.before === null ? 0 : (now - this.before) / 1000;
    const perStep_s = this.episode.step_s > 0 ? this.episode.step_s : 1 / STEPS_PER_S;
    this.before = now;
    this.go(this.at + passed_s * SPEEDS[this.speed] / perStep_s);
    if (this.at >= this.last) {
      this.play(false);
    } else {
      requestAnimationFrame((next) => this.tick(next));
    }
  }

  setSpeed(index) {
    this.speed = Math.min(Math.max(index, 0), SPEEDS.length - 1);
    part("speed").value = String(this.speed);
  }

  show() {
    const step = Math.floor(this.at), {episode} = this;
    const frame = decodeFrame(this.recording, episode.frames[step]);
    paintFrame(part("stage"), this.recording, frame, this.colours);
    paintCurve(part("curve"), episode.returns, step, this.colours);
    part("scrub").value = String(step);
    part("step").textContent = `${step} of ${this.last}`;
    part("time").textContent = episode.step_s > 0 ? `${(step * episode.step_s).toFixed(2)} s` : "no unit";
    part("reward").textContent = step > 0 ? number(episode.rewards[step - 1]) : "none yet";
    part("return").textContent = number(episode.returns[step]);
    part("outcome").textContent = step === this.last ? outcome(episode) : "";
    Object.assign(part("player").dataset, {
      episode: this.index,
      step,
      reward: step > 0 ? episode.rewards[step - 1] : "",
      return: episode.returns[step],
      shapes: frame.shapes.join(" ")
    });
  }
}

function onKey(player, event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "SELECT") return;
  const step = Math.floor(player.at), stride = event.shiftKey ? 10 : 1;
  const keys = {
    " ": () => player.play(!player.isPlaying),
    ArrowLeft: () => player.go(step - stride),
    ArrowRight: () => player.go(step + stride),
    ArrowUp: () => player.setSpeed(player.speed + 1),
    ArrowDown: () => player.setSpeed(player.speed - 1),
    Home: () => player.go(0),
    End: () => player.go(player.last),
    n: () => player.choose(player.index + 1),
    p: () => player.choose(player.index - 1)
  };
  if (!Object.hasOwn(keys, event.key)) return;
  event.preventDefault(); // the slider's and the button's own
  keys[event.key]();
}

function addOptions(select, texts) { texts.forEach((text, i) => select.append(new Option(text, String(i)))); }

function describe(recording) {
  const {test} = recording;
  const deviation = test.episodes > 1 ? ` ± ${number(test.return_std)}` : "";
  document.title = `Episodes of ${recording.env}`;
  part("title").textContent = recording.env;
  part("about").textContent =
    `${recording.tool}, ${recording.run}, parameters ${recording.params_hash}, seed ${recording.seed}. ` +
    `Return of the test ${number(test.return_mean)}${deviation} over ${
      test.episodes} episodes on unused seeds, without noise; ` +
    `here are ${recording.episodes.length} of them, as they were.`;
}

function listen(player) {
  part("play").addEventListener("click", () => player.play(!player.isPlaying));
  part("stage").addEventListener("click", () => player.play(!player.isPlaying));
  part("scrub").addEventListener("input", () => player.go(Number(part("scrub").value)));
  part("speed").addEventListener("change", () => player.setSpeed(Number(part("speed").value)));
  part("episode").addEventListener("change", () => player.choose(Number(part("episode").value)));
  document.addEventListener("keydown", (event) => onKey(player, event));
  document.addEventListener("keyup", (event) => { // or a focused button is pressed by it
    if (event.key === " " && event.target.tagName === "BUTTON") event.preventDefault();
  });
  window.addEventListener("resize", () => player.show());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    player.readColours();
    player.show();
  });
}

function start() {
  const recording = readRecording();
  describe(recording);
  addOptions(part("speed"), SPEEDS.map((speed) => `${speed}x`));
  addOptions(part("episode"),
    recording.episodes.map((e, i) => `${i + 1}: return ${number(e.return )}, ${e.length} steps, ${outcome(e)}`));
  part("player").hidden = false;
  const player = new Player(recording);
  player.setSpeed(SPEEDS.indexOf(1));
  player.play(false);
  listen(player);
  document.documentElement.dataset.state = "drawn";
}

start();
