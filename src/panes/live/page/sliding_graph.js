// The sliding graph: queries whose windows end together are one group; a group hangs below the
// groups that are due whenever it is. Full lines are strong links, dashed ones weak.

import { count } from "./format.js";
import { Plot, sayInTheMiddle } from "./plot.js";
import { colour } from "./theme.js";

let shown = null;
let places = [];

function layout(frame) {
  const { groups } = shown;
  const depth = groups.map(() => 0);
  groups.forEach((group, i) => { for (const p of group.parents) depth[i] = Math.max(depth[i], depth[p] + 1); });
  const rows = [];
  depth.forEach((d, i) => (rows[d] ??= []).push(i));
  const high = frame.bottom - frame.top;
  places = [];
  rows.forEach((row, d) => row.forEach((i, n) => {
    places[i] = {
      x: frame.left + ((n + 0.5) / row.length) * (frame.right - frame.left),
      y: frame.top + 16 + (rows.length === 1 ? high / 2 : (d / (rows.length - 1)) * (high - 40)),
      r: Math.min(22, 7 + 2.2 * Math.sqrt(groups[i].queries)), room: (frame.right - frame.left) / row.length,
    };
  }));
}

function draw(frame) {
  if (!shown || !shown.groups.length) { sayInTheMiddle(frame, "no query has a window yet"); return; }
  layout(frame);
  const { ctx } = frame;
  shown.groups.forEach((group, i) => group.parents.forEach((p, n) => {
    ctx.strokeStyle = colour("soft"); ctx.globalAlpha = n ? 0.45 : 0.9; ctx.setLineDash(n ? [4, 4] : []);
    ctx.beginPath(); ctx.moveTo(places[p].x, places[p].y); ctx.lineTo(places[i].x, places[i].y); ctx.stroke();
  }));
  ctx.setLineDash([]); ctx.globalAlpha = 1;
  shown.groups.forEach((group, i) => {
    const { x, y, r, room } = places[i];
    ctx.fillStyle = colour(group.queries ? "pane-full" : "card"); ctx.strokeStyle = colour("pane-full");
    ctx.beginPath(); ctx.arc(x, y, r, 0, 7); ctx.fill(); ctx.stroke();
    ctx.textAlign = "center"; ctx.fillStyle = colour(group.queries ? "card" : "soft");
    if (group.queries > 1) ctx.fillText(count(group.queries), x, y + 0.5);
    ctx.fillStyle = colour("ink");
    if (room > 46) ctx.fillText(group.label, x, y + r + 9, room - 4);
    ctx.textAlign = "left";
  });
}

function tipAt(frame, pointer) {
  const i = places.findIndex((p) => p && Math.hypot(p.x - pointer.x, p.y - pointer.y) <= p.r + 4);
  const group = shown?.groups[i];
  if (!group) return "";
  const more = group.queries - group.names.length;
  const names = group.names.length ? `\n${group.names.join("\n")}${more > 0 ? `\nand ${count(more)} more` : ""}` : "\nno query: it only saves tests";
  return `windows end every ${group.label}${names}`;
}

export const plot = new Plot("graph", { range: () => [0, 1], draw, tipAt, zooms: false, margin: { left: 10, bottom: 18 } });

export function show(register) {
  shown = register;
  const left = register.groups_total - register.groups.length;
  document.getElementById("graph-said").textContent =
    `a circle is a group of queries whose windows end together; it can be due only when the group above it is${left > 0 ? ` · ${count(left)} groups are not drawn` : ""}`;
  plot.redraw();
}
