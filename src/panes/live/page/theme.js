// Dark or light: as the system says, until somebody chooses. Pictures ask here for their colours.

const root = document.documentElement;
const known = new Map();
const listeners = [];
const system = matchMedia("(prefers-color-scheme: dark)");

function stored() {
  try { return localStorage.getItem("panes-theme"); } catch { return null; }
}

function apply() {
  const theme = stored() ?? (system.matches ? "dark" : "light");
  root.dataset.theme = theme;
  known.clear();
  for (const listener of listeners) listener(theme);
}

export function colour(name) {
  if (!known.has(name)) known.set(name, getComputedStyle(root).getPropertyValue(`--${name}`).trim());
  return known.get(name);
}

export function toggle() {
  try { localStorage.setItem("panes-theme", root.dataset.theme === "dark" ? "light" : "dark"); } catch { /* not kept */ }
  apply();
}

export function onChange(listener) {
  listeners.push(listener);
  listener(root.dataset.theme);
}

system.addEventListener("change", apply);
apply();
