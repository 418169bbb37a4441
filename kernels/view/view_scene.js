// The recording as frames, and a frame as a picture.
"use strict";

const LINE = 0, POLYGON = 1, CIRCLE = 2; // as in sim/sim_draw.h

// [kind, colour, size, x, y, dx, dy, ...] in units: {kind, colour, size, x: [..], y: [..]} in those of the world.
function decodeShape(words, unit, colours) {
  const shape = {kind: words[0], colour: colours[words[1]], size: words[2] * unit, x: [], y: []};
  let x = 0, y = 0;
  for (let i = 3; i < words.length; i += 2) {
    x += words[i];
    y += words[i + 1];
    shape.x.push(x * unit);
    shape.y.push(y * unit);
  }
  return shape;
}

// {view: [left, bottom, right, top], shapes: [number, ..]} of a step.
function decodeFrame(recording, words) {
  let number = 0;
  const shapes = words.slice(1).map((difference) => number += difference);
  return {view: recording.views[words[0]].map((x) => x * recording.unit), shapes};
}

// Returns after each step, added as the simulator's batch adds them: in single precision.
function addReturns(rewards) {
  let sum = 0;
  return [0, ...rewards.map((reward) => sum = Math.fround(sum + Math.fround(reward)))];
}

function readRecording() {
  const recording = JSON.parse(document.getElementById("recording").textContent);
  recording.shapes = recording.shapes.map((words) => decodeShape(words, recording.unit, recording.colours));
  for (const episode of recording.episodes)
    episode.returns = addReturns(episode.rewards);
  return recording;
}

function palette(names) {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// Gives the canvas as many pixels as it has on the screen.
function fitCanvas(canvas) {
  const width = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
  const height = Math.max(1, Math.round(canvas.clientHeight * devicePixelRatio));
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}

function tracePath(context, shape, at) {
  context.beginPath();
  if (shape.kind === CIRCLE) {
    context.arc(...at(shape.x[0], shape.y[0]), Math.max(0, shape.size * at.scale), 0, 2 * Math.PI);
    return;
  }
  shape.x.forEach((x, i) => context.lineTo(...at(x, shape.y[i])));
  if (shape.kind === POLYGON) context.closePath();
}

function paintShape(context, shape, at, colours) {
  tracePath(context, shape, at);
  context.lineJoin = context.lineCap = "round";
  if (shape.kind === LINE) {
    context.strokeStyle = colours[shape.colour];
    context.lineWidth = Math.max(devicePixelRatio, shape.size * at.scale);
    context.stroke();
    return;
  }
  context.fillStyle = colours[shape.colour];
  context.fill();
  context.strokeStyle = colours.edge;
  context.lineWidth = devicePixelRatio;
  context.stroke();
}

// The frame's view, as large as it goes, in the middle.
function paintFrame(canvas, recording, frame, colours) {
  fitCanvas(canvas);
  const context = canvas.getContext("2d");
  const [left, bottom, right, top] = frame.view;
  const scale = Math.min(canvas.width / (right - left), canvas.height / (top - bottom));
  const x0 = canvas.width / 2 - scale * (left + right) / 2, y0 = canvas.height / 2 + scale * (bottom + top) / 2;
  const at = (x, y) => [x0 + scale * x, y0 - scale * y];
  at.scale = scale;
  context.fillStyle = colours.sky;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const number of frame.shapes)
    paintShape(context, recording.shapes[number], at, colours);
}

// Returns by step, with a mark at the present one.
function paintCurve(canvas, returns, step, colours) {
  fitCanvas(canvas);
  const context = canvas.getContext("2d"), ratio = devicePixelRatio, steps = Math.max(1, returns.length - 1);
  const low = returns.reduce((a, b) => Math.min(a, b)), high = returns.reduce((a, b) => Math.max(a, b));
  const pad = 8 * ratio, tall = canvas.height - 6 * ratio;
  const x = (i) => pad + i / steps * (canvas.width - 2 * pad);
  const y = (value) => 3 * ratio + tall * (1 - (value - low) / (high - low || 1));
  context.clearRect(0, 0, canvas.width, canvas.height);
  const stroke = (from, to, colour, width) => {
    context.beginPath();
    for (let i = from; i <= to; i++)
      context.lineTo(x(i), y(returns[i]));
    context.strokeStyle = colour;
    context.lineWidth = width * ratio;
    context.stroke();
  };
  stroke(0, returns.length - 1, colours.line, 2);
  stroke(0, step, colours.accent, 2);
  context.beginPath();
  context.arc(x(step), y(returns[step]), 3.5 * ratio, 0, 2 * Math.PI);
  context.fillStyle = colours.accent;
  context.fill();
}
