// The page: a function of the last snapshot and of what was chosen here (pause, zoom, what to find).

import * as arrivals from "./arrivals_picture.js";
import * as axisPicture from "./axis_picture.js";
import * as charts from "./charts.js";
import { bytes, clock, count, length, position, short } from "./format.js";
import { change, poll } from "./poll.js";
import * as graph from "./sliding_graph.js";
import { showAnswers, showApart, showQueries, showTiles } from "./tables.js";
import { onChange, toggle } from "./theme.js";

const by = (id) => document.getElementById(id);
const plots = [axisPicture.plot, arrivals.plot, graph.plot, ...charts.plots];
let isPaused = false;
let last = null;
let chosen = "";

function say(status, words) {
  by("status").dataset.status = status;
  if (by("status").textContent !== words) by("status").textContent = words;
}

function statusOf(snapshot) {
  const words = {
    waiting: "waiting for the first batch", running: "running",
    finished: "finished", failed: `failed: ${snapshot.said}`,
  }[snapshot.status];
  return isPaused ? `paused at ${clock(snapshot.taken)}` : words;
}

// What is stored: partials, and of a join the rows that may still be joined.
function stored({ partials, rows }) {
  const parts = [partials || !rows ? `${count(partials ?? 0)} partials` : "", rows ? `${count(rows)} rows` : ""];
  return parts.filter(Boolean).join(", ");
}

function tilesOf({ counts, samples, state, progress, newest, axis }) {
  const recent = samples.rows.slice(-8);
  const rate = recent.length ? recent.reduce((a, b) => a + b, 0) / recent.length : 0;
  const size = samples.nbytes[samples.nbytes.length - 1] ?? 0;
  return [
    { value: count(counts.rows), name: `rows in ${count(counts.batches)} batches` },
    { value: short(Math.round(rate)), name: "rows per second" },
    { value: position(axis, progress), name: "promise" },
    { value: newest === null || progress === null ? "–" : length(axis, newest - progress), name: "from promise to newest row" },
    { value: count(counts.answers), name: "answers" },
    { value: count(counts.late), name: "late rows", isLoud: counts.late > 0 },
    { value: count(counts.rejected), name: "rejected rows", isLoud: counts.rejected > 0 },
    { value: bytes(size), name: `state, ${stored(state)}` },
  ];
}

function show(snapshot) {
  if (last && last.run !== snapshot.run) {
    chosen = "";
    for (const plot of plots) plot.zoom = null;
  }
  last = snapshot;
  say(snapshot.status, statusOf(snapshot));
  if (by("title").textContent !== snapshot.title) by("title").textContent = snapshot.title;
  if (by("text").textContent !== snapshot.text) by("text").textContent = snapshot.text;
  if (by("explain").textContent !== snapshot.explain) by("explain").textContent = snapshot.explain;
  document.title = `${snapshot.title} · panes live`;
  showTiles(tilesOf(snapshot));
  by("axis-card").hidden = snapshot.kind === "join" || Boolean(snapshot.register?.of_joins);
  axisPicture.show(snapshot);
  arrivals.show(snapshot);
  charts.show(snapshot);
  showAnswers(snapshot);
  showApart(snapshot);
  for (const part of document.querySelectorAll(".register")) part.hidden = !snapshot.register;
  if (snapshot.register) {
    showQueries(snapshot, { onRemove: remove, onChoose: (name) => { chosen = name; } });
    graph.show(snapshot.register);
    by("graph-card").hidden = snapshot.register.of_joins;
    by("queries-card").className = `card register ${snapshot.register.of_joins ? "wide" : "two"}`;
    by("add").hidden = !snapshot.register.can_edit;
  }
  performance.mark("panes-drawn");
}

async function remove(name) {
  by("add-said").textContent = (await change("DELETE", { name })).said;
}

by("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const query = { name: by("add-name").value, text: by("add-text").value };
  const { isDone, said } = await change("POST", query);
  by("add-said").textContent = said;
  if (isDone) by("add").reset();
});

function pause() {
  isPaused = !isPaused;
  by("pause").setAttribute("aria-pressed", String(isPaused));
  by("pause").textContent = isPaused ? "Go on" : "Pause";
  if (last) say(last.status, statusOf(last));
}

function help() {
  by("help").hidden = !by("help").hidden;
  by("keys").setAttribute("aria-expanded", String(!by("help").hidden));
}

const reset = () => plots.forEach((plot) => plot.reset());
by("pause").addEventListener("click", pause);
by("reset").addEventListener("click", reset);
by("theme").addEventListener("click", toggle);
by("keys").addEventListener("click", help);
onChange((theme) => {
  by("theme").textContent = theme === "dark" ? "Light" : "Dark";
  plots.forEach((plot) => plot.redraw());
});

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, button") || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    " ": pause, t: toggle, 0: reset, "?": help, "/": () => by("find-answers").focus(),
  }[event.key];
  if (act) { act(); event.preventDefault(); }
});

poll({
  look: () => ({ answers: by("find-answers").value, queries: by("find-queries").value, of: chosen }),
  isPaused: () => isPaused,
  onSnapshot: show,
  onGone: (words) => say("gone", words),
});
