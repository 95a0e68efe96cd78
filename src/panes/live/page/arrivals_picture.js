// Rows as they came: the number of a row against its place on the axis, the promise below them.
// A point under the line is a row that broke the promise.

import { count, position, length, ticks } from "./format.js";
import { Plot, inside, lastAtMost, marksBelow, marksBeside, sayInTheMiddle } from "./plot.js";
import { colour } from "./theme.js";

let shown = null;

function range() {
  if (!shown) return null;
  const { arrivals, counts } = shown;
  if (!arrivals.row.length) return null;
  return [arrivals.row[0], Math.max(counts.rows, arrivals.row[arrivals.row.length - 1] + 1)];
}

function heights(frame) {
  const { row, at, late_row, late_at, promise_row, promise_at } = shown.arrivals;
  let low = Infinity, high = -Infinity;
  const take = (xs, ys) => xs.forEach((x, i) => {
    if (x >= frame.low && x <= frame.high) { low = Math.min(low, ys[i]); high = Math.max(high, ys[i]); }
  });
  take(row, at); take(late_row, late_at); take(promise_row, promise_at);
  if (low > high) return [0, 1];
  const pad = (high - low) * 0.05 || 1;
  return [low - pad, high + pad];
}

function scale(frame) {
  const [low, high] = heights(frame);
  return { low, high, y: (v) => frame.bottom - ((v - low) / (high - low)) * (frame.bottom - frame.top) };
}

function draw(frame) {
  if (!shown) return;
  const { arrivals, axis } = shown;
  if (!arrivals.row.length) {
    sayInTheMiddle(frame, shown.kind === "spark" ? "one point for each micro-batch, once it has ended" : "no row has come yet");
    return;
  }
  const { low, high, y } = scale(frame);
  const across = ticks(frame.low, frame.high, frame.width / 110, false);
  const up = ticks(low, high, 6, axis.kind === "time");
  marksBelow(frame, across.at, (at) => `row ${count(at)}`);
  marksBeside(frame, up.at, y, (at) => position(axis, at, up.step));
  inside(frame, (ctx) => {
    drawPromise(frame, ctx, y);
    ctx.fillStyle = colour("row"); ctx.globalAlpha = 0.62;
    const big = arrivals.row.length > 300 ? 2.4 : 6;
    for (let i = 0; i < arrivals.row.length; i += 1) ctx.fillRect(frame.x(arrivals.row[i]) - big / 2, y(arrivals.at[i]) - big / 2, big, big);
    ctx.globalAlpha = 1; ctx.fillStyle = colour("late");
    for (let i = 0; i < arrivals.late_row.length; i += 1) {
      ctx.beginPath(); ctx.arc(frame.x(arrivals.late_row[i]), y(arrivals.late_at[i]), 3.4, 0, 7); ctx.fill();
    }
  });
}

function drawPromise(frame, ctx, y) {
  const { promise_row: rows, promise_at: at } = shown.arrivals;
  if (!rows.length) return;
  const path = new Path2D();
  path.moveTo(frame.x(rows[0]), y(at[0]));
  for (let i = 1; i < rows.length; i += 1) {
    path.lineTo(frame.x(rows[i]), y(at[i - 1]));
    path.lineTo(frame.x(rows[i]), y(at[i]));
  }
  path.lineTo(frame.right, y(at[at.length - 1]));
  const area = new Path2D(path);
  area.lineTo(frame.right, frame.bottom); area.lineTo(frame.x(rows[0]), frame.bottom); area.closePath();
  ctx.fillStyle = colour("promise-soft"); ctx.fill(area);
  ctx.strokeStyle = colour("promise"); ctx.lineWidth = 2; ctx.stroke(path); ctx.lineWidth = 1;
}

function tipAt(frame, pointer) {
  if (!shown || !shown.arrivals.row.length) return "";
  const { arrivals, axis } = shown;
  const { y } = scale(frame);
  let best = null;
  const look = (rows, at, isLate) => rows.forEach((r, i) => {
    const far = Math.hypot(frame.x(r) - pointer.x, y(at[i]) - pointer.y) - (isLate ? 6 : 0);
    if (far < 16 && (!best || far < best.far)) best = { far, row: r, at: at[i], isLate };
  });
  look(arrivals.row, arrivals.at, false); look(arrivals.late_row, arrivals.late_at, true);
  if (!best) return "";
  const i = lastAtMost(arrivals.promise_row, best.row);
  const promise = i < 0 ? "" : `\npromise ${position(axis, arrivals.promise_at[i])}`;
  const behind = best.isLate && i >= 0 ? `, ${length(axis, arrivals.promise_at[i] - best.at)} late` : "";
  return `row ${count(best.row)} at ${position(axis, best.at)}${behind}${promise}`;
}

export const plot = new Plot("arrivals", { range, draw, tipAt, margin: { left: 70 } });

export function show(snapshot) {
  shown = snapshot;
  const { arrivals, counts } = snapshot;
  const said = snapshot.kind === "spark"
    ? "a point for each micro-batch; under the line are late rows"
    : `${count(arrivals.row.length)} of the last rows · under the line are rows that came later than was promised, ${count(counts.late)} so far`;
  document.getElementById("arrivals-said").textContent = arrivals.row.length ? said : "";
  plot.redraw();
}
