// The axis: panes that fill below, windows that close above, the promise between them.

import { count, length, position, ticks } from "./format.js";
import { Plot, inside, marksBelow, sayInTheMiddle } from "./plot.js";
import { colour } from "./theme.js";

const FLAGS = 44;
let shown = null;

// How high the panes stand; where a host does not tell of them, windows have the room.
const panesHigh = () => (shown.panes.start.length ? 84 : 0);

function range() {
  if (!shown) return null;
  const { windows, panes, newest, progress } = shown;
  const starts = windows.start.filter((s) => s !== null);
  const low = starts.length ? Math.min(...starts) : panes.start[Math.max(0, panes.start.length - 30)];
  const ends = windows.end.length ? Math.max(...windows.end) : panes.end[panes.end.length - 1];
  if (low === undefined || ends === undefined) return null;
  const high = Math.max(ends, newest ?? ends, progress ?? ends);
  const pad = (high - low) * 0.015 || 1;
  return [low - pad, high + pad];
}

function lanes(frame) {
  const { windows } = shown;
  const floor = frame.bottom - panesHigh() - 12;
  const each = Math.min(20, (floor - frame.top - FLAGS) / Math.max(1, windows.end.length));
  return windows.end.map((end, i) => ({
    i, end, start: windows.start[i], isClosed: windows.closed[i], of: windows.of[i],
    y: floor - (i + 1) * each, height: Math.max(2, each - Math.min(4, each * 0.3)),
  }));
}

function drawPanes(frame, ctx) {
  const { panes, progress } = shown;
  const top = Math.max(1, ...panes.rows.filter((_, i) => panes.end[i] >= frame.low && panes.start[i] <= frame.high));
  const floor = frame.bottom - 1, high = panesHigh() - 12;
  for (let i = 0; i < panes.start.length; i += 1) {
    const a = frame.x(panes.start[i]), b = frame.x(panes.end[i]);
    if (b < frame.left || a > frame.right) continue;
    const h = Math.max(2, (panes.rows[i] / top) * high);
    const gap = b - a > 5 ? 1.5 : 0;
    const isFull = progress !== null && panes.end[i] <= progress;
    ctx.fillStyle = colour(isFull ? "pane-full" : "pane");
    ctx.fillRect(a + gap, floor - h, Math.max(1, b - a - 2 * gap), h);
  }
}

function drawWindows(frame, ctx) {
  const next = shown.windows.closed.indexOf(false);
  for (const lane of lanes(frame)) {
    const a = lane.start === null ? frame.left - 4 : frame.x(lane.start), b = frame.x(lane.end);
    if (b < frame.left || a > frame.right) continue;
    ctx.fillStyle = colour(lane.isClosed ? "closed" : "open");
    ctx.beginPath(); ctx.roundRect(a + 1, lane.y, Math.max(2, b - a - 2), lane.height, 3); ctx.fill();
    if (!lane.isClosed) {
      ctx.strokeStyle = colour(lane.i === next ? "promise" : "open-rule");
      ctx.lineWidth = lane.i === next ? 2 : 1; ctx.stroke(); ctx.lineWidth = 1;
    }
    if (lane.height >= 8 && b - a > 110) label(frame, ctx, lane, a, b);
  }
}

function label(frame, ctx, lane, a, b) {
  const step = lane.start === null ? 1e6 : Math.max(1e6, ((lane.end - lane.start) >= 120e6 && lane.end % 60e6 === 0) ? 60e6 : 1e6);
  const from = lane.start === null ? "the beginning" : position(shown.axis, lane.start, step);
  const words = `${from} – ${position(shown.axis, lane.end, step)}`;
  ctx.fillStyle = lane.isClosed ? colour("card") : colour("soft");
  ctx.font = `${Math.min(11, lane.height)}px system-ui, "DejaVu Sans", sans-serif`;
  const left = Math.max(a, frame.left) + 7;
  const name = lane.of ? `${lane.of}   ` : "";
  ctx.save(); ctx.beginPath(); ctx.rect(left - 2, lane.y, b - left - 4, lane.height); ctx.clip();
  ctx.fillText(name + words, left, lane.y + lane.height / 2 + 0.5);
  ctx.restore();
}

