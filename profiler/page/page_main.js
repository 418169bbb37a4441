// Puts the page together from the data that profreport left in it.
"use strict";

function readData(id) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : null;
}

function runParts(run, index, meanings) {
  return [
    head(run), boundSection(run, meanings), categorySection(run, meanings), scopeSection(run),
    timelineSection(run, readData(`timeline-${index}`)), gpuSection(run, meanings), transitionSection(run)
  ];
}

function drawPage() {
  const page = document.getElementById("page");
  const data = readData("profile");
  const {runs, meanings} = data;
  const title = runs.length === 1 ? last(runs[0].run) : `${runs.length} runs`;
  document.title = `Profile of ${title}`;
  page.append(make("h1", {class: "name"},
    runs.length === 1 ? `Where the time of ${title} went` : `Where the time of ${runs.length} runs went`));
  if (runs.length === 1) {
    page.append(make("p", {class: "faint name"}, runs[0].run), ...runParts(runs[0], 0, meanings).filter(Boolean));
  } else {
    page.append(comparison(data));
    runs.forEach((run, i) => page.append(make("details", {class: "run", open: i === 0 ? "" : null},
                   make("summary", {}, run.run), runParts(run, i, meanings))));
  }
  page.append(make("p", {class: "faint"},
    "The same figures: profreport RUN, as text; --json, --csv, and --chrome for a timeline in Perfetto."));
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  document.documentElement.dataset.state = "drawn";
}

drawPage();
