// Numbers, sizes and positions as people read them. Nothing here knows the page.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0, signDisplay: "negative" });
const some = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const brief = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n) => (Math.abs(n) < 1e6 ? whole.format(n) : brief.format(n));
export const short = (n) => (Math.abs(n) < 1e4 ? some.format(n) : brief.format(n));
export const cell = (v) =>
  v === null ? "NULL" : typeof v === "number" ? (Number.isInteger(v) ? whole.format(v) : some.format(v)) : String(v);

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit += 1; }
  return `${n < 10 && unit ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

export function seconds(s) {
  if (s < 1e-3) return `${Math.round(s * 1e6)} µs`;
  if (s < 1) return `${s < 0.01 ? (s * 1e3).toFixed(1) : Math.round(s * 1e3)} ms`;
  if (s < 120) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
}

const two = (n) => String(n).padStart(2, "0");

// A position on the axis. Time is told in UTC; `step` is how far apart neighbours are.
export function position(axis, at, step = 1e6) {
  if (at === null || at === undefined) return "nowhere yet";
  if (axis.kind !== "time") return whole.format(at);
  const d = new Date(at / 1000);
  if (Number.isNaN(d.getTime())) return String(at);
  const day = `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`;
  if (step >= 86400e6) return day;
  const time = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
  if (step >= 60e6) return time;
  const full = `${time}:${two(d.getUTCSeconds())}`;
  return step >= 1e6 ? full : `${full}.${String(d.getUTCMilliseconds()).padStart(3, "0")}`;
}

export const length = (axis, ticks) => (axis.kind === "time" ? seconds(ticks / 1e6) : whole.format(ticks));

export function clock(at) {
  const d = new Date(at * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

const STEPS = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];

// Round positions between two others, about so many of them, and how far apart they are.
export function ticks(low, high, wanted, isTime) {
  const raw = (high - low) / Math.max(1, wanted);
  if (!(raw > 0) || !Number.isFinite(raw)) return { at: [low], step: 1 };
  let step;
  if (isTime && raw >= 1e6) {
    step = (STEPS.find((s) => s * 1e6 >= raw) ?? Math.ceil(raw / 31536e9) * 31536e3) * 1e6;
  } else {
    const power = 10 ** Math.floor(Math.log10(raw));
    step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? raw;
    if (isTime) step = Math.max(1, step);
  }
  const at = [];
  for (let t = Math.ceil(low / step) * step; t <= high && at.length < 50; t += step) at.push(t);
  return { at, step };
}
