// Lines over time: speed, batch time, state; and the answers of a few keys over windows.

import { bytes, clock, count, position, seconds, short, ticks } from "./format.js";
import { Plot, inside, lastAtMost, marksBelow, marksBeside, sayInTheMiddle } from "./plot.js";
import { colour } from "./theme.js";

let shown = null;
const KEYS = 8;

function trend(id, title, column, words, beside = () => "") {
  const range = () => {
    const at = shown?.samples.at ?? [];
    return at.length > 1 ? [at[0], at[at.length - 1]] : null;
  };
  const draw = (frame) => {
    const at = shown?.samples.at ?? [], values = shown?.samples[column] ?? [];
    const { ctx } = frame;
    ctx.fillStyle = colour("ink"); ctx.font = '600 12px system-ui, "DejaVu Sans", sans-serif';
    const now = values.length ? words(values[values.length - 1]) : "–";
    ctx.fillText(title, 2, 9);
    ctx.textAlign = "right"; ctx.fillText(now, frame.right, 9); ctx.textAlign = "left";
    ctx.font = '11px system-ui, "DejaVu Sans", sans-serif';
    if (at.length < 2) return;
    const first = Math.max(0, lastAtMost(at, frame.low)), last = Math.min(at.length - 1, lastAtMost(at, frame.high) + 1);
    let top = 0;
    for (let i = first; i <= last; i += 1) top = Math.max(top, values[i]);
    const up = ticks(0, top || 1, 2, false);
    const high = Math.max(top, up.at[up.at.length - 1]) * 1.04 || 1;
    const y = (v) => frame.bottom - (v / high) * (frame.bottom - frame.top);
    marksBeside(frame, up.at, y, words);
    const across = ticks(frame.low, frame.high, frame.width / 120, false);
    marksBelow(frame, across.at.filter((t) => t > frame.low && t < frame.high), clock);
    inside(frame, () => {
      const path = new Path2D();
      for (let i = first; i <= last; i += 1) path[i === first ? "moveTo" : "lineTo"](frame.x(at[i]), y(values[i]));
      const area = new Path2D(path);
      area.lineTo(frame.x(at[last]), frame.bottom); area.lineTo(frame.x(at[first]), frame.bottom); area.closePath();
      ctx.fillStyle = colour("area"); ctx.fill(area);
      ctx.strokeStyle = colour("line"); ctx.lineWidth = 1.8; ctx.stroke(path); ctx.lineWidth = 1;
    });
  };
  const tipAt = (frame, { x }) => {
    const at = shown?.samples.at ?? [];
    const i = lastAtMost(at, frame.at(x));
    return i < 0 ? "" : `${clock(at[i])}\n${title.toLowerCase()} ${words(shown.samples[column][i])}${beside(i)}`;
  };
  return new Plot(id, { range, draw, tipAt, margin: { left: 64, top: 24, bottom: 20 } });
}

const rate = trend("rate", "Rows per second", "rows", short);
const batch = trend("batch", "Longest batch", "batch", seconds);
const state = trend("bytes", "State", "nbytes", bytes, (i) => `\n${count(shown.samples.stored[i])} stored partials and rows`);

function lineRange() {
  const all = (shown?.answers.lines ?? []).flatMap((l) => l.at);
  return all.length > 1 ? [Math.min(...all), Math.max(...all)] : null;
}

function lineScale(frame) {
  let low = Infinity, high = -Infinity;
  for (const line of shown.answers.lines) line.at.forEach((at, i) => {
    if (at >= frame.low && at <= frame.high) { low = Math.min(low, line.value[i]); high = Math.max(high, line.value[i]); }
  });
  if (low > high) { low = 0; high = 1; }
  if (low > 0 && low < high * 0.5) low = 0;
  const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  const bottom = low === 0 ? 0 : low - pad;
  return { low: bottom, high: high + pad, y: (v) => frame.bottom - ((v - bottom) / (high + pad - bottom)) * (frame.bottom - frame.top) };
}

function drawLines(frame) {
  const lines = shown?.answers.lines ?? [];
  if (!lines.length || lines[0].at.length < 1) {
    sayInTheMiddle(frame, shown?.answers.note || "a line begins with the second window that closes");
    return;
  }
  const { axis } = shown, { low, high, y } = lineScale(frame);
  const up = ticks(low, high, 5, false), across = ticks(frame.low, frame.high, frame.width / 100, axis.kind === "time");
  marksBelow(frame, across.at, (at) => position(axis, at, across.step));
  marksBeside(frame, up.at, y, short);
  inside(frame, (ctx) => lines.forEach((line, n) => {
    ctx.strokeStyle = ctx.fillStyle = colour(`k${n % KEYS}`); ctx.lineWidth = 1.8;
    ctx.beginPath();
    line.at.forEach((at, i) => ctx[i ? "lineTo" : "moveTo"](frame.x(at), y(line.value[i])));
    ctx.stroke(); ctx.lineWidth = 1;
    const few = line.at.length <= 40;
    line.at.forEach((at, i) => {
      if (few || i === line.at.length - 1) { ctx.beginPath(); ctx.arc(frame.x(at), y(line.value[i]), 2.6, 0, 7); ctx.fill(); }
    });
  }));
}

function lineTip(frame, pointer) {
  const lines = shown?.answers.lines ?? [];
  if (!lines.length) return "";
  const { y } = lineScale(frame);
  let best = null;
  for (const line of lines) line.at.forEach((at, i) => {
    const far = Math.hypot(frame.x(at) - pointer.x, y(line.value[i]) - pointer.y);
    if (far < 24 && (!best || far < best.far)) best = { far, line, i };
  });
  if (!best) return "";
  const key = best.line.key || "all rows";
  return `${key}\n${shown.answers.by} ${short(best.line.value[best.i])}\nwindow that ends ${position(shown.axis, best.line.at[best.i])}`;
}

const lines = new Plot("lines", { range: lineRange, draw: drawLines, tipAt: lineTip });
export const plots = [rate, batch, state, lines];

function legend() {
  const place = document.getElementById("lines-legend");
  place.replaceChildren(...(shown.answers.lines ?? []).flatMap((line, n) => {
    const box = document.createElement("i");
    box.className = `dot k${n % KEYS}`;
    return [box, document.createTextNode(line.key || "all rows")];
  }));
}

export function show(snapshot) {
  shown = snapshot;
  const { answers } = snapshot;
  document.getElementById("lines-said").textContent = answers.lines.length
    ? `${answers.of ? `${answers.of}: ` : ""}${answers.by} of the ${answers.lines.length === 1 ? "greatest key" : `${answers.lines.length} greatest keys`}, window by window` : "";
  legend();
  for (const plot of plots) plot.redraw();
}