function upright(frame, at, name, words, y, align) {
  const { ctx } = frame;
  const px = Math.round(frame.x(at));
  if (px < frame.left || px > frame.right) return;
  ctx.fillStyle = colour(name);
  ctx.fillRect(px - 1, frame.top, 2, frame.bottom - frame.top);
  ctx.font = '600 11.5px system-ui, "DejaVu Sans", sans-serif';
  const wide = ctx.measureText(words).width + 12;
  const left = align === "left" || px + wide > frame.right ? px - wide - 3 : px + 3;
  ctx.beginPath(); ctx.roundRect(Math.max(frame.left, left), y, wide, 18, 4); ctx.fill();
  ctx.fillStyle = colour("card");
  ctx.fillText(words, Math.max(frame.left, left) + 6, y + 9.5);
}

function draw(frame) {
  if (!shown) return;
  if (!shown.panes.start.length && !shown.windows.end.length) {
    sayInTheMiddle(frame, shown.windows.note || "no row has come yet");
    return;
  }
  const { axis, progress, newest } = shown;
  const marks = ticks(frame.low, frame.high, frame.width / 95, axis.kind === "time");
  marksBelow(frame, marks.at, (at) => position(axis, at, marks.step));
  inside(frame, (ctx) => {
    if (progress !== null && newest !== null && newest > progress) {
      ctx.fillStyle = colour("promise-soft");
      ctx.fillRect(frame.x(progress), frame.top, frame.x(newest) - frame.x(progress), frame.bottom - frame.top);
    }
    drawWindows(frame, ctx);
    drawPanes(frame, ctx);
    if (newest !== null) upright(frame, newest, "newest", `newest row ${position(axis, newest)}`, frame.top + 22, "right");
    if (progress !== null) upright(frame, progress, "promise", `promise ${position(axis, progress)}`, frame.top, "left");
  });
}

function tipAt(frame, { x, y }) {
  if (!shown) return "";
  const { axis, panes, progress } = shown;
  const at = frame.at(x);
  if (y > frame.bottom - panesHigh()) {
    const i = panes.start.findIndex((s, n) => s <= at && at < panes.end[n]);
    if (i < 0) return "";
    const about = panes.exact ? "" : "about ";
    return `pane ${position(axis, panes.start[i])} – ${position(axis, panes.end[i])}\n${about}${count(panes.rows[i])} rows`;
  }
  const lane = lanes(frame).find((l) => y >= l.y - 1 && y <= l.y + l.height + 1 && (l.start === null || at >= l.start) && at < l.end);
  if (!lane) return "";
  const from = lane.start === null ? "the beginning" : position(axis, lane.start);
  const name = lane.of ? `${lane.of}\n` : "";
  const left = progress === null ? "" : `, ${length(axis, lane.end - progress)} of stream to go`;
  return `${name}window ${from} – ${position(axis, lane.end)}\n${lane.isClosed ? "closed, answered" : `open${left}`}`;
}

export const plot = new Plot("axis", { range, draw, tipAt, margin: { left: 10, right: 10 } });

export function show(snapshot) {
  shown = snapshot;
  const { windows, axis, progress, newest, panes } = snapshot;
  const open = windows.closed.filter((c) => !c).length;
  const next = windows.end.find((end, i) => !windows.closed[i]);
  const said = [];
  if (windows.note) said.push(windows.note);
  else if (windows.end.length) {
    said.push(`${count(windows.total)} windows open${open < windows.total ? `, ${open} of them drawn` : ""}`);
    if (next !== undefined && progress !== null) said.push(`the next closes in ${length(axis, next - progress)} of stream`);
    if (newest !== null && progress !== null && newest >= progress) said.push(`rows may still come up to ${length(axis, newest - progress)} behind the newest`);
    if (progress === null) said.push("nothing is promised yet, so nothing closes");
    if (!panes.exact) said.push("rows per pane are counted by a sample");
    if (snapshot.kind === "spark") said.push("Spark reports no rows pane by pane");
  }
  document.getElementById("axis-said").textContent = said.join(" · ");
  plot.redraw();
}
