// A picture on a canvas: sharp on any screen, zoomed and moved along x, with a tip under the pointer.
//
// Whoever owns it gives `draw(frame)`, which draws all of it. A frame has the drawing area, the
// range of x to show, and scales. Without a zoom the range is whatever `range()` says: it follows.

import { colour } from "./theme.js";

const tip = document.getElementById("tip");
const FONT = '11.5px system-ui, "DejaVu Sans", sans-serif';

export class Plot {
  constructor(id, { range, draw, tipAt, margin = {}, zooms = true }) {
    this.canvas = document.getElementById(id);
    this.range = range; this.paint = draw; this.tipAt = tipAt; this.zooms = zooms;
    this.margin = { left: 58, right: 14, top: 10, bottom: 24, ...margin };
    this.zoom = null; this.pointer = null; this.waiting = false; this.frame = null;
    this.listen();
  }

  // Draw when the browser is next ready to, once, however often this is called.
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.drawNow(); });
  }

  drawNow() {
    const { canvas, margin } = this;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return;
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    }
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = FONT; ctx.lineWidth = 1; ctx.textBaseline = "middle"; ctx.textAlign = "left";
    const [low, high] = this.zoom ?? this.range() ?? [0, 1];
    const left = margin.left, right = width - margin.right;
    const span = high - low || 1;
    this.frame = {
      ctx, width, height, left, right, top: margin.top, bottom: height - margin.bottom, low, high,
      x: (v) => left + ((v - low) / span) * (right - left),
      at: (px) => low + ((px - left) / (right - left)) * span,
      pointer: this.pointer, colour,
    };
    this.paint(this.frame);
  }

  reset() { this.zoom = null; this.redraw(); }

  scale(factor, around) {
    const { frame } = this;
    if (!frame || !this.zooms) return;
    const at = around ?? (frame.low + frame.high) / 2;
    const low = at - (at - frame.low) * factor, high = at + (frame.high - at) * factor;
    if (high - low > 0) this.zoom = [low, high];
    this.redraw();
  }

  move(share) {
    const { frame } = this;
    if (!frame || !this.zooms) return;
    const by = (frame.high - frame.low) * share;
    this.zoom = [frame.low + by, frame.high + by];
    this.redraw();
  }

  listen() {
    const { canvas } = this;
    let drag = null;
    canvas.addEventListener("wheel", (event) => {
      if (!this.frame || !this.zooms) return;
      event.preventDefault();
      this.scale(Math.exp(event.deltaY * 0.0015), this.frame.at(event.offsetX));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => { drag = event.clientX; });
    canvas.addEventListener("pointermove", (event) => {
      this.pointer = { x: event.offsetX, y: event.offsetY };
      if (drag !== null && event.buttons && this.frame) {
        this.move((drag - event.clientX) / (this.frame.right - this.frame.left));
        drag = event.clientX;
      }
      this.showTip(event);
      this.redraw();
    });
    const leave = () => { drag = null; this.pointer = null; tip.hidden = true; this.redraw(); };
    canvas.addEventListener("pointerleave", leave);
    canvas.addEventListener("pointerup", () => { drag = null; });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", (event) => {
      const act = {
        ArrowLeft: () => this.move(-0.15), ArrowRight: () => this.move(0.15),
        "+": () => this.scale(0.7), "=": () => this.scale(0.7), "-": () => this.scale(1.4),
      }[event.key];
      if (act) { act(); event.preventDefault(); }
    });
    new ResizeObserver(() => this.redraw()).observe(canvas);
  }

  showTip(event) {
    const said = this.frame && this.tipAt ? this.tipAt(this.frame, this.pointer) : "";
    tip.hidden = !said;
    if (!said) return;
    tip.textContent = said;
    const wide = tip.offsetWidth, x = event.clientX + 14;
    tip.style.left = `${Math.max(4, x + wide > innerWidth ? event.clientX - wide - 10 : x)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 6))}px`;
  }
}

// Marks along x: thin lines and their words.
export function marksBelow(frame, marks, words) {
  const { ctx, bottom, top, x } = frame;
  ctx.strokeStyle = colour("rule"); ctx.fillStyle = colour("soft"); ctx.textAlign = "center";
  for (const at of marks) {
    const px = Math.round(x(at)) + 0.5;
    if (px < frame.left - 1 || px > frame.right + 1) continue;
    ctx.beginPath(); ctx.moveTo(px, top); ctx.lineTo(px, bottom); ctx.stroke();
    const said = words(at), half = ctx.measureText(said).width / 2;
    ctx.fillText(said, Math.min(px, frame.width - half - 1), bottom + 13);
  }
  ctx.textAlign = "left";
}

// Marks along y, for values from 0 or any low to a high one.
export function marksBeside(frame, marks, y, words) {
  const { ctx, left, right } = frame;
  ctx.strokeStyle = colour("rule"); ctx.fillStyle = colour("soft"); ctx.textAlign = "right";
  for (const at of marks) {
    const py = Math.round(y(at)) + 0.5;
    ctx.beginPath(); ctx.moveTo(left, py); ctx.lineTo(right, py); ctx.stroke();
    ctx.fillText(words(at), left - 7, py);
  }
  ctx.textAlign = "left";
}

// What lies outside the drawing area is not drawn.
export function inside(frame, draw) {
  const { ctx, left, right, top, bottom } = frame;
  ctx.save(); ctx.beginPath(); ctx.rect(left, top, right - left, bottom - top); ctx.clip();
  draw(ctx); ctx.restore();
}

export function sayInTheMiddle(frame, words) {
  const { ctx } = frame;
  ctx.fillStyle = colour("soft"); ctx.textAlign = "center";
  ctx.fillText(words, (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2);
  ctx.textAlign = "left";
}

// The greatest index whose value is at most `v`, in ascending values.
export function lastAtMost(values, v) {
  let low = 0, high = values.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (values[mid] <= v) low = mid + 1; else high = mid;
  }
  return low - 1;
}
